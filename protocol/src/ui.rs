//! The extension UI sub-protocol: requests of the daemon, answers of the host.
//!
//! The dialogs (`select`, `confirm`, `input`, `editor`) wait for an answer with the same id; the other
//! methods expect none. A dialog with a timeout is resolved by the daemon itself when it runs out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::number;

/// A request of an extension to the host's user interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UiRequest {
    /// Always `extension_ui_request`.
    #[serde(rename = "type")]
    pub kind: UiRequestTag,
    /// The request's id, a UUID.
    pub id: String,
    /// What is asked.
    #[serde(flatten)]
    pub method: UiMethod,
}

/// The tag of a UI request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum UiRequestTag {
    /// `extension_ui_request`
    #[default]
    #[serde(rename = "extension_ui_request")]
    ExtensionUiRequest,
}

/// What an extension asks of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum UiMethod {
    /// Choose one of several options. A dialog.
    Select {
        /// What is asked.
        title: String,
        /// The options.
        options: Vec<String>,
        /// Milliseconds after which the dialog counts as cancelled.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            serialize_with = "number::optional_count::serialize",
            deserialize_with = "number::optional_count::deserialize"
        )]
        timeout: Option<u64>,
    },
    /// Yes or no. A dialog.
    Confirm {
        /// What is asked.
        title: String,
        /// More about it.
        message: String,
        /// Milliseconds after which the answer is no.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            serialize_with = "number::optional_count::serialize",
            deserialize_with = "number::optional_count::deserialize"
        )]
        timeout: Option<u64>,
    },
    /// Enter a line of text. A dialog.
    Input {
        /// What is asked.
        title: String,
        /// Text to show while nothing is entered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        placeholder: Option<String>,
        /// Milliseconds after which the dialog counts as cancelled.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            serialize_with = "number::optional_count::serialize",
            deserialize_with = "number::optional_count::deserialize"
        )]
        timeout: Option<u64>,
    },
    /// Edit a text of several lines. A dialog.
    Editor {
        /// What is asked.
        title: String,
        /// The text to start from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefill: Option<String>,
    },
    /// Show a message.
    Notify {
        /// The message.
        message: String,
        /// How grave it is; `info` when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notify_type: Option<NotifyType>,
    },
    /// Set or clear a line of status.
    SetStatus {
        /// Which line.
        status_key: String,
        /// The text; absent clears the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status_text: Option<String>,
    },
    /// Set or clear a widget.
    SetWidget {
        /// Which widget.
        widget_key: String,
        /// The lines; absent clears the widget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_lines: Option<Vec<String>>,
        /// Where to show it; above the editor when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        widget_placement: Option<WidgetPlacement>,
    },
    /// Set the window's title.
    SetTitle {
        /// The title.
        title: String,
    },
    /// Put text into the host's editor.
    #[serde(rename = "set_editor_text")]
    SetEditorText {
        /// The text.
        text: String,
    },
}

impl UiMethod {
    /// True when the daemon waits for an answer.
    pub fn is_dialog(&self) -> bool {
        matches!(self, Self::Select { .. } | Self::Confirm { .. } | Self::Input { .. } | Self::Editor { .. })
    }
}

/// How grave a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NotifyType {
    /// For information.
    #[default]
    Info,
    /// Something may be wrong.
    Warning,
    /// Something is wrong.
    Error,
}

/// Where a widget is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WidgetPlacement {
    /// Above the editor.
    #[default]
    AboveEditor,
    /// Below the editor.
    BelowEditor,
}

/// The host's answer to a dialog. It is no command and gets no response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UiResponse {
    /// Always `extension_ui_response`.
    #[serde(rename = "type")]
    pub kind: UiResponseTag,
    /// The id of the request.
    pub id: String,
    /// What was entered or chosen; answers `select`, `input` and `editor`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Yes or no; answers `confirm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<bool>,
    /// True when the dialog was dismissed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<bool>,
}

impl UiResponse {
    /// An answer with a text.
    pub fn value(id: impl Into<String>, value: impl Into<String>) -> Self {
        Self { value: Some(value.into()), ..Self::empty(id.into()) }
    }

    /// An answer with yes or no.
    pub fn confirmed(id: impl Into<String>, confirmed: bool) -> Self {
        Self { confirmed: Some(confirmed), ..Self::empty(id.into()) }
    }

    /// The dialog was dismissed.
    pub fn cancelled(id: impl Into<String>) -> Self {
        Self { cancelled: Some(true), ..Self::empty(id.into()) }
    }

    fn empty(id: String) -> Self {
        Self { kind: UiResponseTag::default(), id, value: None, confirmed: None, cancelled: None }
    }
}

/// The tag of a UI response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum UiResponseTag {
    /// `extension_ui_response`
    #[default]
    #[serde(rename = "extension_ui_response")]
    ExtensionUiResponse,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nine_methods_and_three_answers_survive_a_round_trip() {
        for text in [
            r#"{"type":"extension_ui_request","id":"u","method":"select","title":"t","options":["a"],"timeout":10}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"confirm","title":"t","message":"m"}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"input","title":"t","placeholder":"p"}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"editor","title":"t","prefill":"p"}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"notify","message":"m","notifyType":"warning"}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"setStatus","statusKey":"k","statusText":"x"}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"setWidget","widgetKey":"k","widgetLines":["x"],"widgetPlacement":"belowEditor"}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"setTitle","title":"t"}"#,
            r#"{"type":"extension_ui_request","id":"u","method":"set_editor_text","text":"t"}"#,
        ] {
            let request: UiRequest = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&request).unwrap(), text);
        }
        for (answer, text) in [
            (UiResponse::value("u", "v"), r#"{"type":"extension_ui_response","id":"u","value":"v"}"#),
            (
                UiResponse::confirmed("u", false),
                r#"{"type":"extension_ui_response","id":"u","confirmed":false}"#,
            ),
            (UiResponse::cancelled("u"), r#"{"type":"extension_ui_response","id":"u","cancelled":true}"#),
        ] {
            assert_eq!(serde_json::to_string(&answer).unwrap(), text);
            assert_eq!(serde_json::from_str::<UiResponse>(text).unwrap(), answer);
        }
    }
}
