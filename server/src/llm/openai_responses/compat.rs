//! How a server differs from OpenAI's own: what the model's `compat` says, else what is known of it.

use sampi_protocol::data::Model;
use serde_json::Value;

use crate::llm::transcript::ImageLimits;

/// What OpenAI takes, in both of its APIs:
/// <https://developers.openai.com/api/docs/guides/images-vision#image-input-requirements>
pub(crate) const OPENAI_IMAGES: ImageLimits = ImageLimits {
    // "Up to 1500 individual image inputs per request".
    per_request: Some(1500),
    // "Up to 512 MB total payload size per request".
    request_bytes: Some(512 * 1024 * 1024),
    ..ImageLimits::NONE
};

/// What Azure takes: <https://learn.microsoft.com/azure/ai-services/openai/quotas-limits>
const AZURE_IMAGES: ImageLimits = ImageLimits {
    // "maximum images per request (number of images in the messages array or conversation history): 50".
    per_request: Some(50),
    ..ImageLimits::NONE
};

/// Who offers the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// OpenAI, or a server that copies it.
    OpenAi,
    /// Azure, with rules of its own for addresses, keys and caches.
    Azure,
}

impl Service {
    /// The name by which errors call the service.
    pub(crate) fn name(self, model: &Model) -> String {
        match (self, model.provider.as_str()) {
            (Self::Azure, _) => "Azure OpenAI".to_owned(),
            (Self::OpenAi, "openai") => "OpenAI".to_owned(),
            (Self::OpenAi, provider) => provider.to_owned(),
        }
    }
}

/// The resolved differences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compat {
    pub(super) developer_role: bool,
    pub(super) affinity: Affinity,
    pub(super) cache_key: bool,
    pub(super) long_retention: bool,
    pub(super) cache_options: bool,
    pub(super) strict_field: bool,
    pub(super) max_output_tokens: bool,
    pub(super) images: ImageLimits,
    /// True where changes of the system prompt stand in their place.
    pub(super) prompt_in_place: bool,
    pub(super) tool_loading: ToolLoading,
    /// True where the effort is set in front of each answer.
    pub(super) effort_in_place: bool,
    /// True where a request says that nothing is to be thought.
    pub(super) says_off: bool,
    /// True where earlier thinking is wanted also by a request that asks for none.
    pub(super) always_encrypts: bool,
    /// True where the ids of other models' calls are of the form `call|item` or plain.
    pub(super) keeps_call_ids: bool,
}

/// How tools come into a conversation that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolLoading {
    /// Not at all: the tools of now are a field of the request.
    None,
    /// As items with tools, the first of them in front of the conversation.
    AdditionalTools,
    /// As what a search for tools found.
    ToolSearch,
}

/// Which headers tell the server that requests belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    None,
    OpenAi,
    OpenAiNoSession,
    OpenRouter,
}

impl Affinity {
    pub(super) fn headers(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::OpenAi => &["session-id", "x-client-request-id"],
            Self::OpenAiNoSession => &["x-client-request-id"],
            Self::OpenRouter => &["x-session-id"],
        }
    }
}

impl Compat {
    pub(crate) fn of(model: &Model, service: Service) -> Self {
        let given = |name: &str| model.compat.as_ref().and_then(|compat| compat.get(name));
        let flag = |name: &str, default: bool| given(name).and_then(Value::as_bool).unwrap_or(default);
        let text = |name: &str| given(name).and_then(Value::as_str);

        let azure = service == Service::Azure;
        let openrouter = model.provider == "openrouter" || model.base_url.contains("openrouter.ai");
        let affinity = match text("sessionAffinityFormat") {
            _ if azure => Affinity::None,
            Some("openai-nosession") => Affinity::OpenAiNoSession,
            Some("openrouter") => Affinity::OpenRouter,
            None if openrouter => Affinity::OpenRouter,
            _ => Affinity::OpenAi,
        };
        let own = matches!(model.provider.as_str(), "openai" | "openai-codex" | "opencode");
        Self {
            developer_role: flag("supportsDeveloperRole", true),
            affinity,
            cache_key: text("promptCacheKeyMode") != Some("disabled"),
            long_retention: !azure && flag("supportsLongCacheRetention", true),
            cache_options: !azure && flag("supportsExplicitPromptCacheMode", false),
            strict_field: flag("supportsStrictMode", azure),
            max_output_tokens: flag("supportsMaxOutputTokens", true),
            images: if azure { AZURE_IMAGES } else { OPENAI_IMAGES },
            prompt_in_place: flag("supportsMidConvoSystemMessages", false),
            tool_loading: if flag("supportsAdditionalTools", false) {
                ToolLoading::AdditionalTools
            } else if flag("supportsToolSearch", false) {
                ToolLoading::ToolSearch
            } else {
                ToolLoading::None
            },
            effort_in_place: !azure && model.reasoning && flag("supportsMidConvoEffort", false),
            // What Pi 1.6.0 sends to these two; neither documents it.
            says_off: model.provider != "github-copilot",
            always_encrypts: model.provider == "xai",
            keeps_call_ids: own || azure,
        }
    }
}
