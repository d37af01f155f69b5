//! The schema of a tool's arguments in the form that models can be held to while they write.
//!
//! That form, which the vendors share: every property of an object is required, one that may be left out may be
//! `null` instead, and there are no others. Tool validation takes such a `null` for what was left out.

use sampi_protocol::data::ToolDefinition;
use serde_json::{Map, Value, json};

/// Keywords that say something about a value and do not restrict it.
const REMARKS: [&str; 2] = ["description", "title"];

/// The parameters of a tool that wants to be held to its schema. `None` for a tool that does not, and for a
/// schema that says more than the strict form can.
pub(crate) fn strict_parameters(tool: &ToolDefinition) -> Option<Value> {
    let is_object = tool.parameters.get("type").and_then(Value::as_str) == Some("object");
    if !tool.wants_strict_schema() || !is_object {
        return None;
    }
    strict(&tool.parameters)
}

/// Fills in `strict` of a function in the form of OpenAI, and its `parameters` when they have the strict form.
pub(crate) fn hold_to_schema(function: &mut Value, tool: &ToolDefinition) {
    let parameters = strict_parameters(tool);
    function["strict"] = json!(parameters.is_some());
    if let Some(parameters) = parameters {
        function["parameters"] = parameters;
    }
}

fn strict(schema: &Value) -> Option<Value> {
    let object = schema.as_object()?;
    let only = |allowed: &[&str]| {
        object.keys().all(|key| allowed.contains(&key.as_str()) || REMARKS.contains(&key.as_str()))
    };
    if object.contains_key("anyOf") {
        let choices = object.get("anyOf")?.as_array()?.iter().map(strict).collect::<Option<Vec<_>>>()?;
        return only(&["anyOf"]).then(|| replaced(object, "anyOf", Value::Array(choices)));
    }
    match object.get("type")?.as_str()? {
        "object" if only(&["type", "properties", "required", "additionalProperties"]) => {
            strict_object(object)
        }
        "array" if only(&["type", "items"]) => Some(replaced(object, "items", strict(object.get("items")?)?)),
        "string" | "number" | "integer" | "boolean" | "null" if only(&["type", "enum", "const"]) => {
            Some(schema.clone())
        }
        _ => None,
    }
}

fn strict_object(object: &Map<String, Value>) -> Option<Value> {
    if object.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
        return None;
    }
    let properties = object.get("properties")?.as_object()?;
    let required: Vec<&str> = match object.get("required") {
        Some(names) => names.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
        None => Vec::new(),
    };
    let mut strict_properties = Map::new();
    for (name, property) in properties {
        let property = strict(property)?;
        let property = match required.contains(&name.as_str()) {
            true => property,
            false => json!({ "anyOf": [property, { "type": "null" }] }),
        };
        strict_properties.insert(name.clone(), property);
    }
    let mut strict = Map::new();
    strict.insert("type".to_owned(), json!("object"));
    strict.insert("required".to_owned(), properties.keys().cloned().collect());
    strict.insert("properties".to_owned(), Value::Object(strict_properties));
    strict.insert("additionalProperties".to_owned(), json!(false));
    let remarks = object.iter().filter(|(key, _)| REMARKS.contains(&key.as_str()));
    strict.extend(remarks.map(|(key, value)| (key.clone(), value.clone())));
    Some(Value::Object(strict))
}

fn replaced(object: &Map<String, Value>, key: &str, value: Value) -> Value {
    let mut object = object.clone();
    object.insert(key.to_owned(), value);
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use sampi_protocol::data::{Model, ThinkingLevel};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::llm::fake_server::{FakeServer, Reply};
    use crate::llm::{Credentials, Providers, testing};

    fn tool(parameters: Value, sampling: Value) -> ToolDefinition {
        serde_json::from_value(json!({ "name": "t", "description": "d", "parameters": parameters,
            "constrainedSampling": sampling }))
        .unwrap()
    }

    fn wanted() -> Value {
        json!({ "type": "json_schema", "strict": "prefer" })
    }

    #[test]
    fn what_may_be_left_out_may_be_null_and_nothing_else_is_allowed() {
        let edits = json!({ "type": "array", "description": "e", "items": {
            "type": "object", "required": ["old"], "properties": { "old": { "type": "string" } } } });
        let parameters = json!({ "type": "object", "properties": {
            "path": { "type": "string", "description": "p" }, "limit": { "type": "number", "description": "l" },
            "edits": edits }, "required": ["path", "edits"] });
        assert_eq!(
            strict_parameters(&tool(parameters, wanted())).unwrap(),
            json!({ "type": "object", "required": ["path", "limit", "edits"], "properties": {
                "path": { "type": "string", "description": "p" },
                "limit": { "anyOf": [{ "type": "number", "description": "l" }, { "type": "null" }] },
                "edits": { "type": "array", "description": "e", "items": {
                    "type": "object", "required": ["old"], "properties": { "old": { "type": "string" } },
                    "additionalProperties": false } } }, "additionalProperties": false })
        );
    }

    #[test]
    fn a_tool_that_does_not_want_it_and_a_schema_that_says_more_stay_as_they_are() {
        let plain = || json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        for sampling in [json!(null), json!(false), json!({ "type": "grammar", "variants": {} })] {
            assert_eq!(strict_parameters(&tool(plain(), sampling)), None);
        }
        assert!(strict_parameters(&tool(plain(), wanted())).is_some());
        for property in [
            json!({ "type": "string", "pattern": "x" }),
            json!({ "type": ["string", "null"] }),
            json!({ "oneOf": [] }),
            json!({ "$ref": "#/x" }),
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            json!({ "type": "object", "properties": {}, "additionalProperties": true }),
            json!({ "type": "array" }),
            json!({ "type": "integer", "minimum": 1 }),
            json!(true),
        ] {
            let parameters = json!({ "type": "object", "properties": { "a": property } });
            assert_eq!(strict_parameters(&tool(parameters, wanted())), None);
        }
    }

    /// The first two tools of the request that a provider sends: one that wants to be strict, one that does not.
    async fn sent(api: &str, id: &str, compat: Value) -> Value {
        let server = FakeServer::start(|_| Reply::Json(400, "{}".to_owned())).await;
        let model = Model {
            id: id.into(),
            api: api.into(),
            provider: "p".into(),
            base_url: server.url.clone(),
            compat: serde_json::from_value(compat).unwrap(),
            ..Model::default()
        };
        let parameters =
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": [] });
        let mut tools = [tool(parameters.clone(), wanted()), tool(parameters, json!(null))];
        tools[1].name = "u".to_owned();
        let messages = json!([
            { "role": "system", "content": "s", "toolsAdded": tools, "timestamp": 1 },
            { "role": "user", "content": "q", "timestamp": 1 },
        ]);
        let mut request = testing::request(model, ThinkingLevel::Off, messages);
        let api_key = Some("k".into());
        request.authorise(Credentials { api_key, bearer: true, ..Credentials::default() });
        let (updates, _kept) = tokio::sync::mpsc::channel(8);
        let provider = Providers::new().get(api).unwrap();
        provider.stream(&request, &updates, &CancellationToken::new()).await;
        serde_json::from_str(&server.calls()[0].body).unwrap()
    }

    #[tokio::test]
    async fn every_api_asks_for_it_where_the_model_can() {
        let mode = || json!({ "supportsStrictMode": true });
        for (api, id, compat, place, strict, schema) in [
            ("openai-completions", "m", mode(), "/tools", "/function/strict", "/function/parameters"),
            ("openai-responses", "m", mode(), "/tools", "/strict", "/parameters"),
            ("azure-openai-responses", "m", json!({}), "/tools", "/strict", "/parameters"),
            ("mistral-conversations", "m", mode(), "/tools", "/function/strict", "/function/parameters"),
            (
                "anthropic-messages",
                "m",
                json!({ "supportsStrictTools": true }),
                "/tools",
                "/strict",
                "/input_schema",
            ),
            (
                "bedrock-converse-stream",
                "m",
                mode(),
                "/toolConfig/tools",
                "/toolSpec/strict",
                "/toolSpec/inputSchema/json",
            ),
            (
                "google-generative-ai",
                "gemini-3.5-flash",
                json!({}),
                "/tools/0/functionDeclarations",
                "",
                "/parametersJsonSchema",
            ),
            (
                "google-vertex",
                "gemini-3.5-flash",
                json!({}),
                "/tools/0/functionDeclarations",
                "",
                "/parametersJsonSchema",
            ),
        ] {
            let body = sent(api, id, compat).await;
            let tools = body.pointer(place).unwrap();
            let (first, second) = (&tools[0], &tools[1]);
            let null = json!([{ "type": "string" }, { "type": "null" }]);
            let optional = format!("{schema}/properties/a/anyOf");
            assert_eq!(first.pointer(&optional), Some(&null), "{api}: {body}");
            assert_eq!(second.pointer(&optional), None, "{api}: {body}");
            if strict.is_empty() {
                assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], "VALIDATED", "{api}");
            } else {
                assert_eq!(first.pointer(strict), Some(&json!(true)), "{api}: {body}");
                assert_ne!(second.pointer(strict), Some(&json!(true)), "{api}: {body}");
            }
        }
        for (api, id) in [
            ("openai-completions", "m"),
            ("openai-responses", "m"),
            ("mistral-conversations", "m"),
            ("anthropic-messages", "m"),
            ("bedrock-converse-stream", "m"),
            ("google-generative-ai", "gemini-2.5-pro"),
            ("google-generative-ai", "gemini-flash-latest"),
        ] {
            let body = sent(api, id, json!({})).await.to_string();
            assert!(!body.contains("anyOf") && !body.contains("VALIDATED"), "{api}: {body}");
        }
    }
}
