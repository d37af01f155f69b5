use std::fs;

use serde_json::json;

use super::*;

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".pi/agent")).unwrap();
        fs::create_dir_all(dir.path().join("w/.pi")).unwrap();
        Self { dir }
    }

    fn user(self, text: &str) -> Self {
        fs::write(self.dir.path().join(".pi/agent/settings.json"), text).unwrap();
        self
    }

    fn project(self, text: &str) -> Self {
        fs::write(self.dir.path().join("w/.pi/settings.json"), text).unwrap();
        self
    }

    fn load(&self, trust: TrustOverride) -> LoadedSettings {
        let environment = Environment::new(self.dir.path(), [("", ""); 0]);
        let wish =
            SettingsWish { source: &SettingsSource::Files, overrides: &Map::new(), trust, changes: &[] };
        Settings::load(&Paths::new(&environment, self.dir.path().join("w")), wish)
    }
}

#[test]
fn defaults_are_those_of_pi() {
    let settings = Home::new().load(TrustOverride::Unset).settings;
    assert_eq!(settings, Settings::default());
    assert_eq!(settings.default_tools, ["read", "bash", "edit", "write"]);
    assert_eq!(settings.steering_mode, QueueMode::OneAtATime);
    assert_eq!(
        settings.compaction,
        CompactionSettings { enabled: true, reserve_tokens: 16_384, keep_recent_tokens: 20_000 }
    );
    assert_eq!(settings.http_idle_timeout, Some(Duration::from_secs(300)));
    assert!(settings.images.auto_resize && !settings.images.block_images);
    let retry = settings.retry;
    assert_eq!((retry.enabled, retry.max_retries, retry.base_delay), (true, 3, Duration::from_secs(2)));
    assert_eq!(
        (retry.provider.max_retries, retry.provider.max_retry_delay),
        (0, Some(Duration::from_secs(60)))
    );
}

#[test]
fn a_trusted_project_overrides_field_by_field_and_resource_lists_add_up() {
    let home = Home::new()
        .user(r#"{"compaction":{"enabled":false,"reserveTokens":1},"enabledModels":["a"],"skills":["u"],"mine":{"x":1}}"#)
        .project(r#"{"compaction":{"reserveTokens":2},"enabledModels":["b","c"],"skills":["p"],"mine":{"y":2}}"#);
    let loaded = home.load(TrustOverride::Approve);
    assert!(loaded.project_trusted && loaded.warnings.is_empty());
    let settings = loaded.settings;
    assert!(!settings.compaction.enabled);
    assert_eq!(settings.compaction.reserve_tokens, 2);
    assert_eq!(settings.enabled_models, Some(vec!["b".to_owned(), "c".to_owned()]));
    assert_eq!(settings.raw["skills"], json!(["u", "p"]));
    assert_eq!(settings.raw["mine"], json!({ "x": 1, "y": 2 }));
}

#[test]
fn an_untrusted_project_counts_for_its_session_directory_only() {
    let project = r#"{"shellCommandPrefix":"evil","sessionDir":"s","retry":7}"#;
    let (not_trusted, wrong) = ("w/.pi/settings.json; --approve uses it", "retry must be an object");
    for (trust, user, trusted, warning) in [
        (TrustOverride::Unset, "{}", false, not_trusted),
        (TrustOverride::Unset, r#"{"defaultProjectTrust":"never"}"#, false, ""),
        (TrustOverride::Unset, r#"{"defaultProjectTrust":"always"}"#, true, wrong),
        (TrustOverride::Deny, r#"{"defaultProjectTrust":"always"}"#, false, ""),
        (TrustOverride::Approve, r#"{"defaultProjectTrust":"never"}"#, true, wrong),
    ] {
        let loaded = Home::new().user(user).project(project).load(trust);
        assert_eq!(loaded.project_trusted, trusted, "{trust:?} {user}");
        assert_eq!(loaded.settings.shell_command_prefix.is_some(), trusted);
        assert_eq!(loaded.settings.session_dir.as_deref(), Some("s"));
        assert_eq!(loaded.warnings.is_empty(), warning.is_empty(), "{:?}", loaded.warnings);
        assert!(loaded.warnings.concat().contains(warning), "{:?}", loaded.warnings);
    }
}

#[test]
fn a_project_cannot_set_the_proxy_or_trust_itself() {
    let loaded = Home::new()
        .project(r#"{"httpProxy":"http://evil","defaultProjectTrust":"always"}"#)
        .load(TrustOverride::Approve);
    assert_eq!(loaded.settings.http_proxy, None);
    assert_eq!(loaded.settings.default_project_trust, DefaultProjectTrust::Ask);
    assert_eq!(loaded.warnings.len(), 2);
    assert!(loaded.warnings[0].contains("w/.pi/settings.json: defaultProjectTrust"), "{:?}", loaded.warnings);
}

#[test]
fn a_wrong_type_is_a_warning_that_names_file_key_and_expectation_and_the_default_holds() {
    let home = Home::new().user(
        r#"{"steeringMode":"zork","retry":{"maxRetries":"x","baseDelayMs":50},"compaction":7,"defaultModel":3,
            "httpProxy":["s3cret"],"modelThinkingLevels":{"p/a":"high","p/b":"very"},"httpIdleTimeoutMs":-1,"other":[1]}"#,
    );
    let loaded = home.load(TrustOverride::Unset);
    let settings = &loaded.settings;
    assert_eq!(settings.steering_mode, QueueMode::OneAtATime);
    assert_eq!((settings.retry.max_retries, settings.retry.base_delay), (3, Duration::from_millis(50)));
    assert_eq!(settings.compaction, Settings::default().compaction);
    assert_eq!(settings.thinking_level_of("p", "a"), Some(ThinkingLevel::High));
    assert_eq!(settings.thinking_level_of("p", "b"), None);
    assert_eq!(settings.raw["other"], json!([1]));
    let all = loaded.warnings.join("\n");
    for expected in [
        r#"agent/settings.json: steeringMode must be one of "all", "one-at-a-time", not "zork"; it is ignored"#,
        "agent/settings.json: retry.maxRetries must be a whole number that is not negative, not a string",
        "agent/settings.json: compaction must be an object, not 7",
        "agent/settings.json: defaultModel must be a string, not 3",
        r#"modelThinkingLevels["p/b"] must be one of "off", "minimal""#,
        "httpProxy must be a string, not a list",
        r#"httpIdleTimeoutMs must be a number of milliseconds or "disabled", not -1"#,
    ] {
        assert!(all.contains(expected), "{expected}\n{all}");
    }
    assert_eq!(loaded.warnings.len(), 7);
    assert!(!all.contains("s3cret"));
}

#[test]
fn a_wrong_type_in_the_project_leaves_the_users_value() {
    let loaded = Home::new()
        .user(r#"{"retry":{"maxRetries":9}}"#)
        .project(r#"{"retry":{"maxRetries":true}}"#)
        .load(TrustOverride::Approve);
    assert_eq!(loaded.settings.retry.max_retries, 9);
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn an_unreadable_file_is_a_warning_with_its_position_and_the_other_file_counts() {
    let loaded = Home::new()
        .user("{\n \"steeringMode\": all\n}")
        .project("// mine\n{\"followUpMode\":\"all\",}")
        .load(TrustOverride::Approve);
    assert_eq!(loaded.settings.follow_up_mode, QueueMode::All);
    assert_eq!(loaded.warnings.len(), 1);
    assert!(loaded.warnings[0].contains("agent/settings.json:2:18: not valid JSON"), "{:?}", loaded.warnings);
}

#[test]
fn zero_and_disabled_turn_the_idle_timeout_off() {
    for (text, expected) in
        [("0", None), ("\"disabled\"", None), ("1500", Some(1500)), ("null", Some(300_000))]
    {
        let loaded =
            Home::new().user(&format!(r#"{{"httpIdleTimeoutMs":{text}}}"#)).load(TrustOverride::Unset);
        assert_eq!(loaded.settings.http_idle_timeout, expected.map(Duration::from_millis), "{text}");
        assert!(loaded.warnings.is_empty());
    }
}

#[test]
fn compaction_values_resolve_one_by_one_from_the_model_then_the_ordinary_setting() {
    let home = Home::new().user(
        r#"{"compaction":{"keepRecentTokens":10,"modelOverrides":{"p/m":{"reserveTokens":5},"p/n":{"reserveTokens":-1}}}}"#,
    );
    let loaded = home.load(TrustOverride::Unset);
    let own = loaded.settings.compaction_of("p", "m");
    assert_eq!((own.reserve_tokens, own.keep_recent_tokens), (5, 10));
    assert_eq!(loaded.settings.compaction_of("p", "n").reserve_tokens, 16_384);
    assert!(
        loaded.warnings[0].contains(r#"compaction.modelOverrides["p/n"].reserveTokens"#),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn default_tools_replace_or_change_what_was_selected_before() {
    for (user, project, expected) in [
        (None, None, "read bash edit write"),
        (Some(r#"["+grep","-bash"]"#), None, "read edit write grep"),
        (Some(r#"["read","-read","+ls"]"#), None, "ls"),
        (Some("[]"), None, ""),
        (Some(r#"["+grep"]"#), Some(r#"["-read"]"#), "bash edit write grep"),
        (Some(r#"["grep","ls"]"#), Some(r#"["+find"]"#), "grep ls find"),
        (Some(r#"["grep"]"#), Some(r#"["read"]"#), "read"),
        (None, Some(r#"["-write","-write"]"#), "read bash edit"),
    ] {
        let wrap =
            |list: Option<&str>| list.map_or("{}".to_owned(), |list| format!(r#"{{"defaultTools":{list}}}"#));
        let loaded = Home::new().user(&wrap(user)).project(&wrap(project)).load(TrustOverride::Approve);
        assert_eq!(loaded.settings.default_tools.join(" "), expected, "{user:?} {project:?}");
    }
}

#[test]
fn the_shell_path_expands_a_tilde() {
    let settings = Settings::from_map(json!({ "shellPath": "~/bin/sh" }).as_object().cloned().unwrap());
    let environment = Environment::new("/home/u", [("", ""); 0]);
    assert_eq!(settings.shell(&environment), Some("/home/u/bin/sh".into()));
}
