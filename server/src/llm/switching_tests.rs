//! A conversation that changes its model goes on, whichever API made the history and whichever gets it:
//! each request is held against the rules of the vendor that it is sent to.

use std::collections::HashSet;

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Providers;
use super::socket_tests::{After, serve};
use super::testing::{model, request, system, user};

const IMAGE: &str = "QUJD";
const OPENAI_LONG_ID: &str =
    "call_0123456789abcdefghijklmn|fc_0123456789012345678901234567890123456789012345678901234567890123";
const ITEM: &str = r#"{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"ZW5j"}"#;

/// A model and what its answers look like in a session.
struct Vendor {
    api: &'static str,
    model: &'static str,
    thinking_signature: &'static str,
    text_signature: Option<&'static str>,
    call_signature: Option<&'static str>,
    ids: [&'static str; 2],
    rules: fn(&Value, &Vendor, &mut Facts),
}

const VENDORS: [Vendor; 7] = [
    Vendor {
        api: "openai-completions",
        model: "kimi",
        thinking_signature: "reasoning_content",
        text_signature: None,
        call_signature: None,
        ids: ["functions.read:0", "functions.read:1"],
        rules: completions_rules,
    },
    Vendor {
        api: "anthropic-messages",
        model: "claude",
        thinking_signature: "c2lnbmF0dXJl",
        text_signature: None,
        call_signature: None,
        ids: ["toolu_01A", "toolu_01B"],
        rules: anthropic_rules,
    },
    Vendor {
        api: "openai-responses",
        model: "gpt",
        thinking_signature: ITEM,
        text_signature: Some(r#"{"v":1,"id":"msg_1"}"#),
        call_signature: None,
        ids: [OPENAI_LONG_ID, "call_b|fc_1"],
        rules: responses_rules,
    },
    Vendor {
        api: "azure-openai-responses",
        model: "gpt-deployed",
        thinking_signature: ITEM,
        text_signature: Some(r#"{"v":1,"id":"msg_1","phase":"commentary"}"#),
        call_signature: None,
        ids: ["call_a|fc_0", "call_b|fc_1"],
        rules: responses_rules,
    },
    Vendor {
        api: "mistral-conversations",
        model: "mistral",
        thinking_signature: "",
        text_signature: None,
        call_signature: None,
        ids: ["abcdefghi", "123456789"],
        rules: mistral_rules,
    },
    Vendor {
        api: "google-generative-ai",
        model: "gemini-2.5-pro",
        thinking_signature: "dGhpbmtpbmc=",
        text_signature: Some("dGV4dA=="),
        call_signature: Some("Y2FsbA=="),
        ids: ["read_1795991660641_1", "read_1795991660641_2"],
        rules: gemini_rules,
    },
    Vendor {
        api: "google-generative-ai",
        model: "gemini-3-pro-preview",
        thinking_signature: "dGhpbmtpbmc=",
        text_signature: Some("dGV4dA=="),
        call_signature: Some("Y2FsbA=="),
        ids: ["a1b2c3", "read_1795991660641_2"],
        rules: gemini_rules,
    },
];

impl Vendor {
    fn answer(&self, stop: &str, content: Value) -> Value {
        json!({ "role": "assistant", "content": content, "api": self.api, "provider": self.model,
            "model": self.model, "stopReason": stop })
    }

    fn thinking(&self) -> Value {
        json!({ "type": "thinking", "thinking": "SECRET THOUGHT", "thinkingSignature": self.thinking_signature })
    }

    fn text(&self, text: &str) -> Value {
        let mut block = json!({ "type": "text", "text": text });
        if let Some(signature) = self.text_signature {
            block["textSignature"] = json!(signature);
        }
        block
    }

    fn call(&self, n: usize) -> Value {
        let mut block =
            json!({ "type": "toolCall", "id": self.ids[n], "name": "read", "arguments": { "path": "a" } });
        if let Some(signature) = self.call_signature.filter(|_| n == 0) {
            block["thoughtSignature"] = json!(signature);
        }
        block
    }

    fn result(&self, n: usize, content: Value, is_error: bool) -> Value {
        json!({ "role": "toolResult", "toolCallId": self.ids[n], "toolName": "read", "content": content,
            "isError": is_error })
    }

    /// A turn with two calls, one of which fails, and images everywhere.
    fn work(&self) -> Vec<Value> {
        let image = json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" });
        vec![
            self.answer(
                "toolUse",
                json!([self.thinking(), self.text("reading"), self.call(0), self.call(1)]),
            ),
            self.result(0, json!([{ "type": "text", "text": "seen" }, image]), false),
            self.result(1, json!([{ "type": "text", "text": "bad" }, image]), true),
        ]
    }

    /// A conversation with everything that can be in one.
    fn history(&self) -> Vec<Value> {
        let image = json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" });
        let redacted = json!({ "type": "thinking", "thinking": "[Reasoning redacted]",
            "thinkingSignature": "SECRET THOUGHT", "redacted": true });
        let mut messages =
            vec![system(), json!({ "role": "user", "content": [{ "type": "text", "text": "look" }, image] })];
        messages.extend(self.work());
        messages.extend([
            // Failed and aborted answers, with a result that nobody asked for any more.
            self.answer("error", json!([self.thinking(), self.call(0)])),
            self.result(0, json!([{ "type": "text", "text": "ORPHAN" }]), false),
            user("again"),
            self.answer("aborted", json!([self.text("half"), self.call(1)])),
            user("and again"),
            // The ids of the first answer once more.
            self.answer("toolUse", json!([self.call(0)])),
            self.result(0, json!([]), false),
            self.answer("length", json!([redacted, self.thinking(), self.text("cut")])),
            user("go on"),
            self.answer("stop", json!([self.thinking()])),
            user("well?"),
            self.answer("stop", json!([self.text("  ")])),
            // A call that was never answered.
            user("work"),
            self.answer("toolUse", json!([self.thinking(), self.call(1)])),
            user("never mind"),
        ]);
        messages
    }
}

/// What a request was found to hold.
#[derive(Debug, Default, PartialEq)]
struct Facts {
    calls: usize,
    results: usize,
    images: usize,
    own_thoughts: usize,
}

/// The body that a model of this vendor is sent.
async fn sent(target: &Vendor, input: &[&str], messages: Vec<Value>) -> Value {
    let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let server = serve(refusal.to_owned(), After::Close).await;
    let model = model(
        target.api,
        json!({ "id": target.model, "provider": target.model, "baseUrl": server.url, "input": input,
            "reasoning": true, "maxTokens": 8192, "contextWindow": 200_000 }),
    );
    let request = request(model, ThinkingLevel::Low, Value::Array(messages));
    let (updates, _reader) = mpsc::channel(16);
    let provider = Providers::new().get(target.api).unwrap();
    provider.stream(&request, &updates, &CancellationToken::new()).await;
    let sent = server.request.await.unwrap();
    serde_json::from_str(sent.split_once("\r\n\r\n").unwrap().1).unwrap()
}

async fn facts(target: &Vendor, input: &[&str], messages: Vec<Value>) -> Facts {
    let body = sent(target, input, messages).await;
    let text = body.to_string();
    assert!(!text.contains("ORPHAN") && !text.contains("half"), "{text}");
    let mut facts = Facts::default();
    (target.rules)(&body, target, &mut facts);
    assert_eq!(facts.calls, facts.results, "{text}");
    facts
}

#[tokio::test]
async fn every_api_takes_the_history_of_every_other() {
    for source in &VENDORS {
        for target in &VENDORS {
            let is_same = source.model == target.model;
            let pair = format!("{} -> {}", source.model, target.model);
            let found = facts(target, &["text", "image"], source.history()).await;
            assert_eq!((found.calls, found.images), (4, 3), "{pair}");
            assert_eq!(found.own_thoughts > 0, is_same, "{pair}: {found:?}");

            // A model without eyes is told what it cannot see.
            let blind = sent(target, &["text"], source.history()).await.to_string();
            assert!(!blind.contains(IMAGE), "{pair}: {blind}");
            assert!(blind.contains("(image omitted") && blind.contains("(tool image omitted"), "{pair}");
            let found = facts(target, &["text"], source.history()).await;
            assert_eq!((found.calls, found.images), (4, 0), "{pair}");
        }
    }
}

#[tokio::test]
async fn the_model_may_change_between_a_tools_result_and_the_next_answer() {
    for source in &VENDORS {
        for target in &VENDORS {
            let mut messages = vec![system(), user("q")];
            messages.extend(source.work());
            let found = facts(target, &["text", "image"], messages).await;
            assert_eq!((found.calls, found.images), (2, 2), "{} -> {}", source.model, target.model);
        }
    }
}

#[tokio::test]
async fn a_model_that_comes_back_finds_its_own_thinking_and_the_others_work() {
    for source in &VENDORS {
        for target in VENDORS.iter().filter(|target| target.model != source.model) {
            let mut messages = source.history();
            messages.extend(target.work());
            messages.push(user("next"));
            messages.extend(source.work());
            messages.push(user("last"));
            let found = facts(target, &["text", "image"], messages).await;
            let pair = format!("{} -> {} and back", source.model, target.model);
            assert_eq!((found.calls, found.images), (8, 7), "{pair}");
            assert_eq!(found.own_thoughts, 1, "{pair}");
        }
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn str<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_else(|| panic!("no {field} in {value}"))
}

fn assert_id(id: &str, longest: usize) {
    let safe = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(!id.is_empty() && id.len() <= longest && id.chars().all(safe), "{id}");
}

fn assert_text(text: &str) {
    assert!(!text.trim().is_empty(), "a blank text");
}

/// Chat Completions: each call is answered at once, by its id, and by nothing else.
fn completions_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
    let mut open: HashSet<String> = HashSet::new();
    for message in list(&body["messages"]) {
        let role = str(message, "role");
        if role == "tool" {
            assert!(open.remove(str(message, "tool_call_id")), "a result without a call: {message}");
            assert_text(str(message, "content"));
            facts.results += 1;
            continue;
        }
        assert!(open.is_empty(), "a call without a result before {message}");
        match role {
            "system" | "developer" => assert_text(str(message, "content")),
            "user" => {
                let parts = list(&message["content"]);
                assert!(!parts.is_empty(), "{message}");
                for part in parts {
                    match str(part, "type") {
                        "text" => assert_text(str(part, "text")),
                        "image_url" => {
                            assert_eq!(part["image_url"]["url"], format!("data:image/png;base64,{IMAGE}"));
                            facts.images += 1;
                        }
                        other => panic!("{other}"),
                    }
                }
            }
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                assert!(message["content"].is_string() || !calls.is_empty(), "{message}");
                for call in calls {
                    // The server's own ids go back to it as they came.
                    if !own.ids.contains(&str(call, "id")) {
                        assert_id(str(call, "id"), 40);
                    }
                    assert!(open.insert(str(call, "id").to_owned()), "two calls with one id: {message}");
                    assert!(serde_json::from_str::<Value>(str(&call["function"], "arguments")).is_ok());
                    facts.calls += 1;
                }
                if message.get(own.thinking_signature).is_some() {
                    facts.own_thoughts += 1;
                }
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty());
    assert_eq!(body.to_string().matches("SECRET THOUGHT").count(), facts.own_thoughts);
}

/// Mistral: as Chat Completions, with ids of nine letters and digits, and images in results.
fn mistral_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
    let mut open: HashSet<String> = HashSet::new();
    for message in list(&body["messages"]) {
        let role = str(message, "role");
        if role != "tool" {
            assert!(open.is_empty(), "a call without a result before {message}");
        }
        for part in list(&message["content"]) {
            match str(part, "type") {
                "text" => assert_text(str(part, "text")),
                "image_url" if role != "assistant" => {
                    assert_eq!(part["image_url"], format!("data:image/png;base64,{IMAGE}"));
                    facts.images += 1;
                }
                "thinking" if role == "assistant" => facts.own_thoughts += 1,
                other => panic!("{other}"),
            }
        }
        match role {
            "tool" => {
                assert!(open.remove(str(message, "tool_call_id")), "a result without a call: {message}");
                facts.results += 1;
            }
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                assert!(!list(&message["content"]).is_empty() || !calls.is_empty(), "{message}");
                for call in calls {
                    let id = str(call, "id");
                    assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
                    assert!(open.insert(id.to_owned()), "two calls with one id: {message}");
                    facts.calls += 1;
                }
            }
            "user" => assert!(!list(&message["content"]).is_empty()),
            "system" => assert_text(str(message, "content")),
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty());
    assert_eq!(body.to_string().matches("SECRET THOUGHT").count(), facts.own_thoughts, "{}", own.model);
}

/// Messages: ids are unique in the whole request, and the next message answers all calls, results first.
fn anthropic_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
    let mut ids: HashSet<String> = HashSet::new();
    let mut open: HashSet<String> = HashSet::new();
    let messages = list(&body["messages"]);
    assert_eq!(messages[0]["role"], "user");
    assert_eq!(messages.last().unwrap()["role"], "user");
    for message in messages {
        let blocks = list(&message["content"]);
        assert!(!blocks.is_empty(), "{message}");
        let answers = std::mem::take(&mut open);
        let results = blocks.iter().take_while(|block| block["type"] == "tool_result");
        let answered: HashSet<String> = results.map(|block| str(block, "tool_use_id").to_owned()).collect();
        assert_eq!(answered, answers, "{message}");
        for (at, block) in blocks.iter().enumerate() {
            match str(block, "type") {
                "text" => assert_text(str(block, "text")),
                "image" => {
                    assert_eq!(block["source"]["data"], IMAGE);
                    facts.images += 1;
                }
                "tool_result" => {
                    assert!(at < answered.len(), "a result behind other blocks: {message}");
                    let images =
                        list(&block["content"]).iter().filter(|part| part["type"] == "image").count();
                    assert!(images == 0 || block["is_error"] == false, "an image in a failed result");
                    facts.images += images;
                    facts.results += 1;
                }
                "tool_use" => {
                    assert_eq!(message["role"], "assistant");
                    let id = str(block, "id");
                    assert_id(id, 64);
                    // Whoever reuses ids of its own must take them back.
                    assert!(ids.insert(id.to_owned()) || own.ids.contains(&id), "two calls with one id {id}");
                    assert!(open.insert(id.to_owned()));
                    assert!(block["input"].is_object());
                    facts.calls += 1;
                }
                "thinking" => {
                    assert_eq!(str(block, "signature"), own.thinking_signature);
                    facts.own_thoughts += 1;
                }
                "redacted_thinking" => facts.own_thoughts += 1,
                other => panic!("{other}"),
            }
        }
    }
    assert!(open.is_empty());
    assert_eq!(body.to_string().matches("SECRET THOUGHT").count(), facts.own_thoughts);
}

/// Responses: an output has its call before it, thinking has something behind it, ids say what they are of.
fn responses_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
    let mut open: HashSet<String> = HashSet::new();
    let items = list(&body["input"]);
    assert_eq!(body["store"], false);
    for (at, item) in items.iter().enumerate() {
        let kind = item["type"].as_str().unwrap_or_else(|| str(item, "role"));
        if kind != "function_call_output" && kind != "function_call" {
            assert!(open.is_empty(), "a call without an output before {item}");
        }
        match kind {
            "developer" | "system" => assert_text(str(item, "content")),
            "user" => {
                assert!(!list(&item["content"]).is_empty());
                facts.images += input_parts(&item["content"]);
            }
            "message" => {
                assert_text(str(&item["content"][0], "text"));
                assert_eq!(item["content"][0]["type"], "output_text");
                let id = str(item, "id");
                assert_id(id, 64);
                assert!(id.starts_with("msg_"), "{id}");
            }
            "function_call" => {
                assert_id(str(item, "call_id"), 64);
                assert!(open.insert(str(item, "call_id").to_owned()), "two open calls with one id");
                if let Some(id) = item["id"].as_str() {
                    assert!(id.starts_with("fc_"), "{id}");
                    assert!(
                        own.ids.iter().any(|known| known.ends_with(id)),
                        "the item of another model: {id}"
                    );
                }
                assert!(serde_json::from_str::<Value>(str(item, "arguments")).is_ok());
                facts.calls += 1;
            }
            "function_call_output" => {
                assert!(open.remove(str(item, "call_id")), "an output without a call: {item}");
                match &item["output"] {
                    Value::String(text) => assert_text(text),
                    parts => facts.images += input_parts(parts),
                }
                facts.results += 1;
            }
            "reasoning" => {
                assert_eq!(item.to_string(), own.thinking_signature);
                let next = items.get(at + 1).and_then(|next| next["type"].as_str());
                assert!(matches!(next, Some("message" | "function_call" | "reasoning")), "{item}");
                facts.own_thoughts += 1;
            }
            other => panic!("{other}"),
        }
    }
    assert!(open.is_empty());
    assert!(!body.to_string().contains("SECRET THOUGHT"));
}

/// Checks parts that are put in, and counts the images.
fn input_parts(parts: &Value) -> usize {
    let image = |part: &&Value| match str(part, "type") {
        "input_text" => {
            assert_text(str(part, "text"));
            false
        }
        "input_image" => {
            assert_eq!(part["image_url"], format!("data:image/png;base64,{IMAGE}"));
            true
        }
        other => panic!("{other}"),
    };
    list(parts).iter().filter(image).count()
}

/// Gemini: the message behind calls holds as many responses, nothing else, in which ids and names agree.
fn gemini_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
    let is_third = own.model.contains("-3-");
    let mut open: Vec<(String, Option<String>)> = Vec::new();
    for content in list(&body["contents"]) {
        let parts = list(&content["parts"]);
        assert!(!parts.is_empty(), "{content}");
        let mut calls: Vec<(String, Option<String>)> = Vec::new();
        let mut responses: Vec<(String, Option<String>)> = Vec::new();
        for part in parts {
            let named = |call: &Value| (str(call, "name").to_owned(), call["id"].as_str().map(str::to_owned));
            let signature = part["thoughtSignature"].as_str();
            if let Some(call) = part.get("functionCall") {
                assert_eq!(content["role"], "model");
                let signed = signature.is_some();
                assert!(!is_third || signed || !calls.is_empty(), "the first call is not signed: {content}");
                calls.push(named(call));
            } else if let Some(response) = part.get("functionResponse") {
                assert_eq!(content["role"], "user");
                responses.push(named(response));
                let images = list(&response["parts"]);
                assert!(images.is_empty() || is_third, "images in a result: {response}");
                facts.images += images.len();
            } else if part.get("inlineData").is_some() {
                assert_eq!(part["inlineData"]["data"], IMAGE);
                facts.images += 1;
            } else if signature.is_none() {
                assert_text(str(part, "text"));
            }
            if part["thought"] == true {
                facts.own_thoughts += 1;
            }
            if let Some(signature) = signature {
                let own = [Some(own.thinking_signature), own.text_signature, own.call_signature];
                let stand_in = is_third && signature == "skip_thought_signature_validator";
                assert!(own.contains(&Some(signature)) || stand_in, "{part}");
            }
        }
        facts.calls += calls.len();
        facts.results += responses.len();
        if !open.is_empty() {
            assert_eq!(parts.len(), responses.len(), "something beside the responses: {content}");
        }
        responses.sort();
        assert_eq!(responses, open, "{content}");
        assert!(calls.iter().all(|(_, id)| id.is_some() == is_third), "{content}");
        calls.sort();
        open = calls;
    }
    assert!(open.is_empty());
}
