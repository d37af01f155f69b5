//! Versions 1 and 2 of session files.
//!
//! Version 1 is a list: its entries get ids and a chain of parents, and a compaction's index of the first
//! kept entry becomes that entry's id. Version 2 has the role `hookMessage` where version 3 has `custom`.
//! The original stays as it is until the first append; then the copy takes its place and the original
//! gets a second name.

use std::fs::File;
use std::io::{BufWriter, Write};

use sampi_protocol::data::SESSION_VERSION;
use serde_json::{Map, Value};

use super::SessionError;
use super::file::SessionFile;
use super::record::{Found, read_line};
use super::scan::{Place, each_line};

/// A copy of the file in the present version, in a file that no one else sees.
pub(super) fn copy(file: &mut SessionFile, version: u64) -> Result<File, SessionError> {
    let path = file.path().to_owned();
    let failed = |source| SessionError::Io { action: "migrate", path: path.clone(), source };
    let mut out = BufWriter::new(tempfile::tempfile().map_err(failed)?);
    let mut chain = Chain::default();
    let mut result = Ok(());
    let end = each_line(file.reader(0), Place::START, |line| {
        let mut rest = Vec::new();
        read_line(line.text, |found| {
            if let Found::Record(_, span) = found {
                rest.push(span);
            }
        });
        if rest.is_empty() && result.is_ok() {
            // What is no record stays visible as damage.
            result = out.write_all(line.text.as_bytes()).and_then(|()| out.write_all(b"\n"));
        }
        for span in rest {
            let text = line.text.get(span).unwrap_or_default();
            let Ok(mut record) = serde_json::from_str::<Map<String, Value>>(text) else { continue };
            if version < 2 {
                chain.link(&mut record);
            }
            rename_role(&mut record);
            if record.get("type").is_some_and(|kind| kind == "session") {
                record.insert("version".to_owned(), SESSION_VERSION.into());
            }
            if result.is_ok() {
                result = serde_json::to_writer(&mut out, &record)
                    .map_err(Into::into)
                    .and_then(|()| out.write_all(b"\n"));
            }
        }
        result.is_ok()
    })
    .map_err(failed)?;
    result.map_err(failed)?;
    file.set_end(end);
    out.into_inner().map_err(|error| failed(error.into_error()))
}

fn rename_role(record: &mut Map<String, Value>) {
    if let Some(role) = record.get_mut("message").and_then(|message| message.get_mut("role"))
        && role == "hookMessage"
    {
        *role = "custom".into();
    }
}

/// Gives the records of a version 1 file ids that are the same at every reading.
#[derive(Default)]
struct Chain {
    /// The ids so far by the place of their record; the header has the first place and no id.
    ids: Vec<Option<String>>,
    seed: u32,
}

impl Chain {
    fn link(&mut self, record: &mut Map<String, Value>) {
        if record.get("type").is_some_and(|kind| kind == "session") {
            self.seed = record.get("id").and_then(Value::as_str).map_or(0, hash);
            self.ids.push(None);
            return;
        }
        // An odd factor makes this a one-to-one map of places to ids.
        let id = format!("{:08x}", (self.ids.len() as u32).wrapping_mul(0x9e37_79b1) ^ self.seed);
        let parent = self.ids.last().cloned().flatten();
        if let Some(index) = record.shift_remove("firstKeptEntryIndex") {
            let place = index.as_u64().and_then(|index| usize::try_from(index).ok());
            let kept = place.and_then(|place| self.ids.get(place)).cloned().flatten();
            record.insert("firstKeptEntryId".to_owned(), kept.unwrap_or_else(|| id.clone()).into());
        }
        record.insert("id".to_owned(), id.clone().into());
        record.insert("parentId".to_owned(), parent.map_or(Value::Null, Value::from));
        self.ids.push(Some(id));
    }
}

/// FNV-1a.
fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
