use super::*;

async fn describe(home: &Home, provider: &str) -> String {
    describe_of(&home.load(), provider).await
}

async fn describe_of(registry: &ModelRegistry, provider: &str) -> String {
    let model = registry.models_of(provider).first().unwrap().clone();
    match registry.credentials(&model).await {
        Ok(Credentials {
            api_key,
            headers,
            bearer,
            signed_in,
            enterprise_url,
            variables: _,
            environment: _,
        }) => {
            let mut text = api_key.map_or("-".to_owned(), |key| key.expose_secret().to_owned());
            if bearer {
                text.push_str(" bearer");
            }
            if signed_in {
                text.push_str(" signed in");
            }
            if let Some(url) = enterprise_url {
                text.push_str(&format!(" for {url}"));
            }
            for (name, value) in headers {
                text.push_str(&format!(" {name}={}", value.expose_secret()));
            }
            text
        }
        Err(error) => format!("! {error}"),
    }
}

fn with(fields: Value) -> Value {
    let mut provider = without_key(&[json!({ "id": "b", "headers": { "x-a": "model" } })]);
    provider.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "providers": { "px": provider } })
}

#[tokio::test]
async fn the_option_goes_before_auth_json_before_models_json_before_the_environment() {
    let models = json!({ "providers": { "openai": {
        "baseUrl": "h", "api": "openai-completions", "apiKey": "models", "models": [id("b")] } } });
    let auth = json!({ "openai": { "type": "api_key", "key": "saved" } });
    let home = Home::new(&models).auth(&auth).variable("OPENAI_API_KEY", "env");
    let mut registry = home.load();
    assert_eq!(describe_of(&registry, "openai").await, "saved");
    registry.set_api_key("openai", "$FOO".into());
    assert_eq!(describe_of(&registry, "openai").await, "$FOO");
    let home = Home::new(&models).variable("OPENAI_API_KEY", "env");
    assert_eq!(describe(&home, "openai").await, "models");
    let mut models = models;
    models["providers"]["openai"].as_object_mut().unwrap().remove("apiKey");
    let home = Home::new(&models).variable("OPENAI_API_KEY", "env");
    assert_eq!(describe(&home, "openai").await, "env");
}

#[tokio::test]
async fn a_source_that_gives_no_key_ends_the_search() {
    for key in ["!exit 1", "$NOPE", ""] {
        let home = Home::new(&with(json!({ "apiKey": "k" })))
            .auth(&json!({ "px": { "type": "api_key", "key": key } }));
        let text = describe(&home, "px").await;
        assert!(text.starts_with("! No API key found for px.\n\n"), "{key}: {text}");
    }
    let home = Home::new(&with(json!({ "apiKey": "$NOPE" }))).variable("OPENAI_API_KEY", "env");
    let text = describe(&home, "px").await;
    assert!(text.contains("apiKey in models.json refers to NOPE, which is not set"), "{text}");
}

#[test]
fn an_entry_of_auth_json_without_a_key_is_told_when_it_hides_a_key_elsewhere() {
    let expired = json!({ "type": "oauth", "access": "a", "refresh": "r", "expires": 1 });
    let saved = json!({ "px": { "type": "api_key" }, "groq": expired, "openai": { "type": "api_key" } });
    let home = Home::new(&with(json!({ "apiKey": "k" }))).auth(&saved).variable("GROQ_API_KEY", "env");
    let registry = home.load();
    let [groq, px] = registry.warnings() else { panic!("{:?}", registry.warnings()) };
    assert!(groq.contains("/auth.json: groq: ") && groq.contains("before GROQ_API_KEY, which"), "{groq}");
    assert!(px.contains("no key for px; the entry goes before the apiKey in models.json"), "{px}");
    assert!(registry.available().iter().all(|model| model.provider != "px"));
}

#[tokio::test]
async fn an_entry_of_auth_json_without_a_key_leaves_it_to_the_environment() {
    let models = json!({ "providers": { "openai": without_key(&[id("b")]) } });
    for entry in [
        json!({ "type": "api_key" }),
        json!({ "type": "api_key", "key": "" }),
        json!({ "type": "api_key", "key": "$NOPE" }),
        json!({ "type": "api_key", "key": "!false" }),
        json!({ "type": "api_key", "env": { "OPENAI_API_KEY": "of the entry" } }),
    ] {
        let home = Home::new(&models).auth(&json!({ "openai": entry })).variable("OPENAI_API_KEY", "env");
        assert_eq!(describe(&home, "openai").await, "env", "{entry}");
        assert!(home.load().warnings().is_empty(), "{entry}");
        let home = Home::new(&models).auth(&json!({ "openai": entry }));
        assert!(describe(&home, "openai").await.starts_with("! No API key found for openai"), "{entry}");
    }
    // The way a key is sent is that of where it comes from.
    let models = json!({ "providers": { "anthropic": without_key(&[id("b")]) } });
    let entry = json!({ "anthropic": { "type": "api_key", "key": "!false" } });
    let home = Home::new(&models).auth(&entry).variable("ANTHROPIC_AUTH_TOKEN", "tok");
    assert_eq!(describe(&home, "anthropic").await, "tok bearer");
}

#[tokio::test]
async fn headers_are_resolved_and_the_models_go_over_the_providers() {
    let home = Home::new(&with(
        json!({ "apiKey": "k", "headers": { "X-A": "prov", "X-B": "!echo hb", "X-C": "$FOO" } }),
    ))
    .auth(&json!({ "px": { "type": "api_key", "key": "k2", "env": { "FOO": "own" } } }));
    assert_eq!(describe(&home, "px").await, "k2 X-B=hb X-C=own x-a=model");
}

#[tokio::test]
async fn what_cannot_be_resolved_is_an_error_without_the_command() {
    for (fields, expected) in [
        (
            json!({ "apiKey": "!echo s3cret; exit 3" }),
            "API key for provider \"px\" from shell command: the command failed",
        ),
        (json!({ "apiKey": "!true" }), "from shell command: the command printed nothing"),
        (
            json!({ "apiKey": "k", "headers": { "X-Q": "$NOPE" } }),
            "provider \"px\" header \"X-Q\" from environment variable: NOPE",
        ),
        (
            json!({ "apiKey": "k", "headers": { "X-Q": "!exit 1 # s3cret" } }),
            "header \"X-Q\" from shell command: the command failed",
        ),
    ] {
        let text = describe(&Home::new(&with(fields)), "px").await;
        assert!(text.starts_with("! API key auth failed for provider px: Failed to resolve "), "{text}");
        assert!(text.contains(expected) && !text.contains("s3cret"), "{text}");
    }
}

#[tokio::test]
async fn a_bearer_header_is_added_where_the_provider_asks_for_it() {
    let home =
        Home::new(&with(json!({ "apiKey": "k", "authHeader": true, "headers": { "authorization": "own" } })));
    assert_eq!(describe(&home, "px").await, "k bearer x-a=model");
    let models = json!({ "providers": { "anthropic": without_key(&[id("b")]) } });
    let home = Home::new(&models).variable("ANTHROPIC_AUTH_TOKEN", "tok").variable("ANTHROPIC_API_KEY", "k");
    assert_eq!(describe(&home, "anthropic").await, "tok bearer");
    let home = Home::new(&models).variable("ANTHROPIC_OAUTH_TOKEN", "tok").variable("ANTHROPIC_API_KEY", "k");
    assert_eq!(describe(&home, "anthropic").await, "tok");
}

#[tokio::test]
async fn commands_of_auth_json_run_once_and_those_of_models_json_every_time() {
    let log = tempfile::NamedTempFile::new().unwrap();
    let command = format!("!echo x >> '{}'; echo key", log.path().display());
    let saved = Home::new(&with(json!({}))).auth(&json!({ "px": { "type": "api_key", "key": command } }));
    let fresh = Home::new(&with(json!({ "apiKey": command })));
    for (home, runs) in [(saved, 1), (fresh, 2)] {
        fs::write(log.path(), "").unwrap();
        let registry = home.load();
        for _ in 0..2 {
            assert_eq!(describe_of(&registry, "px").await, "key x-a=model");
        }
        assert_eq!(fs::read_to_string(log.path()).unwrap().lines().count(), runs);
    }
}

#[tokio::test]
async fn the_demo_needs_no_key() {
    assert_eq!(describe(&Home::with_text("{}"), "demo").await, "-");
}

#[tokio::test]
async fn a_sign_in_counts_until_it_expires_and_goes_before_keys_elsewhere() {
    let sign_in = |expires: i64| {
        let entry = json!({ "type": "oauth", "access": "acc", "refresh": "r", "expires": expires });
        Home::new(&with(json!({ "apiKey": "k" }))).auth(&json!({ "px": entry }))
    };
    assert_eq!(describe(&sign_in(9_999_999_999_999), "px").await, "acc signed in x-a=model");
    let text = describe(&sign_in(1), "px").await;
    assert!(
        text.starts_with("! No API key found for px.\n\nthe sign-in saved in auth.json expired at 1970"),
        "{text}"
    );
    let entry = json!({ "type": "oauth", "access": "acc", "enterpriseUrl": "company.ghe.com" });
    let copilot = Home::with_text("{}").auth(&json!({ "github-copilot": entry }));
    let text = describe(&copilot, "github-copilot").await;
    assert!(text.starts_with("acc bearer signed in for company.ghe.com "), "{text}");

    let mut registry = sign_in(9_999_999_999_999).load();
    registry.set_api_key("px", "option".into());
    assert_eq!(describe_of(&registry, "px").await, "option x-a=model");
}
