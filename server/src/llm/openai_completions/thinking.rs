//! How each server wants to be told to think.

use sampi_protocol::data::ThinkingLevel;
use serde_json::{Map, Value, json};

use super::compat::Compat;
use crate::llm::ModelRequest;
use crate::llm::budget::thinking_budget;
use crate::llm::effort::plain_effort;

/// Adds the fields that set the thinking of a request.
pub(super) fn add(request: &ModelRequest, compat: &Compat, body: &mut Map<String, Value>) {
    if !request.model.reasoning {
        return;
    }
    let level = request.thinking;
    let on = level != ThinkingLevel::Off;
    let mapped = request.model.mapped_level(level);
    let effort = mapped.and_then(Value::as_str).or_else(|| on.then(|| plain_effort(level)));
    let sent_effort = effort.filter(|_| compat.supports_reasoning_effort);
    let budget = thinking_budget(level, &request.options.thinking_budgets);
    let variables = Variables { on, effort, budget };

    match compat.thinking_format.as_str() {
        "openrouter" => {
            if let Some(effort) = effort.or_else(|| (mapped != Some(&Value::Null)).then_some("none")) {
                body.insert("reasoning".into(), json!({ "effort": effort }));
            }
        }
        "deepseek" => {
            body.insert("thinking".into(), json!({ "type": if on { "enabled" } else { "disabled" } }));
            add_effort(body, sent_effort.filter(|_| on));
        }
        "together" => {
            body.insert("reasoning".into(), json!({ "enabled": on }));
            add_effort(body, sent_effort.filter(|_| on));
        }
        "zai" => {
            let thinking = if on {
                json!({ "type": "enabled", "clear_thinking": false })
            } else {
                json!({ "type": "disabled" })
            };
            body.insert("thinking".into(), thinking);
            add_effort(body, sent_effort.filter(|_| on));
        }
        "qwen" => {
            body.insert("enable_thinking".into(), json!(on));
            add_effort(body, sent_effort.filter(|_| on));
        }
        "qwen-chat-template" => {
            let kwargs = json!({ "enable_thinking": on, "preserve_thinking": true });
            body.insert("chat_template_kwargs".into(), kwargs);
        }
        "chat-template" => {
            if let Some(template) = compat.given.get("chatTemplateKwargs") {
                body.insert("chat_template_kwargs".into(), variables.fill(template));
            }
        }
        "baseten" => {
            if let Some(template) = compat.given.get("chatTemplateArgs") {
                body.insert("chat_template_args".into(), variables.fill(template));
            }
            add_effort(body, sent_effort);
        }
        "string-thinking" => {
            if let Some(effort) = effort.or_else(|| (mapped != Some(&Value::Null)).then_some("none")) {
                body.insert("thinking".into(), json!(effort));
            }
        }
        "ant-ling" if on => {
            if let Some(effort) = mapped.and_then(Value::as_str) {
                body.insert("reasoning".into(), json!({ "effort": effort }));
            }
        }
        _ => add_effort(body, sent_effort),
    }
    if let (Some(field), Some(budget)) = (&compat.thinking_token_budget_field, budget) {
        body.insert(field.clone(), json!(budget));
    }
}

fn add_effort(body: &mut Map<String, Value>, effort: Option<&str>) {
    if let Some(effort) = effort {
        body.insert("reasoning_effort".into(), json!(effort));
    }
}

/// What stands behind `{"$var": ...}` in a template's arguments.
struct Variables<'a> {
    on: bool,
    effort: Option<&'a str>,
    budget: Option<u64>,
}

impl Variables<'_> {
    fn fill(&self, template: &Value) -> Value {
        let mut filled = Map::new();
        for (name, value) in template.as_object().into_iter().flatten() {
            let variable = value.get("$var").and_then(Value::as_str);
            let omit = !self.on && value.get("omitWhenOff") == Some(&Value::Bool(true));
            let value = match variable {
                None => Some(value.clone()),
                Some(_) if omit => None,
                Some("thinking.enabled") => Some(json!(self.on)),
                Some("thinking.effort") => self.effort.map(|effort| json!(effort)),
                Some("thinking.budget") => self.budget.map(|budget| json!(budget)),
                Some(_) => None,
            };
            if let Some(value) = value {
                filled.insert(name.clone(), value);
            }
        }
        Value::Object(filled)
    }
}
