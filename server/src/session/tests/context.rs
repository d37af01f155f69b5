use super::*;

fn edit(id: &str, parent: &str, target: &str, replacement: Value) -> Value {
    line(id, Some(parent), "context_edit", json!({"targetId": target, "replacement": replacement}))
}

fn system(id: &str, parent: Option<&str>, text: &str) -> Value {
    message(id, parent, json!({"role": "system", "content": text, "timestamp": 1}))
}

fn bash(id: &str, parent: &str) -> Value {
    let rest = json!({"role": "bashExecution", "command": "ls", "output": "o", "exitCode": 0, "cancelled": false,
        "truncated": false, "timestamp": 5});
    message(id, Some(parent), rest)
}

fn compaction(id: &str, parent: &str, summary: &str, kept: &str) -> Value {
    line(
        id,
        Some(parent),
        "compaction",
        json!({"summary": summary, "firstKeptEntryId": kept, "tokensBefore": 7}),
    )
}

#[test]
fn a_compaction_starts_the_context_and_keeps_what_it_says_without_system_messages() {
    let dir = folder();
    let mut checkpoint = compaction("c", "u2", "SUM", "a1");
    checkpoint["systemMessage"] = json!({"role": "system", "content": "CHK", "timestamp": 9});
    let mut session = opened(
        dir.path(),
        &[
            header(),
            system("s1", None, "SYS"),
            user_line("u1", Some("s1"), "one"),
            assistant_line("a1", Some("u1"), "first"),
            line(
                "m",
                Some("a1"),
                "custom_message",
                json!({"customType": "x", "content": "note", "display": true}),
            ),
            line("x", Some("m"), "custom", json!({"customType": "x"})),
            bash("b1", "x"),
            system("s2", Some("b1"), "patch"),
            user_line("u2", Some("s2"), "two"),
            checkpoint,
            system("s3", Some("c"), "later"),
            user_line("u3", Some("s3"), "three"),
        ],
    );
    assert_eq!(
        seen(&mut session),
        [
            "system:CHK",
            "compactionSummary:SUM",
            "assistant:first",
            "custom:note",
            "bashExecution:",
            "user:two",
            "system:later",
            "user:three"
        ]
    );
}

#[test]
fn only_the_latest_compaction_counts_and_it_may_keep_nothing() {
    let dir = folder();
    let all = [
        header(),
        user_line("u1", None, "one"),
        assistant_line("a1", Some("u1"), "a"),
        compaction("c1", "a1", "SUM1", "c1"),
        user_line("u2", Some("c1"), "two"),
        compaction("c2", "u2", "SUM2", "u1"),
        user_line("u3", Some("c2"), "three"),
    ];
    let mut session = opened(dir.path(), &all[..5]);
    assert_eq!(seen(&mut session), ["compactionSummary:SUM1", "user:two"]);
    drop(session);
    let mut session = opened(dir.path(), &all);
    assert_eq!(
        seen(&mut session),
        ["compactionSummary:SUM2", "user:one", "assistant:a", "user:two", "user:three"]
    );
    drop(session);
    let mut lost = all.to_vec();
    lost[5]["firstKeptEntryId"] = "nope".into();
    assert_eq!(seen(&mut opened(dir.path(), &lost)), ["compactionSummary:SUM2", "user:three"]);
}

#[test]
fn the_latest_edit_of_the_branch_wins_and_changes_only_content() {
    let dir = folder();
    let tool = json!({"role": "toolResult", "toolCallId": "k", "toolName": "read", "content": [], "isError": false,
        "timestamp": 1});
    let mut session = opened(
        dir.path(),
        &[
            header(),
            user_line("u1", None, "one"),
            assistant_line("a1", Some("u1"), "a"),
            bash("b1", "a1"),
            bash("b2", "b1"),
            line("s1", Some("b2"), "branch_summary", json!({"fromId": "z", "summary": "B1"})),
            line("s2", Some("s1"), "branch_summary", json!({"fromId": "z", "summary": "B2"})),
            line("s3", Some("s2"), "branch_summary", json!({"fromId": "z", "summary": ""})),
            message("t1", Some("s3"), tool),
            edit("e1", "t1", "b1", Value::Null),
            edit("e2", "e1", "b2", json!({"content": "not for bash"})),
            edit("e3", "e2", "s1", Value::Null),
            edit("e4", "e3", "s2", json!({"content": "not for summaries"})),
            edit("e5", "e4", "t1", json!({"content": "TX"})),
            edit("e6", "e5", "a1", Value::Null),
            edit("e7", "e6", "a1", json!({"content": [{"type": "text", "text": "back"}]})),
            edit("e8", "e7", "u1", json!({"content": "ONE"})),
            edit("e9", "e8", "gone", Value::Null),
        ],
    );
    let expected = ["user:ONE", "assistant:back", "bashExecution:", "branchSummary:B2", "toolResult:TX"];
    assert_eq!(seen(&mut session), expected);
    let context = session.context();
    let AgentMessage::Assistant(edited) = &*context.messages[1].message else {
        panic!("an assistant message")
    };
    assert_eq!((edited.model.as_str(), edited.usage.input), ("m1", 1000));
    assert_eq!(context.messages[1].entry, "a1");
    session.set_leaf(Some(&"t1".into())).unwrap();
    assert_eq!(seen(&mut session)[0], "user:one");
    assert_eq!(session.last_assistant_text().as_deref(), Some("a"));
}

#[test]
fn the_model_is_the_one_used_or_chosen_last_and_the_level_the_one_chosen_last() {
    let dir = folder();
    let mut session = opened(
        dir.path(),
        &[
            header(),
            line("m", None, "model_change", json!({"provider": "mock", "modelId": "m2"})),
            line("l", Some("m"), "thinking_level_change", json!({"thinkingLevel": "high"})),
            user_line("u", Some("l"), "x"),
        ],
    );
    assert_eq!(session.context().model, Some(("mock".into(), "m2".into())));
    put(&mut session, assistant("y"));
    assert_eq!(session.context().model, Some(("mock".into(), "m1".into())));
    put(&mut session, NewEntry::ModelChange { provider: "p".into(), model_id: "q".into() });
    put(&mut session, NewEntry::ThinkingLevelChange { thinking_level: "low".into() });
    let context = session.context();
    assert_eq!(
        (context.model.clone(), context.thinking_level.as_deref()),
        (Some(("p".into(), "q".into())), Some("low"))
    );
}

#[test]
fn the_last_text_skips_messages_without_text() {
    let dir = folder();
    let mut silent = assistant_line("a2", Some("a1"), "  ");
    silent["message"]["stopReason"] = "aborted".into();
    let session = opened(dir.path(), &[header(), assistant_line("a1", None, "  padded \n"), silent]);
    assert_eq!(session.last_assistant_text().as_deref(), Some("padded"));
    assert_eq!(opened(folder().path(), &[header()]).last_assistant_text(), None);
}

#[test]
fn a_message_that_is_not_what_its_role_promises_stays_visible() {
    let dir = folder();
    let all = [
        header(),
        message("x", None, json!({"role": "user", "content": 5})),
        message("y", Some("x"), json!({"role": "narrator", "content": "once"})),
    ];
    let mut session = opened(dir.path(), &all);
    assert_eq!(seen(&mut session), ["user:", "narrator:once"]);
    assert_eq!(session.entry("x").unwrap().id(), "x");
}
