//! The environment variables that may hold keys.

/// How a key from the environment is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// The way the API wants keys.
    ApiKey,
    /// As `Authorization: Bearer`, whatever the API wants.
    Bearer,
}

/// A variable that may hold a provider's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvironmentKey {
    /// The variable's name.
    pub name: &'static str,
    /// How its value is sent.
    pub form: KeyForm,
}

pub(super) const fn api_key(name: &'static str) -> EnvironmentKey {
    EnvironmentKey { name, form: KeyForm::ApiKey }
}

/// The variables that may hold a provider's key, the first that is set counts.
pub fn environment_variables(provider: &str) -> &'static [EnvironmentKey] {
    macro_rules! one {
        ($name:literal) => {{
            const KEYS: &[EnvironmentKey] = &[api_key($name)];
            KEYS
        }};
    }
    const ANTHROPIC: &[EnvironmentKey] = &[
        EnvironmentKey { name: "ANTHROPIC_AUTH_TOKEN", form: KeyForm::Bearer },
        api_key("ANTHROPIC_OAUTH_TOKEN"),
        api_key("ANTHROPIC_API_KEY"),
    ];
    match provider {
        "anthropic" => ANTHROPIC,
        "amazon-bedrock" => one!("AWS_BEARER_TOKEN_BEDROCK"),
        "ant-ling" => one!("ANT_LING_API_KEY"),
        "azure" => one!("AZURE_OPENAI_API_KEY"),
        "baseten" => one!("BASETEN_API_KEY"),
        "cerebras" => one!("CEREBRAS_API_KEY"),
        "cloudflare-ai-gateway" | "cloudflare-workers-ai" => one!("CLOUDFLARE_API_KEY"),
        "deepseek" => one!("DEEPSEEK_API_KEY"),
        "fireworks" => one!("FIREWORKS_API_KEY"),
        "github-copilot" => one!("COPILOT_GITHUB_TOKEN"),
        "google" => one!("GEMINI_API_KEY"),
        "google-vertex" => one!("GOOGLE_CLOUD_API_KEY"),
        "groq" => one!("GROQ_API_KEY"),
        "huggingface" => one!("HF_TOKEN"),
        "kimi-coding" => one!("KIMI_API_KEY"),
        "meta" => one!("META_API_KEY"),
        "minimax" => one!("MINIMAX_API_KEY"),
        "minimax-cn" => one!("MINIMAX_CN_API_KEY"),
        "mistral" => one!("MISTRAL_API_KEY"),
        "moonshotai" | "moonshotai-cn" => one!("MOONSHOT_API_KEY"),
        "nvidia" => one!("NVIDIA_API_KEY"),
        "openai" => one!("OPENAI_API_KEY"),
        "opencode" | "opencode-go" => one!("OPENCODE_API_KEY"),
        "openrouter" => one!("OPENROUTER_API_KEY"),
        "qwen-token-plan" => one!("QWEN_TOKEN_PLAN_TEAM_API_KEY"),
        "qwen-token-plan-cn" => one!("QWEN_TOKEN_PLAN_TEAM_CN_API_KEY"),
        "qwen-token-plan-individual" => one!("QWEN_TOKEN_PLAN_INDIVIDUAL_API_KEY"),
        "qwen-token-plan-individual-cn" => one!("QWEN_TOKEN_PLAN_INDIVIDUAL_CN_API_KEY"),
        "radius" => one!("RADIUS_API_KEY"),
        "together" => one!("TOGETHER_API_KEY"),
        "typesafe" => one!("TYPESAFE_API_KEY"),
        "vercel-ai-gateway" => one!("AI_GATEWAY_API_KEY"),
        "xai" => one!("XAI_API_KEY"),
        "xiaomi" => one!("XIAOMI_API_KEY"),
        "xiaomi-token-plan-ams" => one!("XIAOMI_TOKEN_PLAN_AMS_API_KEY"),
        "xiaomi-token-plan-cn" => one!("XIAOMI_TOKEN_PLAN_CN_API_KEY"),
        "xiaomi-token-plan-sgp" => one!("XIAOMI_TOKEN_PLAN_SGP_API_KEY"),
        "zai" => one!("ZAI_API_KEY"),
        "zai-coding-cn" => one!("ZAI_CODING_CN_API_KEY"),
        _ => &[],
    }
}
