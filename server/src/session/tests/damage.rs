use std::fs;
use std::io::Write;

use super::*;

/// Opens a damaged file, appends to it, opens it again: the entries named are there every time, the new
/// one too, what was in the file is still in it, and the damage was told.
fn survives(content: impl AsRef<[u8]>, expected: &[&str], told: &str) -> Session {
    let dir = folder();
    let path = write(dir.path(), content.as_ref());
    let mut session = Session::open(&path).unwrap();
    assert_eq!(ids(&session), expected);
    let notes: Vec<_> =
        session.diagnostics().iter().map(|note| format!("{}: {}", note.line, note.message)).collect();
    assert_eq!(notes.iter().any(|note| note.contains(told)), !told.is_empty(), "{notes:?}");
    serde_json::from_str::<Value>(&tree_json(&session)).unwrap();
    session.context();
    let id = put(&mut session, user("after"));
    drop(session);
    assert!(fs::read(&path).unwrap().starts_with(content.as_ref()));
    let again = Session::open(&path).unwrap();
    let mut expected = expected.to_vec();
    expected.push(id.as_str());
    assert_eq!(ids(&again), expected);
    again
}

fn one() -> String {
    lines(&[header(), user_line("a", None, "one")])
}

#[test]
fn a_torn_last_line_is_skipped_and_the_next_append_is_safe() {
    let torn = format!("{}{}", one(), r#"{"type":"message","id":"b","par"#);
    survives(torn, &["a"], "3: 31 bytes that are no record skipped");
    let whole_without_end = format!("{}{}", one(), assistant_line("b", Some("a"), "x"));
    survives(whole_without_end, &["a", "b"], "");
}

#[test]
fn nul_runs_are_skipped() {
    let b = assistant_line("b", Some("a"), "x");
    survives(format!("{}\0\0\0\0\n{b}\n", one()), &["a", "b"], "4 NUL bytes");
    survives(format!("{}\0\0{b}\n", one()), &["a", "b"], "2 NUL bytes");
    survives(format!("{}{b}\n\0\0\0", one()), &["a", "b"], "3 NUL bytes");
}

#[test]
fn glued_records_are_both_kept() {
    let (b, c) = (assistant_line("b", Some("a"), "x"), user_line("c", Some("b"), "y"));
    survives(format!("{}{b}{c}\n", one()), &["a", "b", "c"], "more than one record");
    let torn = &b.to_string()[..60];
    survives(format!("{}{torn}{c}\n", one()), &["a", "c"], "no record");
    survives(format!("{}{}", header(), user_line("a", None, "x")), &["a"], "more than one record");
}

#[test]
fn lines_that_are_no_entries_are_skipped() {
    let text = format!(
        "{}hello\nnull\n[1]\n42\n{{\"foo\":1}}\n{{bad\n\n \n{}\n",
        one(),
        user_line("b", Some("a"), "y")
    );
    survives(text, &["a", "b"], "3: 5 bytes that are no record");
}

#[test]
fn an_entry_without_an_id_gets_one_that_stays() {
    let text =
        format!("{}{}\n", one(), json!({"type": "message", "message": {"role": "user", "content": "q"}}));
    let session = survives(text, &["a", "00000003"], "without an id");
    assert!(branch(&session).starts_with("a 00000003 "));
}

#[test]
fn entries_with_the_same_id_are_both_kept() {
    let text = lines(&[
        header(),
        user_line("a", None, "one"),
        user_line("a", None, "two"),
        assistant_line("b", Some("a"), "x"),
    ]);
    let session = survives(text, &["a", "a", "b"], "was used before");
    let tree: Value = serde_json::from_str(&tree_json(&session)).unwrap();
    assert_eq!(tree[0]["children"], json!([]));
    assert_eq!(tree[1]["children"][0]["entry"]["id"], "b");
    let after = entries_json(&session, Some("a")).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Value>>(&after).unwrap().len(), 3);
}

#[test]
fn a_missing_parent_makes_a_root_and_a_late_one_is_found() {
    let text = lines(&[
        header(),
        user_line("a", None, "one"),
        user_line("b", Some("nope"), "x"),
        user_line("c", Some("d"), "y"),
        user_line("d", Some("a"), "z"),
    ]);
    let session = survives(text, &["a", "b", "c", "d"], "a parent that does not exist (nope)");
    let tree: Value = serde_json::from_str(&tree_json(&session)).unwrap();
    assert_eq!(tree[1]["entry"]["id"], "b");
    assert_eq!(tree[0]["children"][0]["entry"]["id"], "d");
    assert_eq!(tree[0]["children"][0]["children"][0]["entry"]["id"], "c");
}

#[test]
fn a_cycle_of_parents_is_cut() {
    let text = lines(&[
        header(),
        user_line("a", Some("c"), "1"),
        user_line("b", Some("a"), "2"),
        user_line("c", Some("b"), "3"),
    ]);
    let session = survives(text, &["a", "b", "c"], "entry a is its own ancestor");
    assert!(branch(&session).starts_with("a b c "));
    let selfish = lines(&[header(), user_line("a", Some("a"), "1")]);
    survives(selfish, &["a"], "does not exist");
}

#[test]
fn unanswered_tool_calls_and_labels_on_missing_entries_do_no_harm() {
    let mut calls = assistant_line("b", Some("a"), "x");
    let call = json!({"type": "toolCall", "id": "c", "name": "read", "arguments": {}});
    calls["message"]["content"].as_array_mut().unwrap().push(call);
    let label = line("l", Some("b"), "label", json!({"targetId": "zzz", "label": "lost"}));
    let mut session = survives(format!("{}{calls}\n{label}\n", one()), &["a", "b", "l"], "");
    assert_eq!(seen(&mut session), ["user:one", "assistant:x", "user:after"]);
    assert_eq!(session.totals().tool_calls, 1);
}

#[test]
fn half_surrogates_and_invalid_utf8_are_repaired_when_read() {
    let half = r#"{"type":"message","id":"b","parentId":"a","timestamp":"t","message":{"role":"user","content":"x\ud83d","timestamp":1}}"#;
    let mut session = survives(format!("{}{half}\n", one()), &["a", "b"], "half of a surrogate pair");
    assert_eq!(seen(&mut session)[1], "user:x\u{fffd}");
    let mut bytes = one().into_bytes();
    bytes.extend_from_slice(&half.replace(r"\ud83d", "?").into_bytes());
    let question = bytes.iter().rposition(|byte| *byte == b'?').unwrap();
    bytes[question] = 0xff;
    bytes.push(b'\n');
    let mut session = survives(bytes, &["a", "b"], "invalid UTF-8");
    assert_eq!(seen(&mut session)[1], "user:x\u{fffd}");
    survives(
        format!("{}{half}{}\n", one(), user_line("c", Some("b"), "y")),
        &["a", "b", "c"],
        "half of a surrogate pair",
    );
}

#[test]
fn crlf_and_a_byte_order_mark_do_no_harm() {
    survives(format!("\u{feff}{}", one().replace('\n', "\r\n")), &["a"], "");
}

#[test]
fn a_second_header_does_not_count() {
    survives(
        format!("{}{}\n{}\n", one(), header(), user_line("b", Some("a"), "x")),
        &["a", "b"],
        "second session header",
    );
}

#[test]
fn a_file_deleted_under_us_is_written_again_from_what_is_open() {
    let dir = folder();
    let mut session = opened(dir.path(), &[header(), user_line("a", None, "one")]);
    let path = session.file().unwrap().to_owned();
    fs::remove_file(&path).unwrap();
    put(&mut session, user("two"));
    assert!(session.diagnostics()[0].message.contains("deleted"));
    assert!(matches!(Session::open(&path), Err(SessionError::Locked { .. })));
    put(&mut session, user("three"));
    drop(session);
    assert_eq!(seen(&mut Session::open(&path).unwrap()), ["user:one", "user:two", "user:three"]);
}

#[test]
fn a_file_replaced_under_us_is_left_alone_and_the_session_goes_on_beside_it() {
    let dir = folder();
    let mut session = opened(dir.path(), &[header(), user_line("a", None, "one")]);
    let path = session.file().unwrap().to_owned();
    fs::write(dir.path().join("other"), "other").unwrap();
    fs::rename(dir.path().join("other"), &path).unwrap();
    put(&mut session, user("two"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "other");
    let beside = session.file().unwrap().to_owned();
    assert_eq!(beside, dir.path().join("s.recovered.jsonl"));
    drop(session);
    assert_eq!(seen(&mut Session::open(&beside).unwrap()), ["user:one", "user:two"]);
}

#[test]
fn a_file_cut_under_us_gets_back_what_memory_holds() {
    let dir = folder();
    let all = [
        header(),
        user_line("a", None, "one"),
        assistant_line("b", Some("a"), "two"),
        user_line("c", Some("b"), "three"),
    ];
    for keep in [0, 1, 2, 3] {
        let mut session = opened(dir.path(), &all);
        let path = session.file().unwrap().to_owned();
        session.context();
        let length = lines(&all[..keep]).len() + usize::from(keep == 2) * 20;
        fs::File::options().write(true).open(&path).unwrap().set_len(length as u64).unwrap();
        put(&mut session, user("four"));
        assert_eq!(seen(&mut session), ["user:one", "assistant:two", "user:three", "user:four"]);
        drop(session);
        let mut again = Session::open(&path).unwrap();
        assert_eq!(again.id(), "the-id");
        assert_eq!(seen(&mut again), ["user:one", "assistant:two", "user:three", "user:four"]);
    }
}

#[test]
fn what_another_process_appends_becomes_a_branch() {
    let dir = folder();
    let mut session = opened(dir.path(), &[header(), user_line("a", None, "one")]);
    let path = session.file().unwrap().to_owned();
    let mut other = fs::File::options().append(true).open(&path).unwrap();
    writeln!(other, "{}", user_line("p", Some("a"), "theirs")).unwrap();
    write!(other, "{}", user_line("q", Some("p"), "no end")).unwrap();
    put(&mut session, user("ours"));
    assert_eq!(ids(&session)[..3], ["a", "p", "q"]);
    assert_eq!(seen(&mut session), ["user:one", "user:ours"]);
    drop(session);
    assert_eq!(entries(&Session::open(&path).unwrap()).len(), 4);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_that_changes_nothing() {
    let dir = folder();
    fs::write(dir.path().join("file"), "").unwrap();
    let mut session = started(&dir.path().join("file/below"));
    put(&mut session, user("one"));
    let error = session.save().unwrap_err().to_string();
    assert!(error.starts_with("cannot create ") && error.contains("file/below"), "{error}");
    put(&mut session, user("two"));
    assert_eq!(seen(&mut session), ["user:one", "user:two"]);
    assert!(!session.is_saved());
}

#[test]
fn notes_on_damage_end_with_one_that_says_so_and_what_concerns_the_file_is_always_told() {
    let dir = folder();
    let mut content = one() + &"no record\n".repeat(1500);
    content += &lines(&[user_line("u9", Some("gone"), "late")]);
    let session = Session::open(&write(dir.path(), content)).unwrap();
    let told = session.diagnostics();
    let about_lines: Vec<_> = told.iter().filter(|note| note.line > 0).collect();
    assert_eq!(about_lines.len(), 1001);
    assert!(about_lines.last().unwrap().message.contains("more damage"), "{:?}", about_lines.last());
    assert!(told.iter().any(|note| note.message.contains("parent that does not exist")));
}
