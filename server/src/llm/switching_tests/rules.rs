//! The rules of the vendors for a request.

use std::collections::HashSet;

use serde_json::Value;

use super::{Facts, IMAGE, Vendor};

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
pub(super) fn completions_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
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
pub(super) fn mistral_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
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
pub(super) fn anthropic_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
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
pub(super) fn responses_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
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
pub(super) fn gemini_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
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

/// Converse: as Messages, with blocks that are told by their only field.
pub(super) fn bedrock_rules(body: &Value, own: &Vendor, facts: &mut Facts) {
    let mut ids: HashSet<String> = HashSet::new();
    let mut open: HashSet<String> = HashSet::new();
    let messages = list(&body["messages"]);
    assert_eq!(messages[0]["role"], "user");
    assert_eq!(messages.last().unwrap()["role"], "user");
    for message in messages {
        let blocks = list(&message["content"]);
        assert!(!blocks.is_empty(), "{message}");
        let answers = std::mem::take(&mut open);
        let results = blocks.iter().map_while(|block| block.get("toolResult"));
        let answered: HashSet<String> = results.map(|result| str(result, "toolUseId").to_owned()).collect();
        assert_eq!(answered, answers, "{message}");
        for (at, block) in blocks.iter().enumerate() {
            let (kind, value) = block.as_object().unwrap().iter().next().unwrap();
            match kind.as_str() {
                "text" => assert_text(value.as_str().unwrap()),
                "cachePoint" => assert_eq!(at + 1, blocks.len()),
                "image" => {
                    assert_eq!(value["source"]["bytes"], IMAGE);
                    assert_eq!(value["format"], "png");
                    facts.images += 1;
                }
                "toolResult" => {
                    assert!(at < answered.len(), "a result behind other blocks: {message}");
                    let parts = list(&value["content"]);
                    assert!(!parts.is_empty(), "{message}");
                    let images = parts.iter().filter(|part| part.get("image").is_some()).count();
                    assert!(images == 0 || value["status"] == "success", "an image in a failed result");
                    facts.images += images;
                    facts.results += 1;
                }
                "toolUse" => {
                    let id = str(value, "toolUseId");
                    assert_id(id, 64);
                    assert!(ids.insert(id.to_owned()) || own.ids.contains(&id), "two calls with one id {id}");
                    assert!(open.insert(id.to_owned()));
                    assert!(value["input"].is_object());
                    facts.calls += 1;
                }
                "reasoningContent" => {
                    let text = &value["reasoningText"];
                    assert!(text.is_null() || text["signature"] == own.thinking_signature, "{block}");
                    facts.own_thoughts += 1;
                }
                other => panic!("{other}"),
            }
        }
    }
    assert!(open.is_empty());
    assert_eq!(body.to_string().matches("SECRET THOUGHT").count(), facts.own_thoughts);
}
