use serde_json::json;

use super::*;

fn table(provider: &str) -> &'static str {
    TABLES.iter().find(|(id, _)| *id == provider).unwrap().1
}

#[test]
fn every_line_of_every_table_can_be_read() {
    let mut models = 0;
    for (provider, table) in TABLES {
        let mut shared = Shared::default();
        let mut ids = std::collections::BTreeSet::new();
        for line in table.lines() {
            let model = shared.read_line(provider, line);
            let model = model.unwrap_or_else(|| panic!("{provider}: {line}"));
            if let Some(model) = model {
                assert!(ids.insert(model.id), "{provider}: {line}");
            }
        }
        assert!(!ids.is_empty(), "{provider}");
        models += ids.len();
    }
    assert!(models > 1000, "{models}");
}

#[test]
fn the_readme_tells_how_many_models_can_be_used() {
    let counts =
        TABLES.iter().map(|(provider, table)| read(provider, table).len()).filter(|count| *count > 0);
    let (providers, models) =
        counts.fold((0, 0), |(providers, models), count| (providers + 1, models + count));
    let told = format!("{},{:03} models of {providers} providers", models / 1000, models % 1000);
    let readme = include_str!("../../../../../README.md");
    assert!(readme.contains(&told), "README.md must tell of {told}");
}

#[test]
fn every_default_is_in_the_table_of_its_provider() {
    for (provider, id) in DEFAULT_MODELS {
        assert!(table(provider).contains(&format!("\nm\t{id}\t")), "{provider}/{id}");
    }
}

#[test]
fn a_line_that_is_cut_or_odd_is_no_model() {
    for line in [
        "",
        "m",
        "m\ta",
        "q\ta",
        "c\t{",
        "m\ta\ta\t7\t\t\t\t0\tt\t1\t1\t0/0/0/0",
        "m\ta\ta\t0\t\t\t3\t0\tt\t1\t1\t0/0/0/0",
        "m\ta\ta\t0\t\t\t\t0\tq\t1\t1\t0/0/0/0",
        "m\ta\ta\t0\t\t\t\t0\tt\t1\t1\t0/0/0",
        "m\ta\ta\t0\t\t\t\t0\tt\t1\t1\t0/0/0/0;1/1/1/1",
        "m\ta\ta\t0\t\t\t\t0\tt\t-1\t1\t0/0/0/0",
    ] {
        let mut shared = Shared { endpoints: vec![("api", "url")], ..Shared::default() };
        assert_eq!(shared.read_line("p", line), None, "{line:?}");
    }
}

#[test]
fn a_model_has_all_that_the_facts_say_of_it() {
    let models = read("openai", table("openai"));
    let model = models.iter().find(|model| model.id == "gpt-6.2-sol").unwrap();
    let shown = serde_json::to_value(model).unwrap();
    assert_eq!((&shown["api"], &shown["type"]), (&json!("openai-responses"), &json!("chat")));
    assert_eq!(shown["baseUrl"], "https://api.openai.com/v1");
    assert_eq!(shown["input"], json!(["text", "image"]));
    assert!(shown["inputLimits"]["images"]["resize"]["maxWidth"].is_u64());
    let tiers = model.cost.tiers.as_ref().unwrap();
    assert!(tiers[0].input_tokens_above > 0 && tiers[0].input > model.cost.input);
}

#[test]
fn models_with_an_api_that_is_not_spoken_are_left_out() {
    assert!(read("radius", table("radius")).is_empty());
    assert!(!read("anthropic", table("anthropic")).is_empty());
}
