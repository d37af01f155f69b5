use std::fs;

use super::*;
use crate::session::listing;

#[test]
fn nothing_is_written_before_save_and_every_append_after_it_is() {
    let dir = folder();
    let mut session = started(&dir.path().join("deep/down"));
    let path = session.file().unwrap().to_owned();
    let first = put(&mut session, NewEntry::ModelChange { provider: "mock".into(), model_id: "m1".into() });
    assert!(!path.exists() && !session.is_saved());
    session.save().unwrap();
    session.save().unwrap();
    let second = put(&mut session, user("hi"));
    assert!(session.is_saved());
    let text = fs::read_to_string(&path).unwrap();
    let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written.len(), 3);
    assert_eq!(written[0]["version"], 3);
    assert_eq!(written[0]["cwd"], "/work");
    assert_eq!(written[1]["parentId"], Value::Null);
    assert_eq!(written[2]["parentId"], first.as_str());
    assert_eq!(session.leaf(), Some(&second));
    session.sync().unwrap();

    drop(session);
    let again = Session::open(&path).unwrap();
    assert_eq!(entries(&again), written[1..]);
    assert_eq!(again.leaf(), Some(&second));
    assert!(again.diagnostics().is_empty());
}

#[test]
fn a_session_in_memory_never_has_a_file() {
    let mut session = Session::in_memory(Path::new("/work"), NewSessionOptions::default());
    put(&mut session, user("hi"));
    session.save().unwrap();
    assert_eq!(session.file(), None);
    assert_eq!(seen(&mut session), ["user:hi"]);
}

#[test]
fn entries_since_a_cursor_are_those_after_it_also_after_reopening() {
    let dir = folder();
    let all =
        [header(), user_line("a", None, "x"), user_line("b", Some("a"), "y"), user_line("c", Some("a"), "z")];
    let session = opened(dir.path(), &all);
    let after = entries_json(&session, Some("a")).unwrap();
    assert_eq!(after, format!("[{},{}]", all[2], all[3]));
    assert_eq!(entries_json(&session, Some("c")).unwrap(), "[]");
    let error = entries_json(&session, Some("zzz")).unwrap_err();
    assert_eq!(error.to_string(), "Entry not found: zzz");
}

#[test]
fn a_moved_leaf_makes_a_branch_and_the_tree_shows_it() {
    let dir = folder();
    let mut session = started(dir.path());
    session.save().unwrap();
    let a = put(&mut session, user("a"));
    let b = put(&mut session, assistant("b"));
    session.set_leaf(Some(&a)).unwrap();
    let c = put(&mut session, assistant("c"));
    put(&mut session, NewEntry::Label { target_id: b.clone(), label: Some("left".into()) });
    assert_eq!(seen(&mut session), ["user:a", "assistant:c"]);
    session.set_leaf(None).unwrap();
    let root = put(&mut session, user("r"));
    assert_eq!(seen(&mut session), ["user:r"]);
    let tree: Value = serde_json::from_str(&tree_json(&session)).unwrap();
    assert_eq!(tree[0]["entry"]["id"], a.as_str());
    assert_eq!(tree[0]["children"][0]["entry"]["id"], b.as_str());
    assert_eq!(tree[0]["children"][0]["label"], "left");
    assert!(tree[0]["children"][0]["labelTimestamp"].is_string());
    assert_eq!(tree[0]["children"][1]["entry"]["id"], c.as_str());
    assert_eq!(tree[1]["entry"]["id"], root.as_str());
    assert_eq!(tree[1]["children"], json!([]));
    assert!(matches!(session.set_leaf(Some(&"nope".into())), Err(SessionError::EntryNotFound(_))));
}

#[test]
fn a_chain_of_forty_thousand_entries_is_a_tree() {
    let mut session = Session::in_memory(Path::new("/"), NewSessionOptions::default());
    for _ in 0..40_000 {
        put(&mut session, NewEntry::SessionInfo { name: None });
    }
    let tree = tree_json(&session);
    assert!(tree.ends_with(&"]}".repeat(40_000).to_string()) || tree.ends_with("}]"));
    assert_eq!(memchr::memmem::find_iter(tree.as_bytes(), br#""entry":"#).count(), 40_000);
    assert_eq!(session.branch().len(), 40_000);
}

#[test]
fn name_labels_and_totals_follow_the_entries() {
    let dir = folder();
    let tool = json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": [], "isError": false,
        "timestamp": 1, "usage": usage()});
    let mut session = opened(
        dir.path(),
        &[
            header(),
            user_line("u1", None, "one"),
            assistant_line("a1", Some("u1"), "x"),
            message("t1", Some("a1"), tool),
            user_line("u2", Some("u1"), "alt"),
            line("e", Some("u2"), "context_edit", json!({"targetId": "u2", "replacement": null})),
            line(
                "w",
                Some("e"),
                "usage",
                json!({"kind": "cache_warm", "provider": "p", "model": "m", "usage": usage()}),
            ),
            line("s", Some("w"), "branch_summary", json!({"fromId": "t1", "summary": "", "usage": usage()})),
            line("n", Some("s"), "session_info", json!({"name": "  mine "})),
            line("l", Some("n"), "label", json!({"targetId": "u1", "label": "L"})),
        ],
    );
    let totals = session.totals();
    assert_eq!(
        (totals.user_messages, totals.assistant_messages, totals.tool_results, totals.total_messages),
        (2, 1, 1, 4)
    );
    assert_eq!((totals.tokens.input, totals.tokens.total()), (4000, 4260));
    assert!((totals.cost - 0.012).abs() < 1e-9);
    assert_eq!(session.name(), Some("mine"));
    assert_eq!(session.label("u1").unwrap().text, "L");
    put(&mut session, NewEntry::Label { target_id: "u1".into(), label: None });
    put(&mut session, NewEntry::SessionInfo { name: Some("other".into()) });
    put(&mut session, assistant("more"));
    assert_eq!((session.label("u1"), session.name()), (None, Some("other")));
    assert_eq!(session.totals().tokens.input, 4010);
    let unknown = NewEntry::Label { target_id: "zzz".into(), label: None };
    assert!(matches!(session.append(unknown), Err(SessionError::EntryNotFound(_))));
}

#[test]
fn a_second_opener_is_told_who_has_the_file_and_can_read_it() {
    let dir = folder();
    let mut session = opened(dir.path(), &[header(), user_line("a", None, "x")]);
    let path = session.file().unwrap().to_owned();
    let error = Session::open(&path).unwrap_err();
    assert!(matches!(error, SessionError::Locked { .. }), "{error}");
    if cfg!(target_os = "linux") {
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
    }
    let mut reader = Session::open_read_only(&path).unwrap();
    assert_eq!(ids(&reader), ["a"]);
    assert!(matches!(reader.append(user("no")), Err(SessionError::ReadOnly { .. })));
    assert!(matches!(listing::delete(&path), Err(SessionError::Locked { .. })));
    put(&mut session, user("y"));
    drop(session);
    assert_eq!(entries(&Session::open(&path).unwrap()).len(), 2);
    listing::delete(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn an_empty_file_starts_a_session_in_it() {
    let dir = folder();
    let path = write(dir.path(), "");
    assert!(matches!(Session::open(&path), Err(SessionError::NotASession { .. })));
    let mut session = Session::open_or_start(&path, Path::new("/work")).unwrap();
    put(&mut session, user("first"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    session.save().unwrap();
    put(&mut session, user("second"));
    drop(session);
    let mut again = Session::open_or_start(&path, Path::new("/other")).unwrap();
    assert_eq!(again.cwd(), Path::new("/work"));
    assert_eq!(seen(&mut again), ["user:first", "user:second"]);
}

#[test]
fn what_is_no_session_is_refused_and_left_alone() {
    let dir = folder();
    let version_4 =
        lines(&[json!({"type": "session", "version": 4, "id": "x", "timestamp": TIME, "cwd": "/"})]);
    for (content, expected) in [
        ("hello\n", "is not a session file: its first line is no session header"),
        (&*lines(&[user_line("a", None, "x"), header()]), "is not a session file"),
        ("\0\0\0\n{}", "is not a session file"),
        (&*version_4, "has session version 4; this program reads versions 1 to 3"),
    ] {
        let path = write(dir.path(), content);
        let error = Session::open(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("s.jsonl"), "{error}");
        assert!(Session::open_or_start(&path, Path::new("/")).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let missing = dir.path().join("nope/x.jsonl");
    assert!(matches!(Session::open(&missing), Err(SessionError::NotFound { .. })));
    assert!(!missing.parent().unwrap().exists());
    assert!(Session::open(dir.path()).is_err());
}

#[test]
fn a_working_directory_that_is_gone_is_named() {
    let dir = folder();
    let mut gone = header();
    gone["cwd"] = "/nope/gone".into();
    let error = opened(dir.path(), &[gone]).check_cwd().unwrap_err().to_string();
    assert!(error.contains("/nope/gone") && error.contains("s.jsonl"), "{error}");
    opened(folder().path(), &[header()]).check_cwd().unwrap();
}

#[test]
fn an_id_must_fit_a_file_name() {
    for id in ["", "a/b", "../x", ".x", "x.", "a b"] {
        let options = NewSessionOptions { id: Some(id.into()), parent: None };
        assert!(
            matches!(
                Session::create(Path::new("/d"), Path::new("/"), options),
                Err(SessionError::InvalidId { .. })
            ),
            "{id}"
        );
    }
    let options = NewSessionOptions { id: Some("my-run_1.2".into()), parent: None };
    let session = Session::create(Path::new("/d"), Path::new("/"), options).unwrap();
    assert!(session.file().unwrap().to_string_lossy().ends_with("Z_my-run_1.2.jsonl"));
}

#[test]
fn version_1_gets_ids_and_the_original_stays_until_the_first_append() {
    let dir = folder();
    let original = lines(&[
        json!({"type": "session", "id": "abc", "timestamp": TIME, "cwd": "/", "provider": "mock"}),
        json!({"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "one", "timestamp": 1}}),
        json!({"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "two", "timestamp": 1}}),
        json!({"type": "compaction", "timestamp": TIME, "summary": "S", "firstKeptEntryIndex": 2, "tokensBefore": 5}),
        json!({"type": "message", "timestamp": TIME,
            "message": {"role": "hookMessage", "customType": "c", "content": "hooked", "display": true, "timestamp": 1}}),
    ]);
    let path = write(dir.path(), &original);
    let mut session = Session::open(&path).unwrap();
    assert_eq!(seen(&mut session), ["compactionSummary:S", "user:two", "custom:hooked"]);
    let before = ids(&session);
    drop(session);
    assert_eq!(fs::read_to_string(&path).unwrap(), original);
    let mut session = Session::open(&path).unwrap();
    assert_eq!(ids(&session), before);
    assert!(session.is_saved());
    put(&mut session, user("three"));
    assert_eq!(fs::read_to_string(dir.path().join("s.jsonl.v1.bak")).unwrap(), original);
    assert!(matches!(Session::open(&path), Err(SessionError::Locked { .. })));
    drop(session);
    let mut session = Session::open(&path).unwrap();
    assert_eq!(session.header().version, Some(3));
    assert_eq!(ids(&session)[..4], before);
    assert_eq!(seen(&mut session), ["compactionSummary:S", "user:two", "custom:hooked", "user:three"]);
}

#[test]
fn version_2_has_its_role_renamed() {
    let dir = folder();
    let mut v2 = header();
    v2["version"] = 2.into();
    let hook = json!({"role": "hookMessage", "customType": "c", "content": "hooked", "display": true, "timestamp": 1});
    let mut session = opened(dir.path(), &[v2, user_line("u", None, "x"), message("h", Some("u"), hook)]);
    assert_eq!(seen(&mut session), ["user:x", "custom:hooked"]);
    assert_eq!(ids(&session), ["u", "h"]);
}

#[test]
fn sessions_are_found_by_folder_age_and_id() {
    let root = folder();
    let cwd = root.path().join("project");
    fs::create_dir(&cwd).unwrap();
    assert_eq!(
        listing::sessions_dir(Path::new("/s"), Path::new("/home/me/a:b\\c")),
        Path::new("/s/--home-me-a-b-c--")
    );
    let dir = listing::sessions_dir(root.path(), &cwd);
    let make = |id: &str, cwd: &Path, name: Option<&str>| {
        let options = NewSessionOptions { id: Some(id.into()), parent: None };
        let mut session = Session::create(&dir, cwd, options).unwrap();
        session.save().unwrap();
        put(&mut session, user(&format!("first of {id}")));
        if let Some(name) = name {
            put(&mut session, NewEntry::SessionInfo { name: Some(name.into()) });
        }
        session.file().unwrap().to_owned()
    };
    let old = make("aaa-1", &cwd, Some("named"));
    let new = make("aaa-2", &cwd, None);
    let other = make("bbb-1", root.path(), None);
    for (path, seconds) in [(&old, 1), (&new, 2), (&other, 3)] {
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
    }
    fs::write(dir.join("junk.jsonl"), "junk").unwrap();
    assert_eq!(listing::most_recent(&dir, &cwd), Some(new.clone()));
    assert_eq!(listing::most_recent(&dir.join("no"), &cwd), None);
    assert!(matches!(listing::find_by_id(&dir, "aaa-1"), listing::Found::One(stub) if stub.path == old));
    assert!(matches!(listing::find_by_id(&dir, "bbb"), listing::Found::One(stub) if stub.path == other));
    assert!(
        matches!(listing::find_anywhere(root.path(), "aaa"), listing::Found::Ambiguous(all) if all.len() == 2)
    );
    assert_eq!(listing::find_by_id(&dir, "zzz"), listing::Found::Nothing);
    let list: Vec<_> = listing::list(listing::files(&dir), |_| true).collect();
    assert_eq!(list.iter().map(|s| s.path.clone()).collect::<Vec<_>>(), [other, new, old]);
    assert_eq!(list[2].name.as_deref(), Some("named"));
    assert_eq!(list[2].first_message.as_deref(), Some("first of aaa-1"));
    let of_cwd: Vec<_> =
        listing::list(listing::files(&dir), |header| header.cwd == cwd.to_str().unwrap()).collect();
    assert_eq!(of_cwd, list[1..]);
}

#[test]
fn a_reader_can_become_the_writer_when_the_lock_is_free() {
    let dir = folder();
    let mut writer =
        opened(dir.path(), &[header(), user_line("a", None, "x"), user_line("b", Some("a"), "y")]);
    let path = writer.file().unwrap().to_owned();
    let mut reader = Session::open_read_only(&path).unwrap();
    reader.set_leaf(Some(&"a".into())).unwrap();
    put(&mut writer, user("late"));
    assert!(matches!(reader.lock_for_append(), Err(SessionError::Locked { .. })));
    assert!(reader.is_read_only());
    drop(writer);
    reader.lock_for_append().unwrap();
    put(&mut reader, user("mine"));
    assert_eq!(seen(&mut reader), ["user:x", "user:mine"]);
    assert_eq!(reader.entry_count(), 4);
}

#[test]
fn a_session_that_is_opened_anew_hands_its_lock_over_or_keeps_it() {
    let dir = folder();
    let here = dir.path().join("here");
    std::fs::create_dir(&here).unwrap();
    let header = json!({"type": "session", "version": 3, "id": "the-id", "timestamp": TIME, "cwd": here});
    let mut old = opened(dir.path(), &[header, user_line("a", None, "x")]);
    let path = old.file().unwrap().to_owned();
    std::fs::remove_dir(&here).unwrap();
    assert!(matches!(old.open_anew(&path), Err(SessionError::CwdMissing { .. })));
    assert!(matches!(Session::open(&path), Err(SessionError::Locked { .. })), "the lock is as before");
    put(&mut old, user("still mine"));
    std::fs::create_dir(&here).unwrap();
    let mut new = old.open_anew(&path).unwrap();
    drop(old);
    assert!(!new.is_read_only());
    assert!(matches!(Session::open(&path), Err(SessionError::Locked { .. })), "the new one has it");
    put(&mut new, user("mine too"));
    assert_eq!(seen(&mut new), ["user:x", "user:still mine", "user:mine too"]);
}

#[test]
fn a_version_1_file_that_someone_else_migrated_meanwhile_is_read_again() {
    let dir = folder();
    let old = json!({"type": "session", "id": "abc", "timestamp": TIME, "cwd": "/"});
    let one = json!({"type": "message", "timestamp": TIME, "message": {"role": "user", "content": "one", "timestamp": 1}});
    let path = write(dir.path(), lines(&[old, one]));
    let mut session = Session::open(&path).unwrap();
    assert!(matches!(Session::open(&path), Err(SessionError::Locked { .. })));
    fs::write(&path, lines(&[header(), user_line("a", None, "one"), user_line("b", Some("a"), "two")]))
        .unwrap();
    put(&mut session, user("three"));
    assert_eq!(seen(&mut session), ["user:one", "user:two", "user:three"]);
    assert!(!dir.path().join("s.jsonl.v1.bak").exists());
}

#[test]
fn a_session_can_move_between_threads_and_be_asked_from_several() {
    fn shared<T: Send + Sync>() {}
    shared::<Session>();
}

#[test]
fn names_and_first_messages_are_found_in_large_files_with_long_lines() {
    let dir = folder();
    let long = user_line("b", Some("a"), &"x".repeat(3_000_000));
    let named = line("n", Some("b"), "session_info", json!({"name": "late"}));
    let path = write(dir.path(), lines(&[header(), user_line("a", None, "first"), long, named]));
    let list: Vec<_> = listing::list(listing::files(dir.path()), |_| true).collect();
    assert_eq!((list[0].name.as_deref(), list[0].first_message.as_deref()), (Some("late"), Some("first")));
    assert_eq!(list[0].path, path);
}

#[test]
fn a_session_that_does_not_tell_its_folder_belongs_to_the_one_the_program_runs_in() {
    let mut nowhere = header();
    nowhere["cwd"] = "".into();
    let session = opened(folder().path(), &[nowhere]);
    assert_eq!(session.cwd(), std::env::current_dir().unwrap());
}
