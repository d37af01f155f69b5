//! The JSON Schema of the whole protocol, made from the types.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::commands::Command;
use crate::data::{AgentMessage, SessionEntry, SessionHeader};
use crate::events::SessionEvent;
use crate::response::Response;
use crate::ui::{UiRequest, UiResponse};

/// The schema: definitions of every type, and under `commands` a row of the table for each command.
pub fn protocol_schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let commands: Map<String, Value> = Command::TABLE
        .iter()
        .map(|row| {
            let parameters = (row.parameters)(&mut generator);
            let data = row.data.map(|data| data(&mut generator));
            (row.name.to_owned(), json!({ "parameters": parameters, "data": data }))
        })
        .collect();
    let records = json!({
        "response": generator.subschema_for::<Response>(),
        "event": generator.subschema_for::<SessionEvent>(),
        "uiRequest": generator.subschema_for::<UiRequest>(),
        "uiResponse": generator.subschema_for::<UiResponse>(),
        "message": generator.subschema_for::<AgentMessage>(),
        "sessionHeader": generator.subschema_for::<SessionHeader>(),
        "sessionEntry": generator.subschema_for::<SessionEntry>(),
    });
    let mut definitions = generator.take_definitions(true);
    definitions.sort_keys();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sampi RPC protocol",
        "description": "A command is one JSON object: `type` (its name), an optional `id` of any JSON kind, and its parameters. `data` is null where a success carries none.",
        "piVersion": crate::PI_VERSION,
        "commands": commands,
        "records": records,
        "$defs": definitions,
    })
}

/// The schema as it is committed: indented, with a final line break.
pub fn protocol_schema_text() -> String {
    format!("{:#}\n", protocol_schema())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_the_one_the_types_give() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/protocol.schema.json");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == super::protocol_schema_text(),
            "{path} is out of date: run `cargo xtask schema`"
        );
    }
}
