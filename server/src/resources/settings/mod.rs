//! `settings.json`: the user's file, then the project's over it.

mod keys;
#[cfg(test)]
mod tests;
mod tool_list;

use std::path::Path;
use std::time::Duration;

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Map, Value};

use super::trust::{TrustDecision, decide_trust};
use super::{Environment, Paths, jsonc};
use crate::llm::ThinkingBudgets;
pub use sampi_protocol::commands::QueueMode;
pub use tool_list::{DEFAULT_TOOLS, change_tools, is_change_list};

/// Silence of a provider's stream after which it counts as dead.
const DEFAULT_HTTP_IDLE_TIMEOUT: Duration = Duration::from_millis(300_000);

/// What to do with the configuration of a project that the user has said nothing about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DefaultProjectTrust {
    /// Ask. A headless run cannot, so it leaves the configuration out.
    #[default]
    Ask,
    /// Use it.
    Always,
    /// Leave it out.
    Never,
}

/// What this run says about the project's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustOverride {
    /// Nothing: the user's settings decide.
    #[default]
    Unset,
    /// `--approve`
    Approve,
    /// `--no-approve`
    Deny,
}

/// Compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompactionSettings {
    /// True to compact automatically.
    pub enabled: bool,
    /// Compaction starts when fewer tokens than this are free.
    pub reserve_tokens: u64,
    /// Recent tokens that are kept as they are.
    pub keep_recent_tokens: u64,
}

/// Summaries of branches that are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BranchSummarySettings {
    /// Tokens that are kept free for the summary.
    pub reserve_tokens: u64,
    /// True to make no summary unless asked.
    pub skip_prompt: bool,
}

/// Images on their way to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImagesSettings {
    /// True to make large images smaller.
    pub auto_resize: bool,
    /// True to send no images at all.
    pub block_images: bool,
}

/// New attempts after transient failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetrySettings {
    /// True to try again.
    pub enabled: bool,
    /// Most attempts after the first.
    pub max_retries: u32,
    /// Delay before the first of them; it doubles each time.
    pub base_delay: Duration,
    /// Longest delay.
    pub max_delay: Duration,
    /// Attempts inside one request to a provider.
    pub provider: ProviderRetrySettings,
}

/// Attempts inside one request to a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderRetrySettings {
    /// Longest request; the idle timeout when absent.
    pub timeout: Option<Duration>,
    /// Most attempts after the first.
    pub max_retries: u32,
    /// Longest delay that a provider may ask for; no limit when absent.
    pub max_retry_delay: Option<Duration>,
}

/// The settings of a run, with Pi's defaults where the files say nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Provider of the model to start with.
    pub default_provider: Option<String>,
    /// Model to start with.
    pub default_model: Option<String>,
    /// Thinking level to start with, if the user chose one.
    pub default_thinking_level: Option<ThinkingLevel>,
    /// Tokens of thinking for each level.
    pub thinking_budgets: ThinkingBudgets,
    /// Patterns of the models to start with and to cycle through.
    pub enabled_models: Option<Vec<String>>,
    /// How steering messages are delivered.
    pub steering_mode: QueueMode,
    /// How follow-up messages are delivered.
    pub follow_up_mode: QueueMode,
    /// What to do with a project's configuration; only the user's file can say.
    pub default_project_trust: DefaultProjectTrust,
    /// Tools that are on at the start.
    pub default_tools: Vec<String>,
    /// Where sessions are kept, as written.
    pub session_dir: Option<String>,
    /// Compaction of models without values of their own; see [`Settings::compaction_of`].
    pub compaction: CompactionSettings,
    /// Branch summaries.
    pub branch_summary: BranchSummarySettings,
    /// Images.
    pub images: ImagesSettings,
    /// Proxy for requests; only the user's file can say.
    pub http_proxy: Option<String>,
    /// Longest silence of a response; no limit when absent.
    pub http_idle_timeout: Option<Duration>,
    /// Retries.
    pub retry: RetrySettings,
    /// The shell, as written.
    pub shell_path: Option<String>,
    /// Put before every shell command.
    pub shell_command_prefix: Option<String>,
    /// Both files merged, without what had the wrong type: also what this version does not know.
    pub raw: Map<String, Value>,
}

/// The lists of skills and prompt templates in one settings file, as written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceLists {
    /// `skills`
    pub skills: Vec<String>,
    /// `prompts`
    pub prompts: Vec<String>,
}

impl ResourceLists {
    fn of(settings: &Map<String, Value>) -> Self {
        let read = Reader(settings);
        let list = |name| read.texts(&[name]).unwrap_or_default();
        Self { skills: list("skills"), prompts: list("prompts") }
    }
}

/// Where settings come from.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum SettingsSource {
    /// The user's file and the trusted project's.
    #[default]
    Files,
    /// This object. No file is read, and none is written.
    Memory(Map<String, Value>),
}

/// A setting that was changed after the settings were read.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingChange {
    /// The keys that lead to it.
    pub path: &'static [&'static str],
    /// Its value.
    pub value: Value,
}

impl SettingChange {
    /// Puts the value into the settings; what is no object on the way becomes one.
    pub fn apply(self, settings: &mut Map<String, Value>) {
        set(settings, self.path, self.value);
    }
}

fn set(settings: &mut Map<String, Value>, path: &[&str], value: Value) {
    match path {
        [] => {}
        [key] => drop(settings.insert((*key).to_owned(), value)),
        [key, rest @ ..] => {
            let inner = settings.entry(*key).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
    }
}

/// Which settings to load.
#[derive(Debug, Clone, Copy)]
pub struct SettingsWish<'a> {
    /// Where they come from.
    pub source: &'a SettingsSource,
    /// Laid over everything else.
    pub overrides: &'a Map<String, Value>,
    /// What this run says about the project's configuration.
    pub trust: TrustOverride,
    /// The user's changes that are not in the source, oldest first.
    pub changes: &'a [SettingChange],
}

/// Settings and what was wrong with the files.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedSettings {
    /// The settings.
    pub settings: Settings,
    /// The user's lists of resources; their relative paths start at the agent directory.
    pub user_resources: ResourceLists,
    /// The trusted project's lists of resources; their relative paths start at `.pi`.
    pub project_resources: ResourceLists,
    /// True when the project's configuration may be used.
    pub project_trusted: bool,
    /// What was wrong, one line each, naming file and key.
    pub warnings: Vec<String>,
}

impl Settings {
    /// Reads the user's file and, where the project is trusted, the project's.
    ///
    /// `sessionDir` of the project counts without trust, as in Pi, so that its sessions are found.
    pub fn load(paths: &Paths, wish: SettingsWish<'_>) -> LoadedSettings {
        let mut warnings = Vec::new();
        let user_file = paths.user_settings();
        let mut merged = match wish.source {
            SettingsSource::Files => read_file(&user_file, &mut warnings),
            SettingsSource::Memory(settings) => {
                let mut settings = settings.clone();
                keys::check(&mut settings, "settings in memory", &mut warnings);
                settings
            }
        };
        wish.changes.iter().cloned().for_each(|change| change.apply(&mut merged));
        let mut overrides = wish.overrides.clone();
        keys::check(&mut overrides, "settings that override others", &mut warnings);
        let mut user = merged.clone();
        merge(&mut user, overrides.clone(), Level::Below);
        let TrustDecision { trusted: project_trusted, mut left_out, warning } =
            decide_trust(paths, wish.trust, trust_of(&user));
        warnings.extend(warning);
        let user_resources = ResourceLists::of(&user);
        let mut project_resources = ResourceLists::default();
        let project_file = paths.project_settings();
        // With the home directory as working directory the two are one file.
        if project_file != user_file && *wish.source == SettingsSource::Files {
            // Nothing of an untrusted file is worth a warning.
            let mut project_warnings = Vec::new();
            let mut project = read_file(&project_file, &mut project_warnings);
            let had_settings = project.keys().any(|key| key != "sessionDir");
            if project_trusted {
                warnings.append(&mut project_warnings);
                for key in keys::USER_ONLY {
                    if project.shift_remove(*key).is_some() {
                        let file = project_file.display();
                        warnings.push(format!(
                            "{file}: {key} is only allowed in the user's settings; it is ignored"
                        ));
                    }
                }
            } else {
                project.retain(|key, _| key == "sessionDir");
                if !had_settings {
                    let file = project_file.display().to_string();
                    left_out.retain(|path| *path != file);
                }
            }
            project_resources = ResourceLists::of(&project);
            let tools = tool_list::merge(merged.get("defaultTools"), project.get("defaultTools"));
            merge(&mut merged, project, Level::Top);
            if let Some(tools) = tools {
                merged.insert("defaultTools".to_owned(), tools);
            }
        }
        if !left_out.is_empty() {
            let left_out = left_out.join(", ");
            warnings.push(format!(
                "the project is not trusted, so this is left out: {left_out}; --approve uses it"
            ));
        }
        merge(&mut merged, overrides, Level::Below);
        let settings = Self::from_map(merged);
        LoadedSettings { settings, user_resources, project_resources, project_trusted, warnings }
    }

    /// The settings in a merged object. What has the wrong type counts as absent.
    pub fn from_map(mut raw: Map<String, Value>) -> Self {
        keys::check(&mut raw, "settings", &mut Vec::new());
        let read = Reader(&raw);
        Self {
            default_provider: read.text(&["defaultProvider"]),
            default_model: read.text(&["defaultModel"]),
            default_thinking_level: read
                .text(&["defaultThinkingLevel"])
                .and_then(|name| ThinkingLevel::parse(&name)),
            thinking_budgets: ThinkingBudgets {
                minimal: read.count(&["thinkingBudgets", "minimal"]),
                low: read.count(&["thinkingBudgets", "low"]),
                medium: read.count(&["thinkingBudgets", "medium"]),
                high: read.count(&["thinkingBudgets", "high"]),
            },
            enabled_models: read.texts(&["enabledModels"]),
            steering_mode: read.queue_mode(&["steeringMode"]),
            follow_up_mode: read.queue_mode(&["followUpMode"]),
            default_project_trust: trust_of(&raw),
            default_tools: match read.texts(&["defaultTools"]) {
                Some(list) => change_tools(&DEFAULT_TOOLS.map(str::to_owned), &list),
                None => DEFAULT_TOOLS.map(str::to_owned).to_vec(),
            },
            session_dir: read.text(&["sessionDir"]),
            compaction: CompactionSettings {
                enabled: read.flag(&["compaction", "enabled"], Fallback::On),
                reserve_tokens: read.count(&["compaction", "reserveTokens"]).unwrap_or(16_384),
                keep_recent_tokens: read.count(&["compaction", "keepRecentTokens"]).unwrap_or(20_000),
            },
            branch_summary: BranchSummarySettings {
                reserve_tokens: read.count(&["branchSummary", "reserveTokens"]).unwrap_or(16_384),
                skip_prompt: read.flag(&["branchSummary", "skipPrompt"], Fallback::Off),
            },
            images: ImagesSettings {
                auto_resize: read.flag(&["images", "autoResize"], Fallback::On),
                block_images: read.flag(&["images", "blockImages"], Fallback::Off),
            },
            http_proxy: read.text(&["httpProxy"]).filter(|proxy| !proxy.trim().is_empty()),
            http_idle_timeout: match read.get(&["httpIdleTimeoutMs"]) {
                None => Some(DEFAULT_HTTP_IDLE_TIMEOUT),
                Some(value) => keys::count(value).filter(|ms| *ms > 0).map(Duration::from_millis),
            },
            retry: RetrySettings {
                enabled: read.flag(&["retry", "enabled"], Fallback::On),
                max_retries: read.small(&["retry", "maxRetries"]).unwrap_or(3),
                base_delay: read.millis(&["retry", "baseDelayMs"]).unwrap_or(Duration::from_millis(2_000)),
                max_delay: read
                    .millis(&["retry", "maxAgentDelayMs"])
                    .unwrap_or(Duration::from_millis(60_000)),
                provider: ProviderRetrySettings {
                    timeout: read.millis(&["retry", "provider", "timeoutMs"]),
                    max_retries: read.small(&["retry", "provider", "maxRetries"]).unwrap_or(0),
                    max_retry_delay: match read.millis(&["retry", "provider", "maxRetryDelayMs"]) {
                        Some(Duration::ZERO) => None,
                        Some(delay) => Some(delay),
                        None => Some(Duration::from_millis(60_000)),
                    },
                },
            },
            shell_path: read.text(&["shellPath"]).filter(|path| !path.is_empty()),
            shell_command_prefix: read.text(&["shellCommandPrefix"]).filter(|prefix| !prefix.is_empty()),
            raw,
        }
    }

    /// The thinking level that the user chose for one model.
    pub fn thinking_level_of(&self, provider: &str, model: &str) -> Option<ThinkingLevel> {
        let key = format!("{provider}/{model}");
        Reader(&self.raw).get(&["modelThinkingLevels", &key])?.as_str().and_then(ThinkingLevel::parse)
    }

    /// Compaction for one model: its own values, then the ordinary ones.
    pub fn compaction_of(&self, provider: &str, model: &str) -> CompactionSettings {
        let key = format!("{provider}/{model}");
        let read = Reader(&self.raw);
        let value =
            |field, ordinary| read.count(&["compaction", "modelOverrides", &key, field]).unwrap_or(ordinary);
        CompactionSettings {
            enabled: self.compaction.enabled,
            reserve_tokens: value("reserveTokens", self.compaction.reserve_tokens),
            keep_recent_tokens: value("keepRecentTokens", self.compaction.keep_recent_tokens),
        }
    }

    /// The shell that the user chose, with `~` expanded.
    pub fn shell(&self, environment: &Environment) -> Option<std::path::PathBuf> {
        self.shell_path.as_deref().map(|path| environment.expand_tilde(path))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::from_map(Map::new())
    }
}

fn trust_of(settings: &Map<String, Value>) -> DefaultProjectTrust {
    match settings.get("defaultProjectTrust").and_then(Value::as_str) {
        Some("always") => DefaultProjectTrust::Always,
        Some("never") => DefaultProjectTrust::Never,
        _ => DefaultProjectTrust::Ask,
    }
}

fn read_file(path: &Path, warnings: &mut Vec<String>) -> Map<String, Value> {
    match jsonc::read_object(path) {
        Ok(settings) => {
            let mut settings = settings.unwrap_or_default();
            keys::check(&mut settings, &path.display().to_string(), warnings);
            settings
        }
        Err(error) => {
            warnings.push(format!("invalid settings file {error}; its settings are ignored"));
            Map::new()
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Top,
    Below,
}

/// Lays `over` on `base`: objects field by field, resource lists one after the other, the rest replaced.
fn merge(base: &mut Map<String, Value>, over: Map<String, Value>, level: Level) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over, Level::Below),
            (Some(Value::Array(base)), Value::Array(over))
                if level == Level::Top && keys::RESOURCE_LISTS.contains(&key.as_str()) =>
            {
                base.extend(over);
            }
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Fallback {
    On,
    Off,
}

struct Reader<'a>(&'a Map<String, Value>);

impl<'a> Reader<'a> {
    fn get(&self, path: &[&str]) -> Option<&'a Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.0.get(*first)?, |value, name| value.get(*name))
    }

    fn text(&self, path: &[&str]) -> Option<String> {
        self.get(path)?.as_str().map(str::to_owned)
    }

    fn texts(&self, path: &[&str]) -> Option<Vec<String>> {
        let items = self.get(path)?.as_array()?;
        Some(items.iter().filter_map(Value::as_str).map(str::to_owned).collect())
    }

    fn count(&self, path: &[&str]) -> Option<u64> {
        self.get(path).and_then(keys::count)
    }

    fn small(&self, path: &[&str]) -> Option<u32> {
        self.count(path).map(|count| u32::try_from(count).unwrap_or(u32::MAX))
    }

    fn millis(&self, path: &[&str]) -> Option<Duration> {
        self.count(path).map(Duration::from_millis)
    }

    fn flag(&self, path: &[&str], fallback: Fallback) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or(matches!(fallback, Fallback::On))
    }

    fn queue_mode(&self, path: &[&str]) -> QueueMode {
        match self.get(path).and_then(Value::as_str) {
            Some("all") => QueueMode::All,
            _ => QueueMode::OneAtATime,
        }
    }
}
