//! Requests and streams of the Responses API.

mod requests;
mod streams;

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Value, json};

use super::API;
use crate::llm::ModelRequest;
use crate::llm::testing::model;

fn ask(fields: Value, thinking: ThinkingLevel, messages: Value) -> ModelRequest {
    let mut all = json!({ "reasoning": true, "maxTokens": 8192, "contextWindow": 200_000 });
    for (name, value) in fields.as_object().unwrap() {
        all[name] = value.clone();
    }
    crate::llm::testing::request(model(API, all), thinking, messages)
}
