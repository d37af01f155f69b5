use proptest::prelude::*;
use sampi_protocol::data::ThinkingLevel;
use serde_json::{Value, json};

use super::*;
use crate::llm::testing::{answer, call, model, request, result, system, user};

const API: &str = "openai-completions";

/// The turns in short form.
fn turns(fields: Value, messages: Value) -> Vec<String> {
    shown(&request(model(API, fields), ThinkingLevel::Off, messages))
}

fn shown(request: &ModelRequest) -> Vec<String> {
    let part = |part: &Part<'_>| match part {
        Part::Text(text) => text.to_string(),
        Part::Image { mime_type, data } => format!("<{mime_type} {data}>"),
    };
    let all = |parts: &[Part<'_>]| parts.iter().map(part).collect::<Vec<_>>().join("|");
    Transcript::new(request, |id| id.replace('|', "_"), ImageLimits::NONE)
        .turns
        .iter()
        .map(|turn| match turn {
            Turn::User(user) => format!("user {}", all(&user.parts)),
            Turn::ToolResult(result) => {
                let mark = if result.is_error { "!" } else { "" };
                format!("result{mark} {} {}", result.id, all(&result.parts))
            }
            Turn::System(change) => format!("system {change:?}"),
            Turn::Effort(effort) => format!("effort {effort}"),
            Turn::Assistant(parts) => {
                let parts: Vec<String> = parts
                    .iter()
                    .map(|part| match part {
                        AssistantPart::Text { text, .. } => (*text).to_owned(),
                        AssistantPart::Thinking { text, signature, redacted } => {
                            format!("({text} {} {redacted})", signature.unwrap_or("-"))
                        }
                        AssistantPart::ToolCall { id, name, .. } => format!("{name}:{id}"),
                    })
                    .collect();
                format!("assistant {}", parts.join("|"))
            }
        })
        .collect()
}

fn prompt(messages: Value) -> (String, Vec<String>) {
    let request = request(model(API, json!({})), ThinkingLevel::Off, messages);
    let transcript = Transcript::new(&request, str::to_owned, ImageLimits::NONE);
    (transcript.system.clone(), transcript.tools.iter().map(|tool| tool.name.clone()).collect())
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

#[test]
fn system_messages_are_replayed_into_one_prompt_and_one_list_of_tools() {
    let tool =
        |name: &str, description: &str| json!({ "name": name, "description": description, "parameters": {} });
    let first = json!({ "role": "system", "content": "base", "sections": { "a": "AA", "b": "BB\n" },
        "toolsAdded": [tool("read", "old"), tool("bash", "")] });
    assert_eq!(prompt(json!([first, user("q")])).0, "base\n\nAA\n\nBB\n");
    let patch = json!({ "role": "system", "content": "more", "sections": { "a": null, "c": "CC", "b": "B2" },
        "toolsRemoved": [{ "name": "read" }], "toolsAdded": [tool("ls", "")] });
    assert_eq!(
        prompt(json!([first, user("q"), patch, user("r")])),
        ("base\n\nmore\n\nB2\n\nCC".to_owned(), vec!["bash".to_owned(), "ls".to_owned()])
    );
    let again = json!({ "role": "system", "content": "", "sections": { "a": "A3" } });
    assert_eq!(prompt(json!([first, patch, again])).0, "base\n\nmore\n\nB2\n\nCC\n\nA3");
    let fresh = json!({ "role": "system", "content": [{ "type": "text", "text": "x" },
        { "type": "text", "text": "y" }], "sections": { "z": "Z" }, "replace": true });
    assert_eq!(prompt(json!([first, fresh])), ("x\ny\n\nZ".to_owned(), vec![]));
    assert_eq!(prompt(json!([user("q")])), (String::new(), vec![]));
}

#[test]
fn what_is_no_turn_of_its_own_becomes_the_users_text() {
    let bash = |fields: Value| {
        let mut run = json!({ "role": "bashExecution", "command": "ls", "output": "", "exitCode": 0,
            "cancelled": false, "truncated": false });
        for (name, value) in fields.as_object().unwrap() {
            run[name] = value.clone();
        }
        turns(json!({}), json!([run]))
    };
    assert_eq!(bash(json!({})), ["user Ran `ls`\n(no output)"]);
    assert_eq!(
        bash(json!({ "output": "a\nb\n", "exitCode": 4 })),
        ["user Ran `ls`\n```\na\nb\n\n```\n\nCommand exited with code 4"]
    );
    assert_eq!(
        bash(json!({ "output": "a", "cancelled": true, "truncated": true, "fullOutputPath": "/t" })),
        ["user Ran `ls`\n```\na\n```\n\n(command cancelled)\n\n[Output truncated. Full output: /t]"]
    );
    assert_eq!(bash(json!({ "excludeFromContext": true })), Vec::<String>::new());

    let others = turns(
        json!({}),
        json!([
            { "role": "custom", "customType": "x", "content": "note", "display": true },
            { "role": "branchSummary", "summary": "S1", "fromId": null },
            { "role": "compactionSummary", "summary": "S2", "tokensBefore": 5 },
            { "role": "narrator", "content": "once" },
        ]),
    );
    assert_eq!(others.len(), 3);
    assert_eq!(others[0], "user note");
    assert!(others[1].ends_with("<summary>\nS1\n</summary>"), "{}", others[1]);
    assert!(others[2].ends_with("<summary>\nS2\n</summary>"), "{}", others[2]);
}

#[test]
fn answers_that_failed_or_were_aborted_are_left_out_with_their_results() {
    for stop in ["error", "aborted"] {
        let messages = json!([
            user("q"),
            answer(API, stop, json!([{ "type": "text", "text": "part" }, call("c1", json!({}))])),
            result("c1", text("r")),
            user("n"),
        ]);
        assert_eq!(turns(json!({}), messages), ["user q", "user n"]);
    }
}

#[test]
fn every_call_has_a_result_behind_it_and_every_result_a_call() {
    let two = || answer(API, "toolUse", json!([call("c1", json!({})), call("c2", json!({}))]));
    assert_eq!(
        turns(json!({}), json!([user("q"), two(), result("c1", text("r")), user("n")])),
        ["user q", "assistant read:c1|read:c2", "result c1 r", "result! c2 No result provided", "user n"]
    );
    // A message that came while tools ran stands behind the results.
    assert_eq!(
        turns(json!({}), json!([two(), result("c2", text("b")), user("mid"), result("c1", text("a"))])),
        ["assistant read:c1|read:c2", "result c2 b", "result c1 a", "user mid"]
    );
    assert_eq!(turns(json!({}), json!([user("q"), result("c9", text("r"))])), ["user q"]);
    let said = answer(API, "stop", text("z"));
    assert_eq!(
        turns(json!({}), json!([two(), said, result("c1", text("late"))])),
        [
            "assistant read:c1|read:c2",
            "result! c1 No result provided",
            "result! c2 No result provided",
            "assistant z"
        ]
    );
    // Servers that number their calls per answer use the same id again.
    let one = || answer(API, "toolUse", json!([call("c1", json!({}))]));
    assert_eq!(
        turns(json!({}), json!([one(), result("c1", text("a")), one(), result("c1", text("b"))])),
        ["assistant read:c1", "result c1 a", "assistant read:c1", "result c1 b"]
    );
    // Another model gets ids that are unique.
    let other = || {
        let mut answer = one();
        answer["model"] = json!("other");
        answer
    };
    let talk: Vec<Value> = (0..3).flat_map(|_| [other(), result("c1", text("a"))]).collect();
    assert_eq!(
        turns(json!({}), Value::Array(talk)),
        [
            "assistant read:c1",
            "result c1 a",
            "assistant read:2_c1",
            "result 2_c1 a",
            "assistant read:3_c1",
            "result 3_c1 a"
        ]
    );
}

#[test]
fn images_that_cannot_be_sent_become_one_note_for_each_run() {
    let image = json!({ "type": "image", "data": "QUJD", "mimeType": "image/png" });
    let note = "(image omitted: model does not support images)";
    let messages = json!([
        { "role": "user", "content": [{ "type": "text", "text": "see" }, image, image,
            { "type": "text", "text": "mid" }, image] },
        answer(API, "toolUse", json!([call("c1", json!({}))])),
        result("c1", json!([image, image])),
    ]);
    assert_eq!(
        turns(json!({ "input": ["text"] }), messages.clone()),
        [
            format!("user see|{note}|mid|{note}"),
            "assistant read:c1".to_owned(),
            "result c1 (tool image omitted: model does not support images)".to_owned(),
        ]
    );
    assert_eq!(
        turns(json!({}), messages.clone())[0],
        "user see|<image/png QUJD>|<image/png QUJD>|mid|<image/png QUJD>"
    );
    let mut blocked = request(model(API, json!({})), ThinkingLevel::Off, messages);
    blocked.options.block_images = true;
    assert!(shown(&blocked)[0].contains("images are turned off"));
}

#[test]
fn thinking_of_another_model_is_dropped_and_its_ids_are_made_valid() {
    let content = json!([
        { "type": "thinking", "thinking": "t", "thinkingSignature": "s" },
        { "type": "text", "text": "a" },
        { "type": "text", "text": "  " },
        call("x|1", json!({})),
    ]);
    let own = answer(API, "toolUse", content);
    let mut foreign = own.clone();
    foreign["model"] = json!("other");
    let with = |answer: &Value| turns(json!({}), json!([answer, result("x|1", text("r"))]));
    assert_eq!(with(&own), ["assistant (t s false)|a|read:x|1", "result x|1 r"]);
    assert_eq!(with(&foreign), ["assistant a|read:x_1", "result x_1 r"]);
}

#[test]
fn a_user_who_says_nothing_has_no_turn() {
    assert_eq!(turns(json!({}), json!([system(), user(""), user("q")])), ["user q"]);
}

/// The opening and the changes behind it, for a model that takes all of them in place.
fn in_place(messages: Value) -> (String, Vec<String>) {
    let request = request(model(API, json!({})), ThinkingLevel::Off, messages);
    let all = InPlace { prompt: true, tools: ToolChanges::All, effort: None };
    let transcript = Transcript::with_changes(&request, str::to_owned, ImageLimits::NONE, all);
    let change = |turn: &Turn<'_>| match turn {
        Turn::System(change) => Some(change.text.clone()),
        _ => None,
    };
    (transcript.system.clone(), transcript.turns.iter().filter_map(change).collect())
}

#[test]
fn the_first_prompt_is_the_opening_wherever_it_stands() {
    let said = |text: &str| json!({ "role": "system", "content": text });
    let changes = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let opened = in_place(json!([said("one"), said("two"), user("q"), said("three"), user("r")]));
    assert_eq!(opened, ("one\n\ntwo".to_owned(), changes(&["three"])));
    // Sessions that are older than system messages begin without one.
    let opened = in_place(json!([user("q"), said("one"), user("r"), said("two")]));
    assert_eq!(opened, ("one".to_owned(), changes(&["two"])));
    // Nothing of what was before is left after a fresh start.
    let anew = json!({ "role": "system", "content": "new", "replace": true });
    let opened =
        in_place(json!([said("one"), user("q"), said("two"), user("r"), anew, user("s"), said("three")]));
    assert_eq!(opened, ("new".to_owned(), changes(&["three"])));
    assert_eq!(in_place(json!([user("q")])), (String::new(), changes(&[])));
}

proptest! {
    #[test]
    fn the_opening_and_the_changes_behind_it_add_up_to_the_tools_of_now(
        steps in prop::collection::vec((0..5u8, 0..3usize, 0..3usize), 0..16),
        additions_only in any::<bool>(),
    ) {
        let tool = |n: usize, text: usize| json!({ "name": format!("t{n}"), "description": text.to_string(), "parameters": {} });
        let messages: Vec<Value> = steps
            .iter()
            .map(|(kind, a, b)| match kind {
                0 => user("q"),
                1 => json!({ "role": "system", "content": "", "toolsRemoved": [{ "name": format!("t{a}") }] }),
                2 => json!({ "role": "system", "content": "", "toolsRemoved": [{ "name": format!("t{a}") }],
                    "toolsAdded": [tool(*a, *b)] }),
                _ => json!({ "role": "system", "content": "", "toolsAdded": [tool(*a, *b)] }),
            })
            .collect();
        let request = request(model(API, json!({})), ThinkingLevel::Off, Value::Array(messages));
        let now = Transcript::new(&request, str::to_owned, ImageLimits::NONE).tools;
        let tools = if additions_only { ToolChanges::Additions } else { ToolChanges::All };
        let in_place = InPlace { prompt: true, tools, effort: None };
        let transcript = Transcript::with_changes(&request, str::to_owned, ImageLimits::NONE, in_place);
        let mut added_up = transcript.tools.clone();
        for turn in &transcript.turns {
            if let Turn::System(change) = turn {
                prop_assert!(transcript.tool_changes == ToolChanges::All || change.removed.is_empty());
                added_up.retain(|tool| {
                    !change.removed.contains(&tool.name) && !change.added.iter().any(|new| new.name == tool.name)
                });
                added_up.extend(change.added.iter().cloned());
            }
        }
        let sorted = |mut tools: Vec<ToolDefinition>| {
            tools.sort_by(|a, b| a.name.cmp(&b.name));
            tools
        };
        prop_assert_eq!(sorted(added_up), sorted(now));
    }
}

proptest! {
    #[test]
    fn whatever_the_history_calls_and_results_pair_up_behind_each_answer(
        steps in prop::collection::vec((0..6u8, 0..3usize, 0..3usize), 0..24),
    ) {
        let id = |n: usize| format!("c{n}");
        let messages: Vec<Value> = steps
            .iter()
            .map(|(kind, a, b)| match kind {
                0 => user("q"),
                1 => answer(API, "toolUse", json!([call(&id(*a), json!({})), call(&id(*b), json!({}))])),
                2 => answer(API, "aborted", json!([call(&id(*a), json!({}))])),
                3 => answer(API, "toolUse", json!([call(&id(*a), json!({}))])),
                4 => json!({ "role": "system", "content": "more", "timestamp": 1 }),
                _ => result(&id(*a), text("r")),
            })
            .collect();
        let request = request(model(API, json!({})), ThinkingLevel::Off, Value::Array(messages));
        let mut open: Vec<String> = Vec::new();
        let in_place = InPlace { prompt: true, effort: Some(|_, _| Some("low")), ..InPlace::default() };
        for turn in Transcript::with_changes(&request, str::to_owned, ImageLimits::NONE, in_place).turns {
            match turn {
                Turn::ToolResult(result) => {
                    let at = open.iter().position(|id| *id == result.id);
                    prop_assert!(at.is_some(), "a result without a call");
                    open.remove(at.unwrap());
                }
                Turn::User(_) | Turn::System(_) | Turn::Effort(_) => {
                    prop_assert!(open.is_empty(), "a call without a result");
                }
                Turn::Assistant(parts) => {
                    prop_assert!(open.is_empty(), "a call without a result");
                    for part in parts {
                        if let AssistantPart::ToolCall { id, .. } = part {
                            open.push(id.into_owned());
                        }
                    }
                }
            }
        }
        prop_assert!(open.is_empty(), "a call without a result");
    }
}
