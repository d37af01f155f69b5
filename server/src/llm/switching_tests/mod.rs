//! A conversation that changes its model goes on, whichever API made the history and whichever gets it:
//! each request is held against the rules of the vendor that it is sent to.

mod images;
mod in_place;
mod rules;

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::socket_tests::{After, serve};
use super::testing::{model, request, system, user};
use super::{ModelRequest, Providers};

use rules::{
    anthropic_rules, bedrock_rules, completions_rules, gemini_rules, mistral_rules, responses_rules,
};

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

const VENDORS: [Vendor; 10] = [
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
        api: "bedrock-converse-stream",
        model: "anthropic.claude-sonnet-4-v1:0",
        thinking_signature: "YmVkcm9jaw==",
        text_signature: None,
        call_signature: None,
        ids: ["tooluse_A", "tooluse_B"],
        rules: bedrock_rules,
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
    Vendor {
        api: "google-vertex",
        model: "gemini-2.5-flash",
        thinking_signature: "dmVydGV4",
        text_signature: Some("dGV4dA=="),
        call_signature: Some("Y2FsbA=="),
        ids: ["read_1795991660642_1", "read_1795991660642_2"],
        rules: gemini_rules,
    },
    Vendor {
        api: "google-vertex",
        model: "gemini-3-flash-preview",
        thinking_signature: "dmVydGV4",
        text_signature: Some("dGV4dA=="),
        call_signature: Some("Y2FsbA=="),
        ids: ["d4e5f6", "read_1795991660642_2"],
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
    let model = model(
        target.api,
        json!({ "id": target.model, "provider": target.model, "input": input, "reasoning": true,
            "maxTokens": 8192, "contextWindow": 200_000 }),
    );
    head_and_body(request(model, ThinkingLevel::Low, Value::Array(messages))).await.1
}

/// What a server gets of a request.
async fn head_and_body(mut request: ModelRequest) -> (String, Value) {
    let refusal = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let server = serve(refusal.to_owned(), After::Close).await;
    request.model.base_url.clone_from(&server.url);
    let (updates, _reader) = mpsc::channel(16);
    let provider = Providers::new().get(&request.model.api).unwrap();
    provider.stream(&request, &updates, &CancellationToken::new()).await;
    let sent = server.request.await.unwrap();
    let (head, body) = sent.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), serde_json::from_str(body).unwrap())
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
