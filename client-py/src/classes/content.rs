//! Blocks of content.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use sampi_client::protocol::data::ContentBlock;

use super::declare::{Holds, family, kinds, mismatch, repr};
use crate::convert::{ToPy, from_json, loads, to_json};

family! {
    /// One block of a message's content. Match on the subclasses.
    Block(Arc<ContentBlock>) of ContentBlock, built by block_to_py {}
}

/// The object of a value of this family.
pub(super) fn block_to_py<'py>(py: Python<'py>, block: &Arc<ContentBlock>) -> PyResult<Bound<'py, PyAny>> {
    build_kind(py, block, PyClassInitializer::from(Block::new(Arc::clone(block))))
}

impl ToPy for ContentBlock {
    fn to_py<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        block_to_py(py, &Arc::new(self.clone()))
    }
}

kinds! {
    Block;

    /// Text.
    TextContent: ContentBlock::Text(v) => {
        /// The text.
        text = v.text,
    }

    /// An image.
    ImageContent: ContentBlock::Image(v) => {
        /// The bytes as base64.
        data = v.data,
        /// The media type, such as `image/png`.
        mime_type = v.mime_type,
    }

    /// The model's thinking.
    ThinkingContent: ContentBlock::Thinking(v) => {
        /// The thinking text; may be empty when it was redacted.
        thinking = v.thinking,
        /// True when the provider's safety filters hid the thinking.
        redacted = v.redacted.unwrap_or(false),
    }

    /// A tool call of the model.
    ToolCall: ContentBlock::ToolCall(v) => {
        /// The tool's name.
        name = v.name,
        /// The arguments, a dict of the caller's own.
        arguments = v.arguments,
        /// The call's id, which its result repeats.
        id = v.id,
        /// What was wrong with the model's arguments, when they were no JSON object.
        arguments_error = v.arguments_error,
    }

    /// A block of a kind that this version does not know. `raw()` has all of it.
    UnknownContent: ContentBlock::Unknown(v) => {
        /// The kind on the wire.
        kind = v.str_field("type"),
    }
}
