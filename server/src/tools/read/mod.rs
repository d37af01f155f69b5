//! The `read` tool.

mod lines;

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sampi_protocol::data::{ContentBlock, ImageContent, ToolDefinition, ToolOutput};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::arguments::{count, property, schema, text};
use super::fs_error::{fs_error, open_file_error};
use super::paths::resolve_existing;
use super::{ABORTED, ImageSettings, Tool, ToolContext, ToolError, text_output};
use crate::BoxFuture;
use crate::images::{Resize, SentImage, as_is, fit, image_type};
use crate::process::Utf8Decoder;
use lines::LineWindow;

/// Bytes read from a file at once.
const READ_BYTES: usize = 64 * 1024;

/// The largest image file that is read.
const MAX_IMAGE_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// What stands for an image that cannot be shown.
const IMAGE_OMITTED: &str = "[Image omitted: could not be resized below the inline image size limit.]";

/// Reads a file.
#[derive(Debug)]
pub struct ReadTool {
    definition: ToolDefinition,
}

impl Default for ReadTool {
    fn default() -> Self {
        let definition = ToolDefinition {
            name: "read".into(),
            description:
                "Read a file. Text is cut after 2000 lines or 50 KB, whichever comes first; the result \
                          then tells the offset to go on from. Images (png, jpeg, gif, webp, bmp) are shown."
                    .into(),
            parameters: schema(
                &["path"],
                &[
                    ("path", property("string", "The file, relative to the working directory or absolute")),
                    ("offset", property("number", "The first line to read, counted from 1")),
                    ("limit", property("number", "How many lines to read at most")),
                ],
            ),
            constrained_sampling: None,
            extra: Default::default(),
        }
        .with_strict_schema();
        Self { definition }
    }
}

impl Tool for ReadTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn snippet(&self) -> &str {
        "Read files, text and images"
    }

    fn guidelines(&self) -> &[&str] {
        &["Look at files with read rather than with cat or sed."]
    }

    fn run<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let request = Request {
                argument: text(&arguments, "path")?.to_owned(),
                cwd: context.cwd.clone(),
                offset: count(&arguments, "offset"),
                limit: count(&arguments, "limit"),
                images: context.images,
                model_id: context.model_id.clone(),
                cancel: context.cancel.clone(),
            };
            let work = tokio::task::spawn_blocking(move || request.read());
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => Err(ToolError::new(ABORTED)),
                result = work => result.map_err(|error| ToolError::new(format!("read failed: {error}")))?,
            }
        })
    }
}

struct Request {
    argument: String,
    cwd: PathBuf,
    offset: Option<u64>,
    limit: Option<u64>,
    images: ImageSettings,
    model_id: Option<String>,
    cancel: CancellationToken,
}

impl Request {
    fn read(self) -> Result<ToolOutput, ToolError> {
        let path = resolve_existing(&self.argument, &self.cwd);
        let mut file = open(&path)?;
        let mut buffer = vec![0; READ_BYTES];
        let length = fill(&mut file, &mut buffer)?;
        let head = buffer.get(..length).unwrap_or_default();
        match image_type(head) {
            Some(mime_type) => self.image(head, file, mime_type),
            None => self.text(buffer, length, file),
        }
    }

    fn text(&self, mut buffer: Vec<u8>, mut length: usize, mut file: File) -> Result<ToolOutput, ToolError> {
        let mut window = LineWindow::new(self.offset, self.limit);
        let mut decoder = Utf8Decoder::default();
        let mut text = String::new();
        while length > 0 {
            if self.cancel.is_cancelled() {
                return Err(ToolError::new(ABORTED));
            }
            text.clear();
            decoder.push(buffer.get(..length).unwrap_or_default(), &mut text);
            window.push(&text);
            length = fill(&mut file, &mut buffer)?;
        }
        text.clear();
        decoder.finish(&mut text);
        window.push(&text);
        let window = window.finish(&self.argument).map_err(ToolError::new)?;
        let structured_content = Some(json!(window.text));
        let details = window.truncation.map(|truncation| json!({ "truncation": truncation }));
        Ok(ToolOutput { details, structured_content, ..text_output(window.text) })
    }

    fn image(&self, head: &[u8], file: File, mime_type: &'static str) -> Result<ToolOutput, ToolError> {
        let mut bytes = head.to_vec();
        let rest = MAX_IMAGE_FILE_BYTES - bytes.len() as u64;
        let read = file.take(rest + 1).read_to_end(&mut bytes);
        read.map_err(|error| open_file_error(&error, "read"))?;
        let whole = bytes.len() as u64 <= MAX_IMAGE_FILE_BYTES;
        let sent = match self.images.resize {
            _ if !whole => None,
            Resize::ToFit(limit) => fit(&bytes, mime_type, limit),
            Resize::Never => as_is(&bytes, mime_type),
        };
        let Some(SentImage { data, mime_type, notes }) = sent else {
            let text = format!("Read image file [{mime_type}]\n{IMAGE_OMITTED}");
            return Ok(ToolOutput { structured_content: Some(json!(text)), ..text_output(text) });
        };
        let text = [format!("Read image file [{mime_type}]")]
            .into_iter()
            .chain(notes)
            .collect::<Vec<_>>()
            .join("\n");
        let structured = json!({ "type": "image", "data": data, "mimeType": mime_type, "note": text });
        // The image stays in the result: another model may see it later.
        let unsupported = self.model_id.as_ref().filter(|_| !self.images.model_takes_images);
        let image = ImageContent { data, mime_type: mime_type.to_owned(), ..ImageContent::default() };
        Ok(ToolOutput {
            content: vec![ContentBlock::text(text), ContentBlock::Image(image)],
            details: unsupported.map(|model| json!({ "imageUnsupportedByModel": model })),
            structured_content: Some(structured),
            ..ToolOutput::default()
        })
    }
}

fn open(path: &Path) -> Result<File, ToolError> {
    let metadata = path.metadata().map_err(|error| fs_error(&error, "access", path))?;
    if metadata.is_dir() {
        return Err(open_file_error(&io::Error::from(rustix::io::Errno::ISDIR), "read"));
    }
    if !metadata.is_file() {
        // Pipes and devices may never end.
        return Err(ToolError::new(format!("Not a regular file: {}", path.display())));
    }
    File::open(path).map_err(|error| fs_error(&error, "access", path))
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> Result<usize, ToolError> {
    let mut length = 0;
    while let Some(space) = buffer.get_mut(length..).filter(|space| !space.is_empty()) {
        match file.read(space) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(open_file_error(&error, "read")),
        }
    }
    Ok(length)
}
