//! Prompts, steering, follow-ups, abort.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::choice;
use crate::data::ImageContent;

/// Submits a prompt. Answered once it is accepted, queued or handled; the run goes on in events.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompt {
    /// The text.
    pub message: String,
    /// Images that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "images")]
    pub images: Vec<PromptImage>,
    /// What to do when a run is under way; without it such a prompt is refused.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "choice::read_optional")]
    pub streaming_behavior: Option<StreamingBehavior>,
}

/// Queues a message that is delivered before the next request to the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Steer {
    /// The text.
    pub message: String,
    /// Images that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "images")]
    pub images: Vec<PromptImage>,
}

/// Queues a message that is delivered once the agent would stop.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FollowUp {
    /// The text.
    pub message: String,
    /// Images that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "images")]
    pub images: Vec<PromptImage>,
}

fn images<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<PromptImage>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// An image that goes with a prompt, an image block as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptImage {
    /// Always `image`.
    #[serde(rename = "type", default, deserialize_with = "choice::read")]
    pub kind: ImageTag,
    /// The bytes as base64, standard alphabet.
    pub data: String,
    /// The media type, such as `image/png`.
    pub mime_type: String,
}

impl From<PromptImage> for ImageContent {
    fn from(image: PromptImage) -> Self {
        Self { data: image.data, mime_type: image.mime_type, ..Self::default() }
    }
}

/// The tag of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ImageTag {
    /// `image`
    #[default]
    #[serde(rename = "image")]
    Image,
}

/// How a prompt is queued while a run is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StreamingBehavior {
    /// Before the next request to the model.
    Steer,
    /// Once the agent would stop.
    FollowUp,
}

/// What became of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PromptResult {
    /// Started, queued or handled.
    pub disposition: Disposition,
}

/// What became of a steering or follow-up message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueuedResult {
    /// Queued or handled.
    pub disposition: Disposition,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    /// A run was started for it.
    Started,
    /// It waits in a queue.
    Queued,
    /// An extension consumed it; no run was started, so none settles.
    Handled,
}

/// Stops what is going on. Answered once the session is idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Abort {}
