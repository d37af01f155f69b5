//! How a server differs from OpenAI's own: what the model's `compat` says, else what its URL tells.

use sampi_protocol::data::Model;
use serde_json::{Map, Value};

/// The resolved differences.
#[derive(Debug, Clone)]
pub(super) struct Compat {
    pub(super) supports_store: bool,
    pub(super) supports_developer_role: bool,
    pub(super) supports_reasoning_effort: bool,
    pub(super) supports_usage_in_streaming: bool,
    pub(super) supports_finish_reason: bool,
    pub(super) supports_strict_mode: bool,
    pub(super) max_tokens_field: String,
    pub(super) requires_tool_result_name: bool,
    pub(super) requires_assistant_after_tool_result: bool,
    pub(super) requires_non_null_assistant_content: bool,
    pub(super) requires_tools_with_tool_history: bool,
    pub(super) requires_thinking_as_text: bool,
    pub(super) requires_reasoning_content: bool,
    pub(super) thinking_format: String,
    pub(super) thinking_token_budget_field: Option<String>,
    pub(super) zai_tool_stream: bool,
    /// True where changes of the system prompt stand in their place.
    pub(super) prompt_in_place: bool,
    /// True where new tools do, too.
    pub(super) tools_in_place: bool,
    pub(super) anthropic_cache_control: bool,
    pub(super) supports_long_cache_retention: bool,
    pub(super) prompt_cache_key: PromptCacheKey,
    pub(super) affinity: Affinity,
    /// What the model says about itself, for what is passed on as it stands.
    pub(super) given: Map<String, Value>,
}

/// When to send `prompt_cache_key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PromptCacheKey {
    Auto,
    Enabled,
    Disabled,
}

/// Which headers tell the server that requests belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Affinity {
    None,
    OpenAi,
    OpenAiNoSession,
    OpenRouter,
}

/// Servers that are known to deviate, by a part of their URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Host {
    OpenAi,
    OpenRouter,
    DeepSeek,
    XAi,
    Zai,
    Cerebras,
    Together,
    Moonshot,
    Chutes,
    OpenCode,
    CloudflareGateway,
    Cloudflare,
    Nvidia,
    AntLing,
    Other,
}

const HOSTS: &[(&str, Host)] = &[
    ("api.openai.com", Host::OpenAi),
    ("openrouter.ai", Host::OpenRouter),
    ("deepseek.com", Host::DeepSeek),
    ("api.x.ai", Host::XAi),
    ("api.z.ai", Host::Zai),
    ("bigmodel.cn", Host::Zai),
    ("cerebras.ai", Host::Cerebras),
    ("together.ai", Host::Together),
    ("together.xyz", Host::Together),
    ("api.moonshot.", Host::Moonshot),
    ("chutes.ai", Host::Chutes),
    ("opencode.ai", Host::OpenCode),
    ("gateway.ai.cloudflare.com", Host::CloudflareGateway),
    ("cloudflare.com", Host::Cloudflare),
    ("nvidia.com", Host::Nvidia),
    ("ant-ling.com", Host::AntLing),
];

impl Compat {
    pub(super) fn of(model: &Model) -> Self {
        use Host::*;
        let host = HOSTS
            .iter()
            .find(|(part, _)| model.base_url.contains(part))
            .map_or(Host::Other, |(_, host)| *host);
        let given = model.compat.clone().unwrap_or_default();
        let flag = |name: &str, default: bool| given.get(name).and_then(Value::as_bool).unwrap_or(default);
        let text = |name: &str| given.get(name).and_then(Value::as_str);

        let plain = matches!(host, OpenAi | OpenRouter | Other);
        let no_effort =
            matches!(host, XAi | Zai | Together | Moonshot | Nvidia | CloudflareGateway | AntLing);
        let short_field = matches!(host, DeepSeek | Chutes) || (no_effort && host != XAi);
        let no_long_cache = matches!(host, Together | Cloudflare | CloudflareGateway | Nvidia | AntLing);
        let thinking_format = match host {
            OpenRouter => "openrouter",
            DeepSeek => "deepseek",
            Zai => "zai",
            Together => "together",
            AntLing => "ant-ling",
            _ => "openai",
        };
        let by_session = model.provider == "openrouter" || host == OpenRouter;
        let affinity = match text("sessionAffinityFormat") {
            Some("openai") => Affinity::OpenAi,
            Some("openai-nosession") => Affinity::OpenAiNoSession,
            Some("openrouter") => Affinity::OpenRouter,
            _ if by_session => Affinity::OpenRouter,
            _ => Affinity::OpenAi,
        };
        Self {
            supports_store: flag("supportsStore", plain),
            supports_developer_role: flag("supportsDeveloperRole", host == OpenAi),
            supports_reasoning_effort: flag("supportsReasoningEffort", !no_effort),
            supports_usage_in_streaming: flag("supportsUsageInStreaming", true),
            supports_finish_reason: flag("supportsFinishReason", true),
            supports_strict_mode: flag("supportsStrictMode", false),
            max_tokens_field: text("maxTokensField")
                .unwrap_or(if short_field { "max_tokens" } else { "max_completion_tokens" })
                .to_owned(),
            requires_tool_result_name: flag("requiresToolResultName", false),
            requires_assistant_after_tool_result: flag("requiresAssistantAfterToolResult", false),
            requires_non_null_assistant_content: flag("requiresNonNullAssistantContent", false),
            requires_tools_with_tool_history: flag("requiresToolsWithToolHistory", false),
            requires_thinking_as_text: flag("requiresThinkingAsText", false),
            requires_reasoning_content: flag("requiresReasoningContentOnAssistantMessages", host == DeepSeek),
            thinking_format: text("thinkingFormat").unwrap_or(thinking_format).to_owned(),
            thinking_token_budget_field: text("thinkingTokenBudgetField")
                .or_else(|| flag("supportsThinkingTokenBudget", false).then_some("thinking_token_budget"))
                .map(str::to_owned),
            zai_tool_stream: flag("zaiToolStream", false),
            prompt_in_place: flag("supportsMidConvoSystemMessages", false),
            tools_in_place: flag("supportsMidConvoToolAdditions", false),
            anthropic_cache_control: text("cacheControlFormat") == Some("anthropic"),
            supports_long_cache_retention: flag("supportsLongCacheRetention", !no_long_cache),
            prompt_cache_key: match text("promptCacheKeyMode") {
                Some("enabled") => PromptCacheKey::Enabled,
                Some("disabled") => PromptCacheKey::Disabled,
                _ if host == OpenAi => PromptCacheKey::Enabled,
                _ => PromptCacheKey::Auto,
            },
            affinity: if flag("sendSessionAffinityHeaders", by_session) { affinity } else { Affinity::None },
            given,
        }
    }
}
