use std::fs;

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Value, json};

use super::*;
use crate::resources::settings::Settings;

struct Home {
    dir: tempfile::TempDir,
    variables: Vec<(String, String)>,
}

impl Home {
    fn new(models: &Value) -> Self {
        Self::with_text(&models.to_string())
    }

    fn with_text(models: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".pi/agent")).unwrap();
        fs::write(dir.path().join(".pi/agent/models.json"), models).unwrap();
        Self { dir, variables: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())] }
    }

    fn auth(self, auth: &Value) -> Self {
        fs::write(self.dir.path().join(".pi/agent/auth.json"), auth.to_string()).unwrap();
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn load(&self) -> ModelRegistry {
        let environment = Environment::new(self.dir.path(), self.variables.clone());
        let paths = Paths::new(&environment, self.dir.path());
        ModelRegistry::load(&environment, &paths, vec![demo("scripted"), demo("slow")])
    }
}

fn demo(id: &str) -> Model {
    Model { id: id.to_owned(), name: id.to_owned(), provider: DEMO_PROVIDER.to_owned(), ..Model::default() }
}

fn provider(models: &[Value]) -> Value {
    json!({ "baseUrl": "http://h/v1", "api": "openai-completions", "apiKey": "k", "models": models })
}

fn without_key(models: &[Value]) -> Value {
    json!({ "baseUrl": "http://h/v1", "api": "openai-completions", "models": models })
}

fn id(id: &str) -> Value {
    json!({ "id": id })
}

fn thinks(id: &str) -> Value {
    json!({ "id": id, "reasoning": true })
}

fn sample() -> Home {
    Home::new(&json!({ "providers": {
        "p1": provider(&[json!({ "id": "alpha-one", "name": "Alpha One" }), thinks("alpha-two"),
            id("qwen2.5-coder:7b"), thinks("qwen2.5-coder:high"), id("org/deep-model-20250101"), id("org/deep-model")]),
        "p2": provider(&[id("alpha-one"), id("beta")]),
        "org": provider(&[id("x")]),
        "nokey": without_key(&[id("alpha-one"), id("gamma"), id("org/deep-model"), id("dup")]),
        "nokey2": without_key(&[id("dup"), id("org/only")]),
    } }))
}

fn names<'a>(models: impl IntoIterator<Item = &'a Model>) -> String {
    let names: Vec<String> =
        models.into_iter().map(|model| format!("{}/{}", model.provider, model.id)).collect();
    names.join(" ")
}

fn resolve(registry: &ModelRegistry, provider: Option<&str>, pattern: &str) -> String {
    match registry.resolve_pattern(ModelWish { provider, pattern, thinking: None }) {
        Ok(Resolved { model, thinking, warning }) => {
            let level = thinking.map(|level| format!(" {level}")).unwrap_or_default();
            let custom = if warning.is_some() { " custom" } else { "" };
            format!("{}/{}{level}{custom}", model.provider, model.id)
        }
        Err(error) => format!("! {error}"),
    }
}

#[test]
fn a_custom_model_has_pis_defaults() {
    let registry = Home::new(&json!({ "providers": { "mock": provider(&[id("m")]) } })).load();
    let model = registry.find("mock", "m").unwrap();
    assert_eq!(
        serde_json::to_value(&model).unwrap(),
        json!({ "id": "m", "name": "m", "api": "openai-completions", "provider": "mock", "baseUrl": "http://h/v1",
            "reasoning": false, "input": ["text"], "contextWindow": 128_000, "maxTokens": 16_384,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 } })
    );
}

#[test]
fn a_models_own_values_go_over_the_providers_and_headers_stay_out_of_it() {
    let text = r#"// mine
    {"providers": {"px": {"baseUrl": "http://h", "api": "openai-completions", "apiKey": "k",
      "headers": {"X-A": "1"}, "compat": {"supportsStore": false, "maxTokensField": "max_tokens"},
      "models": [{"id": "b", "baseUrl": "http://other", "api": "anthropic-messages", "headers": {"X-B": "2"},
        "compat": {"supportsStore": true, "zork": 1}, "thinkingLevelMap": {"high": null}, "reasoning": true,
        "promptCache": {"short": 3}, "samplingParams": {"temperature": 1}, "contextWindow": 1000.5, "later": 1,
        "cost": {"input": 1, "output": 2, "cacheRead": 0.5, "cacheWrite": 0, "tiers": []}},],}}}"#;
    let registry = Home::with_text(text).load();
    assert!(registry.warnings().is_empty(), "{:?}", registry.warnings());
    let model = serde_json::to_value(registry.find("px", "b").unwrap()).unwrap();
    assert_eq!(model["compat"], json!({ "supportsStore": true, "maxTokensField": "max_tokens", "zork": 1 }));
    assert_eq!((&model["baseUrl"], &model["api"]), (&json!("http://other"), &json!("anthropic-messages")));
    assert_eq!((&model["promptCache"], &model["contextWindow"]), (&json!({ "short": 3 }), &json!(1000)));
    assert!(model.get("headers").is_none() && model.get("later").is_none());
}

#[test]
fn what_is_wrong_names_its_path_and_leaves_out_that_model_or_provider_only() {
    let registry = Home::new(&json!({ "providers": {
        "good": provider(&[id("a")]),
        "mock": provider(&[json!({ "name": "x" }), json!({ "id": 3 }), id("ok"), json!({ "id": "c", "contextWindow": "big" }),
            json!({ "id": "d", "cost": { "input": 1 } }), json!({ "id": "e", "input": ["audio"] }), json!({ "id": "" }),
            json!({ "id": "f", "maxTokens": -1 }), json!("g"), json!({ "id": "h", "headers": { "X": 1 } }),
            json!({ "id": "i", "thinkingLevelMap": { "low": 1 } })]),
        "nourl": { "api": "openai-completions", "models": [{ "id": "a" }] },
        "noapi": { "baseUrl": "http://h", "models": [{ "id": "a" }] },
        "newapi": { "baseUrl": "http://h", "api": "zork", "models": [{ "id": "a" }, { "id": "b", "api": "bork" }],
            "modelOverrides": { "c": { "api": "openai-completion" } } },
        "badurl": { "baseUrl": 3, "apiKey": "s3cret" },
        "badkey": { "baseUrl": "http://h", "apiKey": ["s3cret"] },
        "nolist": { "baseUrl": "http://h", "models": {} },
        "text": "s3cret",
    } }))
    .load();
    assert_eq!(names(&registry.available()), "good/a mock/ok");
    let all = registry.warnings().join("\n");
    for expected in [
        "models.json: providers.mock.models[0].id: is missing; the model is left out",
        "providers.mock.models[1].id: must be a string that is not empty",
        "providers.mock.models[3].contextWindow: must be a number of tokens above 0",
        "providers.mock.models[4].cost.output: is missing",
        "providers.mock.models[5].input: must be a list of \"text\" and \"image\"",
        "providers.mock.models[6].id: must be a string that is not empty",
        "providers.mock.models[7].maxTokens: must be a number of tokens above 0",
        "providers.mock.models[8]: must be an object",
        "providers.mock.models[9].headers.X: must be a string",
        "providers.mock.models[10].thinkingLevelMap.low: must be a string or null",
        "providers.nourl.models[0]: no baseUrl, neither here nor at the provider",
        "providers.noapi.models[0]: no api, neither here nor at the provider",
        "providers.newapi.api: \"zork\" is not supported; the known ones are anthropic-messages, ",
        "providers.newapi.models[1].api: \"bork\" is not supported",
        "providers.newapi.modelOverrides[\"c\"].api: \"openai-completion\" is not supported",
        "providers.badurl.baseUrl: must be a string that is not empty; the provider is left out",
        "providers.badkey.apiKey: must be a string that is not empty; the provider is left out",
        "providers.nolist.models: must be a list",
        "providers.text: must be an object; the provider is left out",
    ] {
        assert!(all.contains(expected), "{expected}\n{all}");
    }
    assert_eq!(registry.warnings().len(), 19, "{all}");
    assert!(
        registry
            .warnings()
            .iter()
            .all(|warning| warning.starts_with('/') && warning.contains("/models.json: ")),
        "{all}"
    );
    assert!(!all.contains("s3cret"));
}

#[test]
fn a_file_that_cannot_be_read_is_a_warning_with_its_position() {
    let registry = Home::with_text("{\n \"providers\": {\n  \"p1\": x\n }}").load();
    assert!(registry.available().is_empty());
    assert!(registry.warnings()[0].contains("models.json:3:9: not valid JSON"), "{:?}", registry.warnings());
    for text in ["[]", r#"{"providers":[]}"#] {
        assert_eq!(Home::with_text(text).load().warnings().len(), 1, "{text}");
    }
    for text in ["", "{}", r#"{"providers":{}}"#] {
        assert!(Home::with_text(text).load().warnings().is_empty(), "{text}");
    }
}

#[test]
fn a_later_entry_with_the_same_id_replaces_the_earlier_one() {
    let one = json!({ "id": "b", "name": "1" });
    let two = json!({ "id": "b", "name": "2" });
    let registry = Home::new(&json!({ "providers": { "p": provider(&[one, id("a"), two]) } })).load();
    assert_eq!(names(&registry.available()), "p/b p/a");
    assert_eq!(registry.find("p", "b").unwrap().name, "2");
}

#[test]
fn only_models_with_credentials_are_available() {
    let home = Home::new(&json!({ "providers": {
        "lit": provider(&[id("a")]),
        "none": without_key(&[id("a")]),
        "env": { "baseUrl": "h", "api": "x", "apiKey": "$KEY_A", "models": [id("a")] },
        "noenv": { "baseUrl": "h", "api": "x", "apiKey": "$KEY_B", "models": [id("a")] },
        "cmd": { "baseUrl": "h", "api": "x", "apiKey": "!exit 1", "models": [id("a")] },
        "saved": without_key(&[id("a")]),
        "signed": provider(&[id("a")]),
        "later": without_key(&[id("a")]),
    } }))
    .auth(
        &json!({ "saved": { "type": "api_key", "key": "x" }, "signed": { "type": "oauth", "access": "x" } }),
    )
    .variable("KEY_A", "1");
    let mut registry = home.load();
    assert_eq!(names(&registry.available()), "lit/a env/a cmd/a saved/a signed/a");
    registry.set_api_key("none", "k".into());
    assert!(names(&registry.available()).contains("none/a"));
}

#[test]
fn the_demo_counts_only_when_asked_for() {
    let mut registry = Home::with_text("{}").load();
    assert!(registry.available().is_empty());
    assert!(resolve(&registry, None, "scripted").starts_with("! Model"));
    assert_eq!(resolve(&registry, Some("demo"), ""), "demo/scripted");
    assert_eq!(resolve(&registry, None, "demo/slow"), "demo/slow");
    assert!(resolve(&registry, None, "demo/other").starts_with("! Model \"demo/other\" not found"));
    let initial = registry.initial(InitialWish::default(), &Settings::default());
    assert_eq!(initial.model, None);
    assert!(initial.warning.is_some_and(|warning| warning.starts_with("No models available.")));
    let slow = registry.find("demo", "slow").unwrap();
    assert!(registry.check(&slow).is_ok());
    registry.request("demo");
    assert_eq!(names(&registry.available()), "demo/scripted demo/slow");
}

#[test]
fn a_pattern_is_an_exact_id_then_a_part_of_one_then_the_same_without_a_thinking_suffix() {
    let registry = sample().load();
    for (pattern, expected) in [
        ("p2/alpha-one", "p2/alpha-one"),
        ("P2/ALPHA-ONE", "p2/alpha-one"),
        ("alpha", "p1/alpha-two"),
        ("Alpha One", "p1/alpha-one"),
        ("beta:high", "p2/beta high"),
        ("qwen2.5-coder:7b", "p1/qwen2.5-coder:7b"),
        ("qwen2.5-coder:high", "p1/qwen2.5-coder:high"),
        ("qwen2.5-coder:high:low", "p1/qwen2.5-coder:high low"),
        ("qwen", "p1/qwen2.5-coder:high"),
        ("org/deep-model", "p1/org/deep-model"),
        ("org/only", "nokey2/org/only"),
        ("deep", "p1/org/deep-model"),
        ("gamma", "nokey/gamma"),
        ("gam", "nokey/gamma"),
        ("nokey/gamma:high", "nokey/gamma high"),
        ("p1/org/deep-model", "p1/org/deep-model"),
        ("p1/Alpha O", "p1/alpha-one"),
        ("p1/nosuch", "p1/nosuch custom"),
        ("p1/nosuch:high", "p1/nosuch high custom"),
        ("p1/nosuch:crazy", "p1/nosuch:crazy custom"),
        ("org/nothing", "org/nothing custom"),
        ("p9/x", "! Model \"p9/x\" not found. Use --list-models to see available models."),
        ("p1/", "! Model \"p1/\" not found. Use --list-models to see available models."),
        (
            "alpha-two:crazy",
            "! Model \"alpha-two:crazy\" not found. Use --list-models to see available models.",
        ),
        ("al*", "! Model \"al*\" not found. Use --list-models to see available models."),
    ] {
        assert_eq!(resolve(&registry, None, pattern), expected, "{pattern}");
    }
}

#[test]
fn equal_matches_are_decided_by_credentials_or_refused() {
    let registry = sample().load();
    assert_eq!(
        resolve(&registry, None, "alpha-one"),
        "! Model \"alpha-one\" is ambiguous across providers: nokey/alpha-one, p1/alpha-one, p2/alpha-one. \
         More than one matching provider is authenticated. Use --provider or provider/model."
    );
    assert_eq!(
        resolve(&registry, None, "one"),
        "! Model \"one\" is ambiguous across providers: p1/alpha-one, p2/alpha-one. \
         More than one matching provider is authenticated. Use --provider or provider/model."
    );
    assert_eq!(
        resolve(&registry, None, "dup"),
        "! Model \"dup\" is ambiguous across providers: nokey/dup, nokey2/dup. \
         No matching provider is authenticated. Use --provider or provider/model."
    );
}

#[test]
fn the_provider_option_restricts_the_search() {
    let registry = sample().load();
    for (provider, pattern, expected) in [
        ("p2", "alpha", "p2/alpha-one"),
        ("P2", "beta", "p2/beta"),
        ("p2", "p2/beta", "p2/beta"),
        ("p2", "zzz", "p2/zzz custom"),
        ("p2", "p1/alpha-two", "p2/p1/alpha-two custom"),
        ("nokey", "gamma", "nokey/gamma"),
        (
            "nosuch",
            "m",
            "! Unknown provider \"nosuch\". Use --list-models to see available providers/models.",
        ),
    ] {
        assert_eq!(resolve(&registry, Some(provider), pattern), expected, "{provider} {pattern}");
    }
}

#[test]
fn an_unknown_id_of_a_known_provider_is_tried_as_it_is() {
    let registry = Home::new(&json!({ "providers": { "t": provider(&[
        json!({ "id": "t1", "contextWindow": 5000, "compat": { "x": 1 } }), id("t2")]) } }))
    .load();
    let wish = ModelWish { pattern: "t/t9", ..ModelWish::default() };
    let plain = registry.resolve_pattern(wish).unwrap();
    assert_eq!(
        plain.warning.as_deref(),
        Some("Model \"t9\" not found for provider \"t\". Using custom model id.")
    );
    assert_eq!(
        (plain.model.name.as_str(), plain.model.context_window, plain.model.reasoning),
        ("t9", 5000, false)
    );
    let asked = registry.resolve_pattern(ModelWish { thinking: Some(ThinkingLevel::High), ..wish }).unwrap();
    assert!(asked.model.reasoning);
    let off = registry.resolve_pattern(ModelWish { pattern: "t/t9:off", ..wish }).unwrap();
    assert_eq!((off.model.reasoning, off.thinking), (false, Some(ThinkingLevel::Off)));
}

#[test]
fn a_scope_takes_globs_names_and_thinking_suffixes_and_says_what_was_wrong() {
    let registry = sample().load();
    for (patterns, expected, warning) in [
        (&["alpha-two:high"][..], "p1/alpha-two high", ""),
        (&["alpha*"], "p1/alpha-one p1/alpha-two p2/alpha-one", ""),
        (&["p2/*"], "p2/alpha-one p2/beta", ""),
        (&["*two:high", "BETA"], "p1/alpha-two high p2/beta", ""),
        (&["[ab]*"], "p1/alpha-one p1/alpha-two p2/alpha-one p2/beta", ""),
        (&["p?/beta"], "p2/beta", ""),
        (&["org/*"], "p1/org/deep-model-20250101 p1/org/deep-model org/x", ""),
        (&["qwen2.5-coder:7b"], "p1/qwen2.5-coder:7b", ""),
        (&["qwen*:high"], "p1/qwen2.5-coder:7b high p1/qwen2.5-coder:high high", ""),
        (&["alpha"], "p1/alpha-two", ""),
        (&["beta", " ", "*eta"], "p2/beta", ""),
        (&["p1/alpha"], "p1/alpha-two", ""),
        (
            &["alpha-one"],
            "p1/alpha-one p2/alpha-one",
            "Pattern \"alpha-one\" matches several providers: p1, p2. Use provider/id to choose one.",
        ),
        (
            &["alpha-two:crazy"],
            "p1/alpha-two",
            "Invalid thinking level \"crazy\" in pattern \"alpha-two:crazy\". Using default instead.",
        ),
        (&["zzz", "beta"], "p2/beta", "No models match pattern \"zzz\""),
        (&["nokey/*"], "", "No models match pattern \"nokey/*\""),
        (&["gamma"], "", "No models match pattern \"gamma\""),
        (&["*deep*"], "", "No models match pattern \"*deep*\""),
        (&["a[", "beta"], "p2/beta", "No models match pattern \"a[\""),
    ] {
        let (scope, warnings) = registry.scope(patterns);
        let found: Vec<String> = scope
            .iter()
            .map(|scoped| {
                let level = scoped.thinking.map(|level| format!(" {level}")).unwrap_or_default();
                format!("{}{level}", names([&scoped.model]))
            })
            .collect();
        assert_eq!(found.join(" "), expected, "{patterns:?}");
        assert_eq!(warnings.join("\n"), warning, "{patterns:?}");
    }
}

#[test]
fn the_first_model_is_the_command_lines_then_the_sessions_then_the_scopes_then_the_default() {
    let registry = sample().load();
    let settings = |value: Value| Settings::from_map(value.as_object().cloned().unwrap());
    let none = settings(json!({}));
    let beta = settings(json!({ "defaultProvider": "p2", "defaultModel": "beta" }));
    let model = |wish, settings: &Settings| names(&registry.initial(wish, settings).model);
    let requested =
        registry.resolve_pattern(ModelWish { pattern: "gamma:low", ..ModelWish::default() }).unwrap();
    let (scoped, _) = registry.scope(&["p1/alpha-two:high", "p2/beta:low"]);
    let session = Some(("org", "x"));

    let all = InitialWish { requested: Some(&requested), session, scoped: &scoped };
    assert_eq!(model(all, &beta), "nokey/gamma");
    assert_eq!(registry.initial(all, &beta).thinking, Some(ThinkingLevel::Low));
    assert_eq!(model(InitialWish { requested: None, ..all }, &beta), "org/x");
    let scope_only = InitialWish { scoped: &scoped, ..InitialWish::default() };
    assert_eq!(model(scope_only, &none), "p1/alpha-two");
    assert_eq!(registry.initial(scope_only, &none).thinking, Some(ThinkingLevel::High));
    assert_eq!(model(scope_only, &beta), "p2/beta");
    assert_eq!(model(InitialWish::default(), &beta), "p2/beta");
    assert_eq!(model(InitialWish::default(), &none), "p1/alpha-one");
    for default in [
        json!({ "defaultModel": "beta" }),
        json!({ "defaultProvider": "p2" }),
        json!({ "defaultProvider": "nokey", "defaultModel": "gamma" }),
        json!({ "defaultProvider": "p9", "defaultModel": "x" }),
    ] {
        assert_eq!(model(InitialWish::default(), &settings(default)), "p1/alpha-one");
    }
    let gone = InitialWish { session: Some(("p9", "x")), ..InitialWish::default() };
    let initial = registry.initial(gone, &none);
    assert_eq!(initial.warning.as_deref(), Some("Could not restore model p9/x. Using p1/alpha-one"));
}

#[test]
fn the_thinking_level_is_the_strongest_word_clamped_to_the_model() {
    let settings = Settings::from_map(
        json!({ "defaultThinkingLevel": "low", "modelThinkingLevels": { "p1/alpha-two": "high" } })
            .as_object()
            .cloned()
            .unwrap(),
    );
    let registry = sample().load();
    let two = registry.find("p1", "alpha-two").unwrap();
    let other = registry.find("p1", "qwen2.5-coder:high").unwrap();
    let plain = registry.find("p2", "beta").unwrap();
    let level = |level: Option<ThinkingLevel>| level;
    for (wish, expected) in [
        (ThinkingWish::default(), ThinkingLevel::High),
        (
            ThinkingWish { session: level(Some(ThinkingLevel::Off)), ..ThinkingWish::default() },
            ThinkingLevel::Off,
        ),
        (
            ThinkingWish {
                scoped: Some(ThinkingLevel::Low),
                session: Some(ThinkingLevel::Off),
                command_line: None,
            },
            ThinkingLevel::Low,
        ),
        (
            ThinkingWish {
                scoped: Some(ThinkingLevel::Low),
                session: None,
                command_line: Some(ThinkingLevel::Max),
            },
            ThinkingLevel::High,
        ),
    ] {
        assert_eq!(default_thinking(&two, &settings, wish), expected, "{wish:?}");
    }
    assert_eq!(default_thinking(&other, &settings, ThinkingWish::default()), ThinkingLevel::Low);
    assert_eq!(
        default_thinking(&other, &Settings::default(), ThinkingWish::default()),
        ThinkingLevel::Medium
    );
    assert_eq!(default_thinking(&plain, &settings, ThinkingWish::default()), ThinkingLevel::Off);
    assert_eq!(default_thinking(&unknown_model(), &settings, ThinkingWish::default()), ThinkingLevel::Off);
}

#[test]
fn the_unknown_model_is_what_pi_shows() {
    assert_eq!(
        serde_json::to_value(unknown_model()).unwrap(),
        json!({ "id": "unknown", "name": "unknown", "api": "unknown", "provider": "unknown", "baseUrl": "",
            "reasoning": false, "input": [], "contextWindow": 0, "maxTokens": 0,
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 } })
    );
    let registry = Home::with_text("{}").load();
    assert_eq!(registry.check(&unknown_model()), Err(AuthError::NoModel));
}

#[test]
fn the_table_of_models_is_aligned_sorted_and_searchable() {
    let registry = sample().load();
    let table = list_models(&registry, "");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[0], "provider  model                    context  max-out  thinking  images");
    assert_eq!(lines[1], "org       x                        128K     16.4K    no        no");
    assert_eq!(lines.len(), 10);
    assert_eq!(list_models(&registry, "p2 bt").lines().count(), 2);
    for (search, found) in
        [("qwn7", 1), ("7qwn", 1), ("p2al", 1), ("org/x", 1), ("7-q", 0), ("q7b", 1), ("b7q", 0)]
    {
        let rows = list_models(&registry, search).lines().filter(|line| line.contains("128K")).count();
        assert_eq!(rows, found, "{search}");
    }
    assert_eq!(list_models(&registry, "zzz"), "No models matching \"zzz\"\n");
    assert!(list_models(&Home::with_text("{}").load(), "").starts_with("No models available."));
}

#[cfg(unix)]
mod builtin;
mod credentials;
mod vendors;

#[test]
fn ids_sort_by_punctuation_then_digits_then_letters_and_case_last() {
    let mut ids = ["b", "B", "zq2", "zq_u", "zq-a", "zq10", "a-mod", "alpha", "zq.d", "a"];
    ids.sort_by(|a, b| resolve::compare_ids(a, b));
    assert_eq!(ids, ["a", "a-mod", "alpha", "b", "B", "zq_u", "zq-a", "zq.d", "zq10", "zq2"]);
}
