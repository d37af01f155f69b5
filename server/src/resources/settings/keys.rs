//! What settings there are, and what each must look like.

use sampi_protocol::data::ThinkingLevel;
use sampi_protocol::number::MAX_SAFE_INTEGER;
use serde_json::{Map, Value};

/// What a setting must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    /// A whole number that is not negative.
    Count,
    /// Milliseconds, or `"disabled"`.
    TimeLimit,
    OneOf(&'static [&'static str]),
    Texts,
    List,
    Thinking,
    /// Thinking levels by `provider/modelId`.
    ThinkingByModel,
    /// An object whose fields are listed by themselves.
    Object,
    /// Compaction values by `provider/modelId`.
    CompactionByModel,
    /// Compaction values of one model.
    CompactionValues,
}

const QUEUE_MODES: Kind = Kind::OneOf(&["all", "one-at-a-time"]);

/// The settings that a headless run knows, with their path. Other keys are kept and not checked.
pub(super) const KEYS: &[(&[&str], Kind)] = &[
    (&["defaultProvider"], Kind::Text),
    (&["defaultModel"], Kind::Text),
    (&["defaultThinkingLevel"], Kind::Thinking),
    (&["modelThinkingLevels"], Kind::ThinkingByModel),
    (&["thinkingBudgets"], Kind::Object),
    (&["thinkingBudgets", "minimal"], Kind::Count),
    (&["thinkingBudgets", "low"], Kind::Count),
    (&["thinkingBudgets", "medium"], Kind::Count),
    (&["thinkingBudgets", "high"], Kind::Count),
    (&["enabledModels"], Kind::Texts),
    (&["steeringMode"], QUEUE_MODES),
    (&["followUpMode"], QUEUE_MODES),
    (&["defaultProjectTrust"], Kind::OneOf(&["ask", "always", "never"])),
    (&["defaultTools"], Kind::Texts),
    (&["sessionDir"], Kind::Text),
    (&["compaction"], Kind::Object),
    (&["compaction", "enabled"], Kind::Flag),
    (&["compaction", "reserveTokens"], Kind::Count),
    (&["compaction", "keepRecentTokens"], Kind::Count),
    (&["compaction", "modelOverrides"], Kind::CompactionByModel),
    (&["branchSummary"], Kind::Object),
    (&["branchSummary", "reserveTokens"], Kind::Count),
    (&["branchSummary", "skipPrompt"], Kind::Flag),
    (&["images"], Kind::Object),
    (&["images", "autoResize"], Kind::Flag),
    (&["images", "blockImages"], Kind::Flag),
    (&["httpProxy"], Kind::Text),
    (&["httpIdleTimeoutMs"], Kind::TimeLimit),
    (&["retry"], Kind::Object),
    (&["retry", "enabled"], Kind::Flag),
    (&["retry", "maxRetries"], Kind::Count),
    (&["retry", "baseDelayMs"], Kind::Count),
    (&["retry", "maxAgentDelayMs"], Kind::Count),
    (&["retry", "provider"], Kind::Object),
    (&["retry", "provider", "timeoutMs"], Kind::Count),
    (&["retry", "provider", "maxRetries"], Kind::Count),
    (&["retry", "provider", "maxRetryDelayMs"], Kind::Count),
    (&["shellPath"], Kind::Text),
    (&["shellCommandPrefix"], Kind::Text),
    (&["packages"], Kind::List),
    (&["extensions"], Kind::Texts),
    (&["skills"], Kind::Texts),
    (&["prompts"], Kind::Texts),
    (&["themes"], Kind::Texts),
];

/// Lists of resources: the project's come after the user's instead of replacing them.
pub(super) const RESOURCE_LISTS: &[&str] = &["packages", "extensions", "skills", "prompts", "themes"];

/// Settings that only the user's own file may hold: a project must not redirect traffic or trust itself.
pub(super) const USER_ONLY: &[&str] =
    &["defaultProjectTrust", "httpProxy", "selfUpdateCommand", "cacheWarming"];

/// Takes out what has the wrong type, with a warning for each, and nulls, which mean nothing.
pub(super) fn check(settings: &mut Map<String, Value>, file: &str, warnings: &mut Vec<String>) {
    for (path, kind) in KEYS {
        let Some((last, parents)) = path.split_last() else { continue };
        let Some(object) =
            parents.iter().try_fold(&mut *settings, |object, name| object.get_mut(*name)?.as_object_mut())
        else {
            continue;
        };
        check_value(object, last, &path.join("."), *kind, file, warnings);
    }
}

fn check_value(
    object: &mut Map<String, Value>,
    key: &str,
    name: &str,
    kind: Kind,
    file: &str,
    warnings: &mut Vec<String>,
) {
    let Some(value) = object.get_mut(key) else { return };
    if value.is_null() {
        object.shift_remove(key);
    } else if !kind.accepts(value) {
        let found = found(value, kind);
        warnings.push(format!("{file}: {name} must be {}, not {found}; it is ignored", kind.expected()));
        object.shift_remove(key);
    } else if let (Some(entry_kind), Some(entries)) = (kind.of_entries(), value.as_object_mut()) {
        let keys: Vec<String> = entries.keys().cloned().collect();
        for key in keys {
            let name = format!("{name}[{key:?}]");
            check_value(entries, &key, &name, entry_kind, file, warnings);
            if let (Kind::CompactionValues, Some(values)) =
                (entry_kind, entries.get_mut(&key).and_then(Value::as_object_mut))
            {
                for field in ["reserveTokens", "keepRecentTokens"] {
                    check_value(values, field, &format!("{name}.{field}"), Kind::Count, file, warnings);
                }
            }
        }
    }
}

impl Kind {
    fn accepts(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Flag => value.is_boolean(),
            Self::Count => count(value).is_some(),
            Self::TimeLimit => value.as_str() == Some("disabled") || count(value).is_some(),
            Self::OneOf(names) => value.as_str().is_some_and(|text| names.contains(&text)),
            Self::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Self::List => value.is_array(),
            Self::Thinking => value.as_str().and_then(ThinkingLevel::parse).is_some(),
            Self::Object | Self::ThinkingByModel | Self::CompactionByModel | Self::CompactionValues => {
                value.is_object()
            }
        }
    }

    fn expected(self) -> String {
        match self {
            Self::Text => "a string".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Count => "a whole number that is not negative".to_owned(),
            Self::TimeLimit => "a number of milliseconds or \"disabled\"".to_owned(),
            Self::OneOf(names) => one_of(names),
            Self::Texts => "a list of strings".to_owned(),
            Self::List => "a list".to_owned(),
            Self::Thinking => one_of(&ThinkingLevel::ALL.map(ThinkingLevel::as_str)),
            Self::Object | Self::ThinkingByModel | Self::CompactionByModel | Self::CompactionValues => {
                "an object".to_owned()
            }
        }
    }

    fn of_entries(self) -> Option<Self> {
        match self {
            Self::ThinkingByModel => Some(Self::Thinking),
            Self::CompactionByModel => Some(Self::CompactionValues),
            _ => None,
        }
    }
}

/// A whole number that JavaScript holds exactly.
pub(super) fn count(value: &Value) -> Option<u64> {
    let number = match value.as_u64() {
        Some(number) => number,
        None => {
            let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
            (number <= MAX_SAFE_INTEGER as f64).then_some(number as u64)?
        }
    };
    (number <= MAX_SAFE_INTEGER).then_some(number)
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    format!("one of {}", quoted.join(", "))
}

/// Names what was found. The text itself is shown only where it stands for one of a few words: a
/// setting may hold a secret.
fn found(value: &Value, kind: Kind) -> String {
    match (value, kind) {
        (Value::String(text), Kind::OneOf(_) | Kind::Thinking) => format!("{text:?}"),
        (Value::Number(number), _) => number.to_string(),
        (Value::Bool(flag), _) => flag.to_string(),
        (Value::String(_), _) => "a string".to_owned(),
        (Value::Array(_), Kind::Texts) => "a list of something else".to_owned(),
        (Value::Array(_), _) => "a list".to_owned(),
        (Value::Object(_), _) => "an object".to_owned(),
        (Value::Null, _) => "null".to_owned(),
    }
}
