//! From the options of a run to what it starts with.

use sampi_protocol::data::ThinkingLevel;

use super::{Assembly, ResourceSource};
use crate::branding::CACHE_RETENTION_VARIABLE;
use crate::cli::Config;
use crate::llm::CacheRetention;
use crate::resources::Paths;
use crate::resources::models::{
    DEMO_PROVIDER, Initial, InitialWish, ModelRegistry, ModelWish, ResolveError, Resolved, ScopedModel,
    ThinkingWish, default_thinking,
};
use crate::resources::paths::{SessionDirWish, SessionsDir};
use crate::resources::settings::{LoadedSettings, ResourceLists, SettingChange, Settings, SettingsWish};
use crate::resources::system_prompt::{PromptError, PromptSources, PromptWish};

/// What a run starts with, before its session is known.
pub struct Startup {
    /// The settings.
    pub settings: Settings,
    /// The user's lists of resources.
    pub user_resources: ResourceLists,
    /// The trusted project's lists of resources.
    pub project_resources: ResourceLists,
    /// True when the project's own configuration counts.
    pub project_trusted: bool,
    /// The models.
    pub registry: ModelRegistry,
    /// The model of the command line.
    pub requested: Option<Resolved>,
    /// The models to cycle through; all available ones when empty.
    pub scoped: Vec<ScopedModel>,
    /// Where sessions are kept.
    pub sessions: SessionsDir,
    /// The user's prompt texts.
    pub prompt: PromptSources,
    /// How long providers should keep prompt caches (`PI_CACHE_RETENTION`).
    pub cache_retention: CacheRetention,
}

/// What a resumed session says about itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionWish<'a> {
    /// Provider and id of its model.
    pub model: Option<(&'a str, &'a str)>,
    /// Its thinking level.
    pub thinking: Option<ThinkingLevel>,
}

/// Why a run cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartupError {
    /// The command line names no model that can be found.
    #[error(transparent)]
    Model(#[from] ResolveError),
    /// A prompt file cannot be read.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// There is a key and no model to use it for.
    #[error("--api-key requires a model to be specified via --model, --provider/--model, or --models")]
    KeyWithoutModel,
}

impl Startup {
    /// Reads the configuration for a working directory. `changes` are settings that no file has yet.
    /// `warnings` gets what is wrong and does no harm, one line each, also when this fails.
    pub fn prepare(
        assembly: &Assembly,
        paths: &Paths,
        changes: &[SettingChange],
        warnings: &mut Vec<String>,
    ) -> Result<Self, StartupError> {
        let Assembly { config, environment, boundaries } = assembly;
        let wish = SettingsWish {
            source: &boundaries.settings,
            overrides: &boundaries.setting_overrides,
            trust: config.trust,
            changes,
        };
        let LoadedSettings {
            settings,
            user_resources,
            project_resources,
            project_trusted,
            warnings: settings_warnings,
        } = Settings::load(paths, wish);
        warnings.extend_from_slice(&config.warnings);
        warnings.extend(settings_warnings);
        let mut registry = (boundaries.models)(environment, paths);
        let http = boundaries.providers.http();
        if let Some(proxy) = &settings.http_proxy {
            http.use_proxy(proxy);
        }
        registry.use_http(http.clone());
        for (provider, key) in &boundaries.api_keys {
            registry.set_api_key(provider, key.clone());
        }
        warnings.extend(registry.warnings().iter().cloned());
        let requested = match (&config.model, &config.provider) {
            (None, None) => None,
            (model, provider) => Some(registry.resolve_pattern(ModelWish {
                provider: provider.as_deref(),
                pattern: model.as_deref().unwrap_or_default(),
                thinking: config.thinking,
            })?),
        };
        if let Some(Resolved { model, warning, .. }) = &requested {
            warnings.extend(warning.clone());
            registry.request(&model.provider);
        }
        let patterns = config.models.as_deref().or(settings.enabled_models.as_deref()).unwrap_or_default();
        if patterns.iter().any(|pattern| names_demo(pattern)) {
            registry.request(DEMO_PROVIDER);
        }
        let (scoped, scope_warnings) = registry.scope(patterns);
        warnings.extend(scope_warnings);
        if let Some(key) = &config.api_key {
            let model = requested.as_ref().map(|requested| &requested.model);
            let first = || scoped.first().map(|scoped| &scoped.model);
            let model = model.or_else(first).ok_or(StartupError::KeyWithoutModel)?;
            registry.set_api_key(&model.provider, key.clone());
        }
        let wish = SessionDirWish {
            option: config.session_dir.as_deref(),
            setting: settings.session_dir.as_deref(),
        };
        let sessions = paths.sessions(environment, wish);
        let wish = PromptWish {
            system_prompt: config.system_prompt.as_deref(),
            appended: &config.append_system_prompt,
            project_trusted,
        };
        let mut prompt = match boundaries.resources {
            ResourceSource::Discovered => PromptSources::load(environment, paths, wish)?,
            ResourceSource::Supplied(_) => PromptSources::default(),
        };
        prompt.custom = boundaries.prompt.custom.clone().or(prompt.custom);
        prompt.appended.extend_from_slice(&boundaries.prompt.appended);
        let cache_retention = match environment.get(CACHE_RETENTION_VARIABLE) {
            Some("long") => CacheRetention::Long,
            _ => CacheRetention::Short,
        };
        Ok(Self {
            settings,
            user_resources,
            project_resources,
            project_trusted,
            registry,
            requested,
            scoped,
            sessions,
            prompt,
            cache_retention,
        })
    }

    /// The model and the thinking level to start with. There may be no model.
    pub fn initial(&self, config: &Config, session: SessionWish<'_>) -> (Initial, ThinkingLevel) {
        let wish =
            InitialWish { requested: self.requested.as_ref(), session: session.model, scoped: &self.scoped };
        let initial = self.registry.initial(wish, &self.settings);
        let from_command_line = self.requested.as_ref().and(initial.thinking);
        let wish = ThinkingWish {
            command_line: config.thinking.or(from_command_line),
            scoped: initial.thinking,
            session: session.thinking,
        };
        let level = match &initial.model {
            Some(model) => default_thinking(model, &self.settings, wish),
            None => ThinkingLevel::Off,
        };
        (initial, level)
    }
}

/// True for a pattern that asks for the demo model by its provider.
fn names_demo(pattern: &str) -> bool {
    pattern.trim().split_once('/').is_some_and(|(provider, _)| provider.eq_ignore_ascii_case(DEMO_PROVIDER))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs;
    use std::sync::Arc;

    use sampi_protocol::data::Model;

    use super::*;
    use crate::assembly::Boundaries;
    use crate::cli::{Invocation, parse};
    use crate::resources::Environment;

    const MODELS: &str = r#"{"providers":{
        "a":{"baseUrl":"h","api":"openai-completions","apiKey":"k","models":[{"id":"m1"},{"id":"m2","reasoning":true}]},
        "nokey":{"baseUrl":"h","api":"openai-completions","models":[{"id":"n"}]}}}"#;

    fn start(args: &[&str], settings: &str, session: SessionWish<'_>) -> String {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("models.json"), MODELS).unwrap();
        fs::write(dir.path().join("settings.json"), settings).unwrap();
        let environment = Environment::new("/", [("PI_CODING_AGENT_DIR", dir.path().to_str().unwrap())]);
        let paths = Paths::new(&environment, dir.path());
        let args = std::iter::once("sampi").chain(args.iter().copied()).map(OsString::from);
        let Ok(Invocation::Run(config)) = parse(args, &environment) else { panic!("not a run") };
        let demo = Model { id: "d".into(), name: "d".into(), provider: "demo".into(), ..Model::default() };
        let models = Arc::new(move |environment: &_, paths: &_| {
            ModelRegistry::load(environment, paths, vec![demo.clone()])
        });
        let boundaries = Boundaries { models, ..Boundaries::default() };
        let assembly = Assembly::new(*config, environment, boundaries, dir.path());
        let mut warnings = Vec::new();
        match Startup::prepare(&assembly, &paths, &[], &mut warnings) {
            Err(error) => format!("! {error}"),
            Ok(startup) => {
                let (initial, level) = startup.initial(&assembly.config, session);
                let model = initial
                    .model
                    .map_or("none".to_owned(), |model| format!("{}/{}", model.provider, model.id));
                let offered: Vec<String> =
                    startup.registry.available().into_iter().map(|model| model.id).collect();
                let warnings = warnings.into_iter().chain(initial.warning).collect::<Vec<_>>().join("|");
                format!("{model} {level} [{}] {warnings}", offered.join(" ")).trim_end().to_owned()
            }
        }
    }

    #[test]
    fn options_settings_and_session_lead_to_one_model_and_level() {
        let resumed = SessionWish { model: Some(("a", "m2")), thinking: Some(ThinkingLevel::Low) };
        let none = SessionWish::default();
        for (args, settings, session, expected) in [
            (&[][..], "{}", none, "a/m1 off [m1 m2]"),
            (&["--model", "m2:high"], "{}", none, "a/m2 high [m1 m2]"),
            (&["--model", "m2:high", "--thinking", "low"], "{}", none, "a/m2 low [m1 m2]"),
            (&["--models", "m2:minimal"], "{}", none, "a/m2 minimal [m1 m2]"),
            (&["--models", "m2:minimal", "--model", "m2"], "{}", none, "a/m2 medium [m1 m2]"),
            (
                &[],
                r#"{"enabledModels":["zzz","m2:low"]}"#,
                none,
                "a/m2 low [m1 m2] No models match pattern \"zzz\"",
            ),
            (&[], "{}", resumed, "a/m2 low [m1 m2]"),
            (&["--thinking", "high"], "{}", resumed, "a/m2 high [m1 m2]"),
            (&["--model", "nokey/n", "--api-key", "k"], "{}", none, "nokey/n off [m1 m2 n]"),
            (&["--provider", "demo"], "{}", none, "demo/d off [m1 m2 d]"),
            (&["--model", "demo/d"], "{}", none, "demo/d off [m1 m2 d]"),
            (&["--models", "demo/*"], "{}", none, "demo/d off [m1 m2 d]"),
            (
                &["--models", "zzz", "--api-key", "k"],
                "{}",
                none,
                "! --api-key requires a model to be specified via --model, --provider/--model, or --models",
            ),
            (
                &["--model", "zzz"],
                "{}",
                none,
                "! Model \"zzz\" not found. Use --list-models to see available models.",
            ),
        ] {
            let found = start(args, settings, session);
            // Of warnings from elsewhere the beginning is enough.
            let same =
                if expected.ends_with("level") { found.starts_with(expected) } else { found == expected };
            assert!(same, "{args:?} {settings}: {found}");
        }
    }
}
