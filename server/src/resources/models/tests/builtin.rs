use super::*;

fn home(variables: &[&str]) -> Home {
    variables.iter().fold(Home::with_text("{}"), |home, name| home.variable(name, "x"))
}

fn read_tables(registry: &ModelRegistry) -> Vec<&str> {
    let shelves = registry.shelves.iter();
    // Those of the program alone: what models.json describes has no table.
    let builtin = shelves.take(catalogue::TABLES.len()).filter(|shelf| shelf.is_read());
    builtin.map(|shelf| shelf.provider.as_ref()).collect()
}

fn first(registry: &ModelRegistry) -> String {
    let initial = registry.initial(InitialWish::default(), &Settings::default());
    initial.model.map_or("none".to_owned(), |model| format!("{}/{}", model.provider, model.id))
}

#[test]
fn no_table_is_read_for_a_model_of_models_json() {
    let home = Home::new(&json!({ "providers": { "mock": provider(&[id("m")]) } }));
    let registry = home.load();
    assert_eq!(resolve(&registry, None, "mock/m"), "mock/m");
    assert_eq!(resolve(&registry, Some("mock"), "m"), "mock/m");
    assert_eq!(first(&registry), "mock/m");
    assert_eq!(names(&registry.available()), "mock/m");
    assert!(registry.scope::<&str>(&[]).0.is_empty());
    assert!(read_tables(&registry).is_empty(), "{:?}", read_tables(&registry));
    // Nor is another provider's key a reason, until somebody asks what there is.
    let registry = home.variable("ANTHROPIC_API_KEY", "x").load();
    assert_eq!(resolve(&registry, None, "mock/m"), "mock/m");
    assert!(registry.scope::<&str>(&[]).0.is_empty());
    assert!(read_tables(&registry).is_empty());
    assert!(names(&registry.available()).starts_with("anthropic/claude-fable-5 "));
    assert_eq!(read_tables(&registry), ["anthropic"]);
}

#[test]
fn a_search_for_a_name_reads_only_the_tables_that_have_it() {
    let registry = home(&["META_API_KEY"]).load();
    assert_eq!(resolve(&registry, None, "muse-spark-1.3"), "meta/muse-spark-1.3");
    assert!(!read_tables(&registry).contains(&"anthropic"), "{:?}", read_tables(&registry));
    assert!(read_tables(&registry).contains(&"meta"));
}

#[test]
fn models_are_found_by_parts_of_their_names_as_pi_finds_them() {
    let anthropic = home(&["ANTHROPIC_API_KEY"]).load();
    let three = home(&["ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY"]).load();
    for (pattern, alone, with_three) in [
        ("sonnet", "anthropic/claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
        (
            "gpt",
            "cloudflare-ai-gateway/workers-ai/@cf/openai/gpt-oss-20b",
            "openrouter/openai/gpt-oss-safeguard-20b",
        ),
        ("claude-opus", "anthropic/claude-opus-5-5", "anthropic/claude-opus-5-5"),
        ("anthropic/haiku:high", "anthropic/claude-haiku-5-5 high", "anthropic/claude-haiku-5-5 high"),
        ("gemini", "openrouter/google/gemini-nano-banana-2.1", "openrouter/google/gemini-nano-banana-2.1"),
        ("opus:low", "anthropic/claude-opus-5-5 low", "anthropic/claude-opus-5-5 low"),
        (
            "kimi",
            "cloudflare-ai-gateway/workers-ai/@cf/moonshotai/kimi-k2.7-code",
            "openrouter/moonshotai/kimi-k3.1-pro:batch",
        ),
    ] {
        assert_eq!(resolve(&anthropic, None, pattern), alone, "{pattern}");
        assert_eq!(resolve(&three, None, pattern), with_three, "{pattern}");
    }
    assert_eq!(resolve(&anthropic, Some("openai"), "gpt-5"), "openai/gpt-5");
    assert_eq!(resolve(&anthropic, Some("anthropic"), ""), "anthropic/claude-opus-5-5");
}

#[test]
fn the_first_model_is_the_default_of_the_preferred_provider_with_credentials() {
    assert_eq!(first(&home(&[]).load()), "none");
    for (keys, model) in [
        (&["MISTRAL_API_KEY"][..], "mistral/devstral-medium-latest"),
        (&["MISTRAL_API_KEY", "OPENAI_API_KEY"], "openai/gpt-6.2-sol"),
        (&["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "anthropic/claude-opus-5-5"),
        // The API of its models is not spoken.
        (&["RADIUS_API_KEY", "GROQ_API_KEY"], "groq/openai/gpt-oss-120b"),
    ] {
        assert_eq!(first(&home(keys).load()), model, "{keys:?}");
    }
    let custom = Home::new(&json!({ "providers": { "mock": provider(&[id("m")]) } }));
    assert_eq!(first(&custom.load()), "mock/m");
    assert_eq!(first(&custom.variable("ANTHROPIC_API_KEY", "x").load()), "anthropic/claude-opus-5-5");
}

#[test]
fn models_json_changes_the_models_of_a_provider_that_is_built_in() {
    let home = Home::new(&json!({ "providers": {
        "mock": provider(&[id("m")]),
        "anthropic": {
            "baseUrl": "http://proxy", "compat": { "zork": 1 },
            "modelOverrides": {
                "claude-opus-5": { "name": "O5", "cost": { "output": 7 }, "promptCache": { "long": 9 } },
                "nosuch": {} },
            "models": [{ "id": "claude-sonnet-5", "name": "mine" }, { "id": "own" }] } } }))
    .variable("ANTHROPIC_API_KEY", "x");
    let registry = home.load();
    assert!(registry.warnings().is_empty(), "{:?}", registry.warnings());
    assert!(names(&registry.available()).ends_with(
        "anthropic/claude-sonnet-4-6 anthropic/claude-sonnet-5 anthropic/claude-sonnet-5-5 anthropic/own mock/m"
    ));
    let find = |id: &str| serde_json::to_value(registry.find("anthropic", id).unwrap()).unwrap();
    let opus = find("claude-opus-5");
    assert_eq!((&opus["name"], &opus["baseUrl"]), (&json!("O5"), &json!("http://proxy")));
    assert_eq!(opus["cost"], json!({ "input": 5, "output": 7, "cacheRead": 0.5, "cacheWrite": 6.25 }));
    assert_eq!(opus["promptCache"], json!({ "short": 300, "long": 9 }));
    assert_eq!(opus["compat"]["zork"], 1);
    assert_eq!(opus["compat"]["supportsStrictTools"], true);
    let expected = |id: &str, name: &str| {
        json!({ "id": id, "name": name, "api": "anthropic-messages", "provider": "anthropic",
            "baseUrl": "http://proxy", "reasoning": false, "input": ["text"], "compat": { "zork": 1 },
            "cost": { "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0 },
            "contextWindow": 128_000, "maxTokens": 16_384 })
    };
    assert_eq!(find("claude-sonnet-5"), expected("claude-sonnet-5", "mine"));
    assert_eq!(find("own"), expected("own", "own"));
}

#[tokio::test]
async fn the_headers_of_a_built_in_model_are_sent_unless_models_json_has_others() {
    let model = "nvidia/nemotron-3.5-super-vl-120b-a12b";
    let home = home(&["NVIDIA_API_KEY"]);
    let headers = |home: &Home| {
        let registry = home.load();
        async move {
            let model = registry.find("nvidia", model).unwrap();
            let headers = registry.credentials(&model).await.unwrap().headers;
            let shown = headers.iter().map(|(name, value)| format!("{name}={}", value.expose_secret()));
            shown.collect::<Vec<_>>().join(" ")
        }
    };
    assert_eq!(headers(&home).await, "NVCF-POLL-SECONDS=3600");
    let own = json!({ "providers": { "nvidia": { "headers": { "nvcf-poll-seconds": "5", "x-a": "1" } } } });
    let home = Home::new(&own).variable("NVIDIA_API_KEY", "x");
    assert_eq!(headers(&home).await, "nvcf-poll-seconds=5 x-a=1");
}

#[test]
fn a_provider_with_an_account_in_its_address_needs_it() {
    let home = home(&["CLOUDFLARE_API_KEY"]);
    let registry = home.load();
    assert!(registry.available().is_empty());
    let model = registry.models_of("cloudflare-workers-ai").first().unwrap();
    assert!(registry.check(model).unwrap_err().to_string().ends_with("CLOUDFLARE_ACCOUNT_ID is not set."));
    let registry = home.variable("CLOUDFLARE_ACCOUNT_ID", "acc").load();
    let available = registry.available();
    assert!(available.iter().all(|model| model.provider == "cloudflare-workers-ai"));
    assert_eq!(available[0].base_url, "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1");
}

#[test]
fn vertex_needs_a_key_or_default_credentials_with_a_project_and_a_location() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("adc.json");
    fs::write(&file, "{}").unwrap();
    let (file, nowhere) = (file.to_str().unwrap(), folder.path().join("nope").display().to_string());
    let named = ("GOOGLE_APPLICATION_CREDENTIALS", file);
    let missing = ("GOOGLE_APPLICATION_CREDENTIALS", nowhere.as_str());
    let (project, old) = (("GOOGLE_CLOUD_PROJECT", "p"), ("GCLOUD_PROJECT", "p"));
    let location = ("GOOGLE_CLOUD_LOCATION", "us-central1");
    let metadata = ("GCE_METADATA_HOST", "m");
    for (variables, usable) in [
        (vec![("GOOGLE_CLOUD_API_KEY", "k")], true),
        (vec![project, location], false),
        (vec![project, location, named], true),
        (vec![old, location, named], true),
        (vec![location, named], false),
        (vec![project, named], false),
        (vec![project, location, missing], false),
        (vec![project, location, metadata], true),
        (vec![metadata], false),
    ] {
        let set = |home: Home| variables.iter().fold(home, |home, (name, value)| home.variable(name, value));
        let registry = set(Home::with_text("{}")).load();
        assert_eq!(!registry.available().is_empty(), usable, "{variables:?}");
        assert!(registry.available().iter().all(|model| model.api == "google-vertex"));
        // An entry of auth.json that has no key does not hide them.
        let home = Home::with_text("{}").auth(&json!({ "google-vertex": { "type": "api_key" } }));
        assert_eq!(!set(home).load().available().is_empty(), usable, "{variables:?}");
    }
    let registry = Home::with_text("{}").variable(named.0, named.1).load();
    let why = registry.check(&registry.find("google-vertex", "gemini-2.5-pro").unwrap()).unwrap_err();
    assert!(why.to_string().ends_with("GOOGLE_CLOUD_PROJECT is not set."), "{why}");
    let own = json!({ "google-vertex": { "type": "api_key", "env": {
        "GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "eu", "GOOGLE_APPLICATION_CREDENTIALS": file } } });
    assert!(!Home::with_text("{}").auth(&own).load().available().is_empty());
}

#[tokio::test]
async fn the_variables_of_an_entry_go_with_the_requests_of_its_provider() {
    let entry = json!({ "google-vertex": { "type": "api_key", "key": "k", "env": { "A": "1" } } });
    let registry = Home::with_text("{}").auth(&entry).load();
    let model = registry.find("google-vertex", "gemini-2.5-pro").unwrap();
    let variables = registry.credentials(&model).await.unwrap().variables;
    let shown: Vec<_> =
        variables.iter().map(|(name, value)| (name.as_str(), value.expose_secret())).collect();
    assert_eq!(shown, [("A", "1")]);
}

#[tokio::test]
async fn anthropic_needs_no_key_with_workload_identity_federation() {
    let [rule, organization, file] =
        ["ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID", "ANTHROPIC_IDENTITY_TOKEN_FILE"];
    for (variables, usable) in [
        (&[rule, organization, file][..], true),
        (&[rule, organization], false),
        (&[rule, file], false),
        (&[organization, file], false),
    ] {
        assert_eq!(!home(variables).load().available().is_empty(), usable, "{variables:?}");
    }
    let why = home(&[rule, file]).load();
    let why = why.check(&why.find("anthropic", "claude-opus-5-5").unwrap()).unwrap_err().to_string();
    assert!(
        why.ends_with("ANTHROPIC_ORGANIZATION_ID is not set, and ANTHROPIC_FEDERATION_RULE_ID is."),
        "{why}"
    );

    // The variables are those of the registry's environment, and no other's.
    let registry = home(&[rule, organization, file]).load();
    let credentials = registry.credentials(&registry.available()[0]).await.unwrap();
    assert!(credentials.api_key.is_none());
    assert_eq!(credentials.environment.get(rule), Some("x"));
    assert_eq!(credentials.environment.get("ANTHROPIC_WORKSPACE_ID"), None);

    // An entry without a key leaves it at that.
    let entry = json!({ "anthropic": { "type": "api_key" } });
    let registry = home(&[rule, organization, file]).auth(&entry).load();
    assert!(!registry.available().is_empty());
}

#[test]
fn bedrock_needs_no_key_where_requests_can_be_signed() {
    for (variables, usable) in [
        (&[][..], false),
        (&["AWS_ACCESS_KEY_ID"], false),
        (&["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"], true),
        (&["AWS_PROFILE"], true),
        (&["AWS_BEARER_TOKEN_BEDROCK"], true),
    ] {
        assert_eq!(!home(variables).load().available().is_empty(), usable, "{variables:?}");
    }
}
