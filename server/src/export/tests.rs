//! Whole pages of small and of hostile sessions.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

/// What would run, or load something, if it became markup.
const HOSTILE: &str = "</script></style></pre></title>--><script>alert(1)</script><img src=x onerror=alert(1)>\
                       \" onmouseover=\"alert(1)\" ' autofocus onfocus='alert(1) \
                       [x](javascript:alert(1)) <iframe srcdoc=x></iframe>&lt;b&gt;\u{0}\u{2028}]]>";

struct Sample {
    lines: String,
    folder: tempfile::TempDir,
    last: Value,
    count: usize,
}

impl Sample {
    fn new() -> Self {
        let header = json!({ "type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-02T03:04:05.678Z",
            "cwd": HOSTILE });
        Self {
            lines: format!("{header}\n"),
            folder: tempfile::tempdir().unwrap(),
            last: Value::Null,
            count: 0,
        }
    }

    /// Adds an entry after the last one; gives its id.
    fn add(&mut self, entry: Value) -> String {
        let parent = self.last.clone();
        self.add_below(parent, entry)
    }

    fn add_below(&mut self, parent: Value, mut entry: Value) -> String {
        self.count += 1;
        let id = format!("e{}", self.count);
        entry["id"] = json!(id);
        entry["parentId"] = parent;
        if entry.get("timestamp").is_none() {
            entry["timestamp"] = json!("2026-01-02T03:04:05.678Z");
        }
        writeln!(self.lines, "{entry}").unwrap();
        self.last = json!(id);
        id
    }

    fn user(&mut self, text: &str) -> String {
        self.add(json!({ "type": "message", "message": { "role": "user", "content": text, "timestamp": 1 } }))
    }

    fn answer(&mut self, content: Value) -> String {
        self.add(json!({ "type": "message", "message": answer(content) }))
    }

    fn file(&self) -> PathBuf {
        let file = self.folder.path().join("a.jsonl");
        std::fs::write(&file, &self.lines).unwrap();
        file
    }

    fn page(&self) -> String {
        let session = Session::open_read_only(&self.file()).unwrap();
        let mut bytes = Vec::new();
        write_page(&session, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}

fn answer(content: Value) -> Value {
    json!({ "role": "assistant", "content": content, "api": "a", "provider": "p", "model": "m", "stopReason": "stop",
        "timestamp": 1, "durationMs": 1500,
        "usage": { "input": 1200, "output": 34, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1234,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.0123 } } })
}

fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({ "type": "toolCall", "id": id, "name": name, "arguments": arguments })
}

fn result(id: &str, name: &str, text: &str, details: Value) -> Value {
    json!({ "type": "message", "message": { "role": "toolResult", "toolCallId": id, "toolName": name,
        "content": [{ "type": "text", "text": text }], "details": details, "isError": false, "timestamp": 1 } })
}

/// Every entry of every kind, with hostile text wherever a session has text.
fn hostile_session() -> Sample {
    let mut sample = Sample::new();
    let bad = HOSTILE;
    sample.add(json!({ "type": "model_change", "provider": bad, "modelId": bad }));
    sample.add(json!({ "type": "thinking_level_change", "thinkingLevel": bad }));
    sample.add(json!({ "type": "message", "message": { "role": "system", "content": bad, "sections": { bad: bad, "n": null, "v": [bad] },
        "toolsAdded": [{ "name": bad, "description": bad, "parameters": { bad: bad } }], "toolsRemoved": [{ "name": bad }], "timestamp": 1 } }));
    sample.add(json!({ "type": "session_info", "name": bad }));
    let user = sample.add(
        json!({ "type": "message", "timestamp": bad, "message": { "role": "user", "timestamp": 1, "content": [
        { "type": "text", "text": bad },
        { "type": "image", "data": bad, "mimeType": "image/png" },
        { "type": "image", "data": "AAAA", "mimeType": bad },
        { "type": "image", "data": "PHN2Zz4=", "mimeType": "image/svg+xml" },
        { "type": "image", "data": "AAAA", "mimeType": "image/png" },
        { "type": bad, "x": bad },
    ] } }),
    );
    sample.add(json!({ "type": "label", "targetId": user, "label": bad }));
    let mut message = answer(json!([
        { "type": "thinking", "thinking": bad },
        { "type": "text", "text": format!("```{bad}\n{bad}\n```\n\n<{bad}>\n\n# {bad}\n\n![{bad}]({bad} \"{bad}\")\n\n<https://x/{bad}>") },
        call(bad, bad, json!({ "command": bad, bad: bad, "list": [bad], "long": bad.repeat(3) })),
        call("c2", "edit", json!({ "path": bad, "edits": [{ "oldText": bad, "newText": bad }] })),
        { "type": "toolCall", "id": "c3", "name": "x", "arguments": {}, "argumentsError": bad },
        { "type": bad, "text": bad },
    ]));
    for field in ["provider", "model", "api", "errorMessage", "thinkingLevel"] {
        message[field] = json!(bad);
    }
    message["stopReason"] = json!("error");
    sample.add(json!({ "type": "message", "message": message }));
    sample.add(result(bad, bad, &bad.repeat(200), json!({ "x": bad })));
    sample.add(result("c2", bad, bad, json!({ "diff": format!("+1 {bad}\n-2 {bad}\n {bad}") })));
    let mut stray = result("stray", bad, bad, json!({ "diff": bad }));
    stray["message"]["nestedCalls"] = json!([{ "name": bad }]);
    sample.add(stray);
    sample.add(json!({ "type": "message", "message": { "role": "bashExecution", "command": bad, "output": bad, "exitCode": 1,
        "cancelled": false, "truncated": true, "timestamp": 1 } }));
    sample.add(json!({ "type": "message", "message": { "role": "custom", "customType": bad, "content": bad, "display": true, "timestamp": 1 } }));
    sample.add(json!({ "type": "message", "message": { "role": "branchSummary", "summary": bad, "fromId": bad, "timestamp": 1 } }));
    sample.add(json!({ "type": "message", "message": { "role": "compactionSummary", "summary": bad, "tokensBefore": 1, "timestamp": 1 } }));
    sample.add(json!({ "type": "message", "message": { "role": bad, "content": bad } }));
    sample.add(json!({ "type": "message", "message": { "role": "user", "content": 5 } }));
    sample.add(json!({ "type": "compaction", "summary": bad, "firstKeptEntryId": user, "tokensBefore": 1, "details": { bad: bad } }));
    sample.add(json!({ "type": "branch_summary", "fromId": bad, "summary": bad }));
    sample.add(json!({ "type": "custom", "customType": bad, "data": bad }));
    sample.add(json!({ "type": "custom_message", "customType": bad, "content": bad, "display": false }));
    sample.add(json!({ "type": "context_edit", "targetId": user, "replacement": { "content": bad } }));
    sample.add(
        json!({ "type": "usage", "kind": bad, "provider": bad, "model": bad, "usage": {}, "note": bad }),
    );
    sample.add(json!({ "type": bad, "x": bad }));
    sample.add_below(
        json!(user),
        json!({ "type": "message", "message": { "role": "user", "content": bad, "timestamp": 1 } }),
    );
    sample
}

/// The tags of a page, as a browser would cut them: name and attributes.
fn tags(page: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let Some(name) = rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).map(|_| rest) else { continue };
        let end = name.find(|c: char| !c.is_ascii_alphanumeric()).unwrap();
        let tag = name[..end].to_lowercase();
        rest = &name[end..];
        let mut attributes = Vec::new();
        loop {
            rest = rest.trim_start();
            if let Some(after) = rest.strip_prefix('>') {
                rest = after;
                break;
            }
            let end = rest.find(|c: char| c == '=' || c == '>' || c.is_whitespace()).unwrap();
            let attribute = rest[..end].to_lowercase();
            rest = &rest[end..];
            let mut value = String::new();
            if let Some(after) = rest.strip_prefix("=\"") {
                let close = after.find('"').unwrap();
                value = after[..close].to_owned();
                rest = &after[close + 1..];
            } else {
                assert!(!rest.starts_with('='), "an attribute without quotes: {attribute}");
            }
            attributes.push((attribute, value));
        }
        if tag == "script" || tag == "style" {
            let close = rest.find(&format!("</{tag}")).unwrap();
            rest = &rest[close..];
        }
        tags.push((tag, attributes));
    }
    tags
}

#[test]
fn nothing_of_a_hostile_session_becomes_markup() {
    let page = hostile_session().page();
    let known_tags: HashSet<&str> =
        "html head meta title style noscript body header button span main h1 h3 dl div dt dd article nav a p code b \
         details summary section pre ins del footer img time aside input script br"
            .split_whitespace()
            .collect();
    let known_attributes: HashSet<&str> =
        "lang charset http-equiv content name nonce id class aria-label aria-expanded aria-pressed title href target rel \
         datetime data-lang data-filter loading alt src type placeholder autocomplete spellcheck role"
            .split_whitespace()
            .collect();
    let tags = tags(&page);
    for (tag, attributes) in &tags {
        assert!(known_tags.contains(tag.as_str()), "a tag {tag} {attributes:?}");
        for (name, value) in attributes {
            assert!(known_attributes.contains(name.as_str()), "an attribute {name}={value} of {tag}");
            match name.as_str() {
                "href" => assert!(value.starts_with("#e") || value.starts_with("https://x/"), "{value}"),
                "src" => assert_eq!(value, "data:image/png;base64,AAAA"),
                "nonce" => assert!(value.len() == 32 && value.bytes().all(|b| b.is_ascii_hexdigit())),
                _ => {}
            }
        }
    }
    let scripts: Vec<_> = tags.iter().filter(|(tag, _)| tag == "script").collect();
    assert_eq!(scripts.len(), 2, "{scripts:?}");
    assert!(scripts.iter().all(|(_, attributes)| attributes.iter().any(|(name, _)| name == "nonce")));
    assert!(!page.contains('\0'));
}

#[test]
fn the_policy_of_the_page_allows_nothing_but_its_own_style_and_script() {
    let page = Sample::new().page();
    let policy =
        page.split("Content-Security-Policy\" content=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(policy.starts_with("default-src 'none'; img-src data:;"), "{policy}");
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("http"), "{policy}");
    let other = Sample::new().page();
    assert!(!other.contains(policy), "two exports must not share a nonce");
}

#[test]
fn a_conversation_is_there_with_thinking_calls_results_usage_and_cost() {
    let mut sample = Sample::new();
    sample.user("Please **fix** it\nnow");
    sample.answer(json!([
        { "type": "thinking", "thinking": "hmm, *well*" },
        { "type": "text", "text": "# Plan\n\n- one" },
        call("c1", "bash", json!({ "command": "ls -la" })),
        call("c2", "edit", json!({ "path": "src/a.rs", "edits": [{ "oldText": "a", "newText": "b" }] })),
    ]));
    sample.add(result("c1", "bash", "\u{1b}[31mtotal 0\u{1b}[0m\n", json!({})));
    sample.add(result("c2", "edit", "Successfully replaced", json!({ "diff": "-1 a\n+1 b" })));
    sample.answer(json!([{ "type": "text", "text": "Done." }]));
    let page = sample.page();
    for part in [
        "<title>Please **fix** it now</title>",
        "<p>Please <strong>fix</strong> it<br>\nnow</p>",
        "<details class=\"thinking\"><summary>Thinking <span>hmm, *well*</span></summary>",
        "<h3>Plan</h3>",
        "<section class=\"call\" id=\"e2\"><header><b>bash</b> <code>ls -la</code>",
        "<pre class=\"out\">\ntotal 0</pre>",
        "<section class=\"call\" id=\"e3\"><header><b>edit</b> <code>src/a.rs</code>",
        "<del>-1 a</del>\n<ins>+1 b</ins>",
        "<span title=\"input tokens\">↑ 1.2k</span>",
        "<span title=\"cost\">$0.0123</span>",
        "<dd>$0.0246</dd>",
        "<a href=\"#e2\" class=\"tool on d0\"><span>bash ls -la</span></a>",
        "\"leaf\":4,\"parents\":[-1,0,1,2,3]",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert_eq!(page.matches("<article").count(), 3, "results stand inside their answer");
}

#[test]
fn the_active_branch_is_shown_and_the_others_can_be_reached() {
    let mut sample = Sample::new();
    let first = sample.user("first");
    let one = sample.answer(json!([{ "type": "text", "text": "one" }]));
    sample.add_below(
        json!(first),
        json!({ "type": "message", "message": answer(json!([{ "type": "text", "text": "two" }])) }),
    );
    let page = sample.page();
    for part in [
        "<article id=\"e1\" class=\"answer off\">",
        "<article id=\"e2\" class=\"answer\">",
        "<span>branch 1 of 2</span><a href=\"#e2\">next ›</a>",
        "<a href=\"#e1\">‹ before</a><span>branch 2 of 2</span>",
        "<a href=\"#e1\" class=\"answer d1\"><span>one</span></a>",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let target = sample.folder.path().join("out.html");
    export_file(&sample.file(), Leaf::Entry(&one.as_str().into()), &target).unwrap();
    let page = std::fs::read_to_string(&target).unwrap();
    assert!(page.contains("<article id=\"e1\" class=\"answer\">"), "{page}");
    assert!(page.contains("<article id=\"e2\" class=\"answer off\">"), "{page}");
}

#[test]
fn a_failed_export_leaves_what_was_there_and_never_touches_the_session() {
    let mut sample = Sample::new();
    sample.user("x");
    let file = sample.file();
    let before = std::fs::read(&file).unwrap();
    let error = export_file(&file, Leaf::Latest, &file).unwrap_err();
    assert!(matches!(error, ExportError::OntoItself(_)), "{error}");
    let link = sample.folder.path().join("link.html");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(matches!(export_file(&file, Leaf::Latest, &link), Err(ExportError::OntoItself(_))));
    assert_eq!(std::fs::read(&file).unwrap(), before);
    let missing = sample.folder.path().join("no/such/a.html");
    let error = export_file(&file, Leaf::Latest, &missing).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot write {}: ", missing.display())), "{error}");
    let folder = sample.folder.path().to_owned();
    assert!(matches!(export_file(&file, Leaf::Latest, &folder), Err(ExportError::Write { .. })));
    let names: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing half is left: {names:?}");
}

#[test]
fn the_default_name_is_that_of_the_session_file() {
    let name = default_path(Path::new("/s/--w--/2026-01-02T03-04-05-678Z_0190aaaa.jsonl"));
    assert_eq!(name, Path::new("pi-session-2026-01-02T03-04-05-678Z_0190aaaa.html"));
}

#[test]
fn ten_thousand_entries_and_a_tree_as_deep_as_that_are_written() {
    let mut sample = Sample::new();
    for turn in 0..2_500 {
        sample.user(&format!("prompt {turn}"));
        sample.answer(json!([
            { "type": "text", "text": format!("answer **{turn}**") },
            call(&format!("c{turn}"), "bash", json!({ "command": format!("echo {turn}") })),
        ]));
        sample.add(result(&format!("c{turn}"), "bash", &format!("{turn}\n"), json!({})));
        // Two branches at each turn, each inside the one before.
        let here = sample.last.clone();
        sample.add_below(here.clone(), json!({ "type": "model_change", "provider": "p", "modelId": "m" }));
        sample.last = here;
    }
    let page = sample.page();
    assert_eq!(page.matches("<article").count(), 7_500);
    assert!(page.contains("prompt 2499"));
    assert!(page.contains(" d12\">") && !page.contains(" d13\">"));
}
