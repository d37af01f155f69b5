//! The table of commands: wire name, parameters, result.
//!
//! [`Command`], [`Command::NAMES`], the typed trait [`RpcCommand`] that both ends use and the JSON
//! schema all follow from the one table below. Adding a command is one row here: the compiler asks for its
//! handler in the server, tests ask for its methods in the clients and for the schema.
//!
//! The first 33 commands are Pi's. `navigate_tree`, `set_label`, `list_sessions` and `delete_session` are
//! ours: what Pi offers in its terminal interface alone.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::wire::{self, WireError};

mod bash;
mod compaction;
mod model;
mod prompting;
mod query;
mod queue;
mod retry;
mod session;
mod sessions;
mod tree;

pub use bash::*;
pub use compaction::*;
pub use model::*;
pub use prompting::*;
pub use query::*;
pub use queue::*;
pub use retry::*;
pub use session::*;
pub use sessions::*;
pub use tree::*;

/// A command with its name on the wire and the type of its result.
pub trait RpcCommand: Serialize + DeserializeOwned + JsonSchema {
    /// The wire name.
    const NAME: &'static str;
    /// What a successful response carries in `data`; `()` for none.
    type Data: Serialize + DeserializeOwned + JsonSchema;
}

/// A command as it is written: its id, its name and its parameters in one object.
#[derive(Debug, Serialize)]
pub struct Request<'a, C> {
    /// The correlation id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<&'a str>,
    /// The wire name.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The parameters.
    #[serde(flatten)]
    pub parameters: &'a C,
}

impl<'a, C: RpcCommand> Request<'a, C> {
    /// A request with this id.
    pub fn new(id: Option<&'a str>, parameters: &'a C) -> Self {
        Self { id, kind: C::NAME, parameters }
    }
}

/// What one row of the table says, for the schema.
#[derive(Debug, Clone, Copy)]
pub struct CommandRow {
    /// The wire name.
    pub name: &'static str,
    /// The schema of the parameters.
    pub parameters: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    /// The schema of `data`; `None` when a success carries none.
    pub data: Option<fn(&mut schemars::SchemaGenerator) -> schemars::Schema>,
}

macro_rules! commands {
    ($($name:literal => $variant:ident $(-> $data:ty)?;)+) => {
        /// Any command of the table, with its parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Command {
            $(#[doc = concat!("`", $name, "`")] $variant($variant),)+
        }

        impl Command {
            /// The wire names, in the order of the table.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The rows of the table.
            pub const TABLE: &'static [CommandRow] = &[$(CommandRow {
                name: $name,
                parameters: |generator| generator.subschema_for::<$variant>(),
                data: commands!(@data $($data)?),
            }),+];

            /// Reads the parameters of the named command from the text of its record.
            ///
            /// `None` when the name is not in the table; an error names the field that is wrong.
            pub fn read(name: &str, text: &str) -> Option<Result<Self, WireError>> {
                match name {
                    $($name => Some(wire::from_text::<$variant>(text).map(Self::$variant)),)+
                    _ => None,
                }
            }

            /// The wire name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                }
            }

            /// The parameters as JSON.
            pub fn parameters(&self) -> Result<Value, serde_json::Error> {
                match self {
                    $(Self::$variant(parameters) => serde_json::to_value(parameters),)+
                }
            }
        }

        $(impl RpcCommand for $variant {
            const NAME: &'static str = $name;
            type Data = commands!(@type $($data)?);
        })+
    };
    (@data) => { None };
    (@data $data:ty) => { Some(|generator| generator.subschema_for::<$data>()) };
    (@type) => { () };
    (@type $data:ty) => { $data };
}

commands! {
    "prompt" => Prompt -> PromptResult;
    "steer" => Steer -> QueuedResult;
    "follow_up" => FollowUp -> QueuedResult;
    "abort" => Abort;
    "clear_queue" => ClearQueue -> ClearedQueue;
    "new_session" => NewSession -> SessionChange;
    "get_state" => GetState -> SessionState;
    "get_messages" => GetMessages -> Messages;
    "set_model" => SetModel -> crate::data::Model;
    "cycle_model" => CycleModel -> Option<CycledModel>;
    "get_available_models" => GetAvailableModels -> AvailableModels;
    "set_thinking_level" => SetThinkingLevel;
    "cycle_thinking_level" => CycleThinkingLevel -> Option<CycledThinkingLevel>;
    "get_available_thinking_levels" => GetAvailableThinkingLevels -> AvailableThinkingLevels;
    "set_steering_mode" => SetSteeringMode;
    "set_follow_up_mode" => SetFollowUpMode;
    "compact" => Compact -> crate::data::CompactionResult;
    "set_auto_compaction" => SetAutoCompaction;
    "set_auto_retry" => SetAutoRetry;
    "abort_retry" => AbortRetry;
    "bash" => Bash -> BashResult;
    "abort_bash" => AbortBash;
    "get_session_stats" => GetSessionStats -> SessionStats;
    "export_html" => ExportHtml -> ExportedHtml;
    "switch_session" => SwitchSession -> SessionChange;
    "fork" => Fork -> ForkResult;
    "clone" => CloneSession -> SessionChange;
    "get_fork_messages" => GetForkMessages -> ForkMessages;
    "get_entries" => GetEntries -> Entries;
    "get_tree" => GetTree -> Tree;
    "get_last_assistant_text" => GetLastAssistantText -> LastAssistantText;
    "set_session_name" => SetSessionName;
    "get_commands" => GetCommands -> SlashCommands;
    "navigate_tree" => NavigateTree -> Navigated;
    "set_label" => SetLabel -> LabelSet;
    "list_sessions" => ListSessions -> SessionList;
    "delete_session" => DeleteSession;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_holds_the_33_commands_of_pi_and_our_four() {
        assert_eq!(Command::NAMES.len(), 33 + 4);
        assert_eq!(Command::NAMES[33..], ["navigate_tree", "set_label", "list_sessions", "delete_session"]);
    }

    #[test]
    fn a_wrong_parameter_is_an_error_that_names_the_field_and_what_was_expected() {
        let text = r#"{"id":"1","type":"set_auto_retry","enabled":"yes"}"#;
        let error = Command::read("set_auto_retry", text).unwrap().unwrap_err().to_string();
        assert!(error.contains("enabled") && error.contains("expected a boolean"), "{error}");
        let error = Command::read("prompt", r#"{"type":"prompt"}"#).unwrap().unwrap_err().to_string();
        assert!(error.contains("missing field `message`"), "{error}");
        let text = r#"{"type":"prompt","message":"x","images":[{"type":"image","data":1}]}"#;
        let error = Command::read("prompt", text).unwrap().unwrap_err().to_string();
        assert!(error.starts_with("images[0]") && error.contains("data"), "{error}");
        assert!(!error.contains("line"), "{error}");
        assert!(Command::read("foobar", "{}").is_none());
    }

    /// The names that a schema allows, if it allows names only.
    fn names(schema: &Value, definitions: &Value) -> Vec<String> {
        if let Some(at) = schema.get("$ref").and_then(Value::as_str) {
            return names(&definitions[at.trim_start_matches("#/$defs/")], definitions);
        }
        let own = [schema.get("const")].into_iter().flatten();
        let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
        let texts = own.chain(listed).filter_map(|name| name.as_str().map(str::to_owned));
        let ways = ["oneOf", "anyOf"].into_iter().filter_map(|way| schema.get(way)?.as_array()).flatten();
        texts.chain(ways.flat_map(|way| names(way, definitions))).collect()
    }

    #[test]
    fn a_choice_of_the_wrong_kind_is_an_error_that_names_the_field_and_the_choices() {
        let schema = crate::schema::protocol_schema();
        let mut choices = 0;
        for (command, row) in schema["commands"].as_object().unwrap() {
            let definition = row["parameters"]["$ref"].as_str().unwrap().trim_start_matches("#/$defs/");
            let fields = schema["$defs"][definition]["properties"].as_object();
            for (field, about) in fields.into_iter().flatten() {
                let names = names(about, &schema["$defs"]);
                if names.is_empty() {
                    continue;
                }
                choices += 1;
                for wrong in ["5", "true", "{}", "[]", "\"zork\""] {
                    let text = format!(r#"{{"message":"","{field}":{wrong}}}"#);
                    let error = Command::read(command, &text).unwrap().unwrap_err().to_string();
                    assert!(error.starts_with(&format!("{field}: ")) && !error.contains("line"), "{error}");
                    assert!(names.iter().all(|name| error.contains(&format!("`{name}`"))), "{error}");
                }
            }
        }
        assert!(choices > 0, "the schema shows no choices");
        let text = r#"{"message":"x","images":[{"type":7,"data":"","mimeType":""}]}"#;
        let error = Command::read("prompt", text).unwrap().unwrap_err().to_string();
        assert_eq!(error, "images[0].type: invalid type: integer `7`, expected `image`");
    }

    #[test]
    fn a_parameter_of_the_wrong_kind_is_told_in_the_words_of_json() {
        let schema = crate::schema::protocol_schema();
        let mut errors = 0;
        for (command, row) in schema["commands"].as_object().unwrap() {
            let definition = row["parameters"]["$ref"].as_str().unwrap().trim_start_matches("#/$defs/");
            let fields = schema["$defs"][definition]["properties"].as_object();
            for field in fields.into_iter().flatten().map(|(field, _)| field) {
                for wrong in ["5", "-1", "1.5", "true", "{}", "[]", "[1]", "[[]]", "[{}]", "\"zork\""] {
                    let text = format!(r#"{{"{field}":{wrong}}}"#);
                    let Some(Err(error)) = Command::read(command, &text) else { continue };
                    errors += 1;
                    let error = error.to_string();
                    let words: Vec<&str> = error.split(|c: char| !c.is_ascii_alphanumeric()).collect();
                    let is_rust = |word: &str| {
                        let number = word.strip_prefix(['u', 'i', 'f']);
                        number.is_some_and(|bits| ["8", "16", "32", "64", "size"].contains(&bits))
                            || ["sequence", "map", "struct", "floating", "variant", "unit", "tuple"]
                                .contains(&word)
                    };
                    assert!(!words.into_iter().any(is_rust), "{command}: {error}");
                }
            }
        }
        assert!(errors > 100, "{errors}");
    }

    #[test]
    fn a_request_is_one_object() {
        let request = Request::new(Some("7"), &SetAutoRetry { enabled: true });
        assert_eq!(
            serde_json::to_string(&request).unwrap(),
            r#"{"id":"7","type":"set_auto_retry","enabled":true}"#
        );
        assert_eq!(serde_json::to_string(&Request::new(None, &Abort {})).unwrap(), r#"{"type":"abort"}"#);
    }
}
