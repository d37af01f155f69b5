//! What providers and their variables are called.

/// The name of a provider; its id when it has none of its own.
pub(super) fn shown_name(provider: &str) -> &str {
    match provider {
        "amazon-bedrock" => "Amazon Bedrock",
        "ant-ling" => "Ant Ling",
        "anthropic" => "Anthropic",
        "azure" => "Azure OpenAI",
        "baseten" => "Baseten",
        "cerebras" => "Cerebras",
        "cloudflare-ai-gateway" => "Cloudflare AI Gateway",
        "cloudflare-workers-ai" => "Cloudflare Workers AI",
        "deepseek" => "DeepSeek",
        "fireworks" => "Fireworks",
        "github-copilot" => "GitHub Copilot",
        "google" => "Google Gemini",
        "google-vertex" => "Google Vertex AI",
        "groq" => "Groq",
        "huggingface" => "Hugging Face",
        "kimi-coding" => "Kimi For Coding",
        "meta" => "Meta",
        "minimax" => "MiniMax",
        "minimax-cn" => "MiniMax (China)",
        "mistral" => "Mistral",
        "moonshotai" => "Moonshot AI",
        "moonshotai-cn" => "Moonshot AI (China)",
        "nvidia" => "NVIDIA NIM",
        "openai" => "OpenAI",
        "openai-codex" => "OpenAI Codex",
        "opencode" => "OpenCode Zen",
        "opencode-go" => "OpenCode Go",
        "openrouter" => "OpenRouter",
        "qwen-token-plan" => "Qwen Token Plan Team",
        "qwen-token-plan-cn" => "Qwen Token Plan Team (China)",
        "qwen-token-plan-individual" => "Qwen Token Plan Individual",
        "qwen-token-plan-individual-cn" => "Qwen Token Plan Individual (China)",
        "radius" => "Radius",
        "together" => "Together AI",
        "typesafe" => "TypeSafe",
        "vercel-ai-gateway" => "Vercel AI Gateway",
        "xai" => "xAI",
        "xiaomi" => "Xiaomi MiMo",
        "xiaomi-token-plan-ams" => "Xiaomi MiMo Token Plan (Amsterdam)",
        "xiaomi-token-plan-cn" => "Xiaomi MiMo Token Plan (China)",
        "xiaomi-token-plan-sgp" => "Xiaomi MiMo Token Plan (Singapore)",
        "zai" => "ZAI Coding Plan",
        "zai-coding-cn" => "ZAI Coding Plan (China)",
        other => other,
    }
}

/// What a variable holds.
pub(super) fn variable_name(variable: &str) -> &str {
    match variable {
        "AWS_PROFILE" => "AWS profile",
        "AWS_REGION" => "AWS region",
        "CLOUDFLARE_ACCOUNT_ID" => "Cloudflare account ID",
        "CLOUDFLARE_GATEWAY_ID" => "Cloudflare AI Gateway ID",
        "GOOGLE_APPLICATION_CREDENTIALS" => "path of the credentials file",
        "GOOGLE_CLOUD_LOCATION" => "Google Cloud location",
        "GOOGLE_CLOUD_PROJECT" => "Google Cloud project ID",
        other => other,
    }
}
