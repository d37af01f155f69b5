//! How many images a request may hold, and which are left out when it would hold too many.
//!
//! The history keeps every image; what is left out is left out of the copy that is sent, the oldest first, and
//! a note stands in its place. Knows no vendor: each API hands in its limits, and a model may have others.

use std::borrow::Cow;

use sampi_protocol::data::{Model, ToolDefinition};
use serde_json::Value;

use super::wording::{ImageOmitted, Omission};
use super::{AssistantPart, Part, Transcript, Turn};
use crate::images::sides;

/// What an API takes. Nothing where its documentation names no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageLimits {
    /// Images in one message.
    pub(crate) per_message: Option<usize>,
    /// Images in one request.
    pub(crate) per_request: Option<usize>,
    /// Bytes of a whole request.
    pub(crate) request_bytes: Option<usize>,
    /// Bytes of one image, as base64.
    pub(crate) image_bytes: Option<usize>,
    /// Pixels of the longer side of an image.
    pub(crate) side: Option<u32>,
    /// What holds in a request with many images.
    pub(crate) crowd: Option<Crowd>,
}

/// A limit for requests with more images than so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Crowd {
    /// The most images for which the limit does not hold.
    pub(crate) above: usize,
    /// Pixels of the longer side of an image.
    pub(crate) side: u32,
}

/// The share of a request that is kept free for what stands between texts and images.
const FRAME_SHARE: usize = 32;

/// When a request holds too many images, a share of what it may hold is left out at once: each image that is
/// left out makes the provider read everything behind it anew, and so that happens only now and then.
const STEP_SHARE: usize = 10;

impl ImageLimits {
    /// No limits.
    pub(crate) const NONE: Self = Self {
        per_message: None,
        per_request: None,
        request_bytes: None,
        image_bytes: None,
        side: None,
        crowd: None,
    };

    /// These limits, with those of the model's `inputLimits` in their place.
    fn of(self, model: &Model) -> Self {
        let limits = model.extra.get("inputLimits");
        let count = |pointer: &str| {
            let value = limits?.pointer(pointer).and_then(Value::as_u64)?;
            usize::try_from(value).ok()
        };
        Self {
            per_message: count("/images/maxPerMessage").or(self.per_message),
            per_request: count("/images/maxPerRequest").or(self.per_request),
            request_bytes: count("/maxRequestBytes").or(self.request_bytes),
            ..self
        }
    }
}

/// The length of so many bytes as base64.
pub(crate) const fn as_base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// An image of the conversation.
struct Image {
    /// The number of the message that holds it.
    message: usize,
    bytes: usize,
    /// The longer side, where a limit asks for it and it can be told.
    side: Option<u32>,
    omitted: Option<Omission>,
}

/// Leaves out the images that the model's API would refuse.
pub(super) fn enforce(transcript: &mut Transcript<'_>, model: &Model, limits: ImageLimits) {
    let limits = limits.of(model);
    let mut images = collect(&transcript.turns, &limits);
    if images.is_empty() || limits == ImageLimits::NONE {
        return;
    }
    for image in &mut images {
        let is_over = limits.image_bytes.is_some_and(|most| image.bytes > most)
            || limits.side.is_some_and(|most| image.side.is_some_and(|side| side > most));
        if is_over {
            image.omitted = Some(Omission::TooLarge);
        }
    }
    if let Some(most) = limits.per_message {
        for images in images.chunk_by_mut(|a, b| a.message == b.message) {
            let over = kept(images).saturating_sub(most);
            omit_oldest(images, over);
        }
    }
    if let Some(most) = limits.per_request {
        let over = kept(&images).saturating_sub(most);
        let step = (most / STEP_SHARE).max(1);
        omit_oldest(&mut images, over.div_ceil(step) * step);
    }
    if let Some(crowd) = limits.crowd.filter(|crowd| kept(&images) > crowd.above) {
        for image in images.iter_mut().filter(|image| image.side.is_some_and(|side| side > crowd.side)) {
            image.omitted = image.omitted.or(Some(Omission::TooLarge));
        }
    }
    if let Some(most) = limits.request_bytes {
        let room = most.saturating_sub(most / FRAME_SHARE).saturating_sub(text_bytes(transcript));
        let mut used: usize =
            images.iter().filter(|image| image.omitted.is_none()).map(|image| image.bytes).sum();
        for image in images.iter_mut().filter(|image| image.omitted.is_none()) {
            if used <= room {
                break;
            }
            image.omitted = Some(Omission::TooMany);
            used -= image.bytes;
        }
    }
    if images.iter().any(|image| image.omitted.is_some()) {
        write_notes(&mut transcript.turns, &images);
    }
}

fn collect(turns: &[Turn<'_>], limits: &ImageLimits) -> Vec<Image> {
    let mut images = Vec::new();
    let mut message = 0;
    let mut after_result = false;
    for turn in turns {
        let (parts, is_result) = match turn {
            Turn::User(user) => (&user.parts, false),
            Turn::ToolResult(result) => (&result.parts, true),
            Turn::Assistant(_) => {
                after_result = false;
                continue;
            }
            Turn::System(_) | Turn::Effort(_) => continue,
        };
        // A run of results stands in one message.
        if !(is_result && after_result) {
            message += 1;
        }
        after_result = is_result;
        for part in parts {
            if let Part::Image { data, .. } = part {
                let wanted = limits.side.is_some() || limits.crowd.is_some();
                let side = if wanted { sides(data).map(|(width, height)| width.max(height)) } else { None };
                images.push(Image { message, bytes: data.len(), side, omitted: None });
            }
        }
    }
    images
}

fn kept(images: &[Image]) -> usize {
    images.iter().filter(|image| image.omitted.is_none()).count()
}

fn omit_oldest(images: &mut [Image], number: usize) {
    for image in images.iter_mut().filter(|image| image.omitted.is_none()).take(number) {
        image.omitted = Some(Omission::TooMany);
    }
}

/// The bytes of a request that are no images, without what stands between them.
fn text_bytes(transcript: &Transcript<'_>) -> usize {
    let escaped = |text: &str| text.len() + memchr::memchr3_iter(b'\n', b'"', b'\\', text.as_bytes()).count();
    let texts = |parts: &[Part<'_>]| -> usize { parts.iter().filter_map(Part::as_text).map(escaped).sum() };
    let tool_bytes = |tool: &ToolDefinition| {
        tool.name.len() + escaped(&tool.description) + tool.parameters.to_string().len()
    };
    let tools: usize = transcript.tools.iter().map(tool_bytes).sum();
    let turns = transcript.turns.iter().map(|turn| match turn {
        Turn::User(user) => texts(&user.parts),
        Turn::ToolResult(result) => texts(&result.parts),
        Turn::Assistant(parts) => parts.iter().map(assistant_bytes).sum(),
        Turn::System(change) => escaped(&change.text) + change.added.iter().map(tool_bytes).sum::<usize>(),
        Turn::Effort(_) => 0,
    });
    escaped(&transcript.system) + tools + turns.sum::<usize>()
}

fn assistant_bytes(part: &AssistantPart<'_>) -> usize {
    match part {
        AssistantPart::Text { text, signature } | AssistantPart::Thinking { text, signature, .. } => {
            text.len() + signature.map_or(0, str::len)
        }
        AssistantPart::ToolCall { name, arguments, signature, .. } => {
            let arguments: usize =
                arguments.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
            name.len() + arguments + signature.map_or(0, str::len)
        }
    }
}

/// Puts a note in the place of each run of images that are left out.
fn write_notes(turns: &mut [Turn<'_>], images: &[Image]) {
    let mut images = images.iter();
    for turn in turns {
        let (parts, place) = match turn {
            Turn::User(user) => (&mut user.parts, ImageOmitted::User),
            Turn::ToolResult(result) => (&mut result.parts, ImageOmitted::Tool),
            Turn::Assistant(_) | Turn::System(_) | Turn::Effort(_) => continue,
        };
        let mut in_run = false;
        let old = std::mem::take(parts);
        for part in old {
            let omitted = match part {
                Part::Image { .. } => images.next().and_then(|image| image.omitted),
                Part::Text(_) => None,
            };
            match omitted {
                None => parts.push(part),
                Some(why) if !in_run => parts.push(Part::Text(Cow::Borrowed(place.note(why)))),
                Some(_) => {}
            }
            in_run = omitted.is_some();
        }
    }
}

#[cfg(test)]
mod tests;
