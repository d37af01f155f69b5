//! Content blocks of messages.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use super::{Extra, ToolCallId};
use crate::wire::{Unknown, read_tagged};

/// One block of a message's content.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type")]
pub enum ContentBlock {
    /// Text.
    #[serde(rename = "text")]
    Text(TextContent),
    /// An image.
    #[serde(rename = "image")]
    Image(ImageContent),
    /// The model's thinking.
    #[serde(rename = "thinking")]
    Thinking(ThinkingContent),
    /// A tool call of the model.
    #[serde(rename = "toolCall")]
    ToolCall(ToolCall),
    /// A block of a kind that this version does not know.
    #[serde(untagged)]
    Unknown(Unknown),
}

read_tagged!(ContentBlock, "type", {
    "text" => Text,
    "image" => Image,
    "thinking" => Thinking,
    "toolCall" => ToolCall,
});

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent { text: text.into(), ..TextContent::default() })
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }
}

/// Text, with the provider's opaque metadata for replaying it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextContent {
    /// The text.
    pub text: String,
    /// Metadata of the provider, opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<TypeTag>,
}

/// An image as base64.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageContent {
    /// The bytes as base64, standard alphabet.
    pub data: String,
    /// The media type, such as `image/png`.
    pub mime_type: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<TypeTag>,
}

/// Thinking, with the provider's opaque signature for replaying it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingContent {
    /// The thinking text; may be empty when it was redacted.
    pub thinking: String,
    /// The provider's signature, or the encrypted payload when the block was redacted. Opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// True when the provider's safety filters hid the thinking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redacted: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<TypeTag>,
}

/// A tool call of the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call's id, which its result repeats.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// The arguments, in the order in which the model wrote them.
    pub arguments: Map<String, Value>,
    /// Signature of the provider, opaque.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
    /// Namespace of a tool that was loaded dynamically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Set when the model's arguments were no JSON object: what is wrong, and the text it sent.
    /// `arguments` is then empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments_error: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Untagged<TypeTag>,
}

/// Content that is either one string or a list of blocks.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// One string.
    Text(String),
    /// A list of blocks.
    Blocks(Vec<ContentBlock>),
}

impl Content {
    /// The text of all text blocks, one after the other.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Blocks(blocks) => match blocks.as_slice() {
                [ContentBlock::Text(block)] => Cow::Borrowed(&block.text),
                blocks => Cow::Owned(blocks.iter().filter_map(ContentBlock::as_text).collect()),
            },
        }
    }

    /// The blocks; a string is one text block.
    pub fn to_blocks(&self) -> Vec<ContentBlock> {
        match self {
            Self::Text(text) => vec![ContentBlock::text(text.clone())],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blocks(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Content;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content blocks")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Content, E> {
                Ok(Content::Text(text.to_owned()))
            }

            fn visit_string<E: de::Error>(self, text: String) -> Result<Content, E> {
                Ok(Content::Text(text))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Content, A::Error> {
                Vec::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Content::Blocks)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Content {
    fn schema_name() -> Cow<'static, str> {
        "Content".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let block = generator.subschema_for::<ContentBlock>();
        schemars::json_schema!({
            "description": "One string, or a list of content blocks.",
            "anyOf": [{ "type": "string" }, { "type": "array", "items": block }],
        })
    }
}

/// Names the field that a tagged enum already took, so that it is not kept twice.
pub trait Tag {
    /// The tag's wire name.
    const NAME: &'static str;
}

/// The tag `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TypeTag;

impl Tag for TypeTag {
    const NAME: &'static str = "type";
}

/// The tag `role`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoleTag;

impl Tag for RoleTag {
    const NAME: &'static str = "role";
}

/// Unknown fields of a tagged struct, without the tag itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Untagged<T> {
    /// The fields, in the order in which they came.
    pub fields: Extra,
    tag: std::marker::PhantomData<T>,
}

impl<T> Serialize for Untagged<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.fields.serialize(serializer)
    }
}

impl<'de, T: Tag> Deserialize<'de> for Untagged<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = Extra::deserialize(deserializer)?;
        fields.shift_remove(T::NAME);
        Ok(Self { fields, tag: std::marker::PhantomData })
    }
}

impl<T> JsonSchema for Untagged<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Extra".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "additionalProperties": true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malformed_known_block_is_an_error_that_names_the_field() {
        let error =
            serde_json::from_str::<ContentBlock>(r#"{"type":"text","text":5}"#).unwrap_err().to_string();
        assert!(error.starts_with("text: text: invalid type"), "{error}");
        let error = serde_json::from_str::<ContentBlock>(r#"{"type":"toolCall","id":"x"}"#).unwrap_err();
        assert!(error.to_string().contains("missing field `name`"), "{error}");
    }

    #[test]
    fn an_unknown_block_and_unknown_fields_survive_a_round_trip() {
        for text in [
            r#"{"type":"video","url":"x"}"#,
            r#"{"type":"text","text":"a","future":{"b":[1]}}"#,
            r#"{"type":"toolCall","id":"c","name":"read","arguments":{"z":1,"a":2}}"#,
        ] {
            let block: ContentBlock = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&block).unwrap(), text);
        }
    }
}
