use std::fs;

use super::*;

fn source() -> Vec<Value> {
    vec![
        header(),
        user_line("u1", None, "one"),
        assistant_line("a1", Some("u1"), "x"),
        line("l1", Some("a1"), "label", json!({"targetId": "u1", "label": "L1"})),
        user_line("u2", Some("l1"), "alt"),
        assistant_line("a2", Some("u2"), "z"),
        line("l2", Some("a2"), "label", json!({"targetId": "a1", "label": "L2"})),
        line("l3", Some("l2"), "label", json!({"targetId": "lost", "label": "L3"})),
        user_line("u3", Some("l3"), ""),
    ]
}

#[test]
fn a_fork_copies_what_came_before_and_leaves_its_parent_alone() {
    let dir = folder();
    let session = opened(dir.path(), &source());
    let path = session.file().unwrap().to_owned();
    let before = fs::read(&path).unwrap();
    let (mut fork, text) = session.fork_before(&"u2".into(), dir.path()).unwrap();
    assert_eq!(text, "alt");
    assert_eq!(fork.header().parent_session.as_deref(), path.to_str());
    assert_eq!(fork.cwd(), session.cwd());
    assert_ne!(fork.id(), session.id());
    let copied = entries(&fork);
    assert_eq!(copied[..2], source()[1..3]);
    // Labels come after the entries, also those that were set later.
    assert_eq!((copied[2]["targetId"].as_str(), copied[2]["label"].as_str()), (Some("u1"), Some("L1")));
    assert_eq!(
        (copied[3]["targetId"].as_str(), copied[3]["parentId"].as_str()),
        (Some("a1"), copied[2]["id"].as_str())
    );
    assert_eq!(copied.len(), 4);
    put(&mut fork, user("more"));
    assert_eq!(seen(&mut fork), ["user:one", "assistant:x", "user:more"]);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_entry_after_a_label_hangs_below_what_the_label_hung_below() {
    let dir = folder();
    let clone = opened(dir.path(), &source()).clone_branch(dir.path()).unwrap();
    let copied = entries(&clone);
    assert_eq!(branch(&clone).split(' ').take(5).collect::<Vec<_>>(), ["u1", "a1", "u2", "a2", "u3"]);
    assert_eq!(copied[2]["parentId"], "a1");
    assert_eq!(copied.len(), 7);
    assert!(clone.is_saved());
}

#[test]
fn a_fork_at_the_first_message_is_not_written_until_it_is_saved() {
    let dir = folder();
    let (mut fork, text) = opened(dir.path(), &source()).fork_before(&"u1".into(), dir.path()).unwrap();
    assert_eq!((text.as_str(), fork.entry_count()), ("one", 0));
    assert!(!fork.is_saved() && !fork.file().unwrap().exists());
    fork.save().unwrap();
    assert!(fork.file().unwrap().exists());
}

#[test]
fn only_user_messages_of_saved_sessions_can_be_forked() {
    let dir = folder();
    let session = opened(dir.path(), &source());
    for id in ["zzz", "a1", "l1"] {
        let error = session.fork_before(&id.into(), dir.path()).unwrap_err();
        assert_eq!(error.to_string(), "Invalid entry ID for forking");
    }
    let mut unsaved = started(dir.path());
    let id = put(&mut unsaved, user("x"));
    let expected = "This session has not been saved yet. Send a message before cloning or forking it.";
    assert_eq!(unsaved.clone_branch(dir.path()).unwrap_err().to_string(), expected);
    assert_eq!(unsaved.fork_before(&id, dir.path()).unwrap_err().to_string(), expected);
}

#[test]
fn a_session_in_memory_forks_in_memory() {
    let mut session = Session::in_memory(Path::new("/"), NewSessionOptions::default());
    put(&mut session, user("one"));
    let second = put(&mut session, user("two"));
    let (mut fork, _) = session.fork_before(&second, Path::new("/nowhere")).unwrap();
    assert_eq!(fork.file(), None);
    assert_eq!(seen(&mut fork), ["user:one"]);
}

#[test]
fn fork_points_are_the_users_messages_of_every_branch() {
    let dir = folder();
    let mut all = source();
    all.push(user_line("u4", Some("a1"), " other \n"));
    let session = opened(dir.path(), &all);
    let points: Vec<_> = session.fork_points().into_iter().map(|(id, text)| format!("{id}={text}")).collect();
    assert_eq!(points, ["u1=one", "u2=alt", "u4= other \n"]);
}

#[test]
fn a_whole_session_is_taken_to_another_folder() {
    let dir = folder();
    let path = write(dir.path(), lines(&source()));
    let copy = Session::fork_from(&path, Path::new("/other"), &dir.path().join("new"), None).unwrap();
    assert_eq!(entries(&copy), source()[1..]);
    assert_eq!((copy.cwd(), copy.header().parent_session.as_deref()), (Path::new("/other"), path.to_str()));
    let error = Session::fork_from(Path::new("/nope.jsonl"), Path::new("/"), dir.path(), None).unwrap_err();
    assert!(matches!(error, SessionError::NotFound { .. }));
}
