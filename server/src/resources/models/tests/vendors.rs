use super::*;

const COPILOT: &str = "User-Agent=GitHubCopilotChat/0.35.0 Editor-Version=vscode/1.107.0 \
     Editor-Plugin-Version=copilot-chat/0.35.0 Copilot-Integration-Id=vscode-chat";

async fn describe(home: &Home, provider: &str, id: &str) -> String {
    let registry = home.load();
    let Some(model) = registry.find(provider, id) else { return format!("no {provider}/{id}") };
    match registry.credentials(&model).await {
        Err(error) => format!("! {error}"),
        Ok(Credentials {
            api_key,
            headers,
            bearer,
            signed_in: _,
            enterprise_url: _,
            variables: _,
            environment: _,
        }) => {
            let key = api_key.map_or("-".to_owned(), |key| key.expose_secret().to_owned());
            let headers = headers.iter().map(|(name, value)| format!(" {name}={}", value.expose_secret()));
            let form = if bearer { " bearer" } else { "" };
            format!("{} {key}{form}{}", model.base_url, headers.collect::<String>())
        }
    }
}

/// What Pi 1.6.0 did with the same variables.
#[tokio::test]
async fn each_provider_gets_its_key_at_its_address_in_its_place() {
    let gateway = "https://gateway.ai.cloudflare.com/v1/acc/gw";
    let copilot = format!("https://api.individual.githubcopilot.com tok bearer {COPILOT}");
    for (provider, id, variable, expected) in [
        ("github-copilot", "claude-fable-5", "COPILOT_GITHUB_TOKEN", copilot.as_str()),
        ("github-copilot", "gemini-3.8-flash", "COPILOT_GITHUB_TOKEN", &copilot),
        ("github-copilot", "gpt-5.3-codex", "COPILOT_GITHUB_TOKEN", &copilot),
        (
            "cloudflare-ai-gateway",
            "claude-fable-5",
            "CLOUDFLARE_API_KEY",
            &format!("{gateway}/anthropic - cf-aig-authorization=Bearer tok"),
        ),
        (
            "cloudflare-ai-gateway",
            "gpt-4.1",
            "CLOUDFLARE_API_KEY",
            &format!("{gateway}/openai - cf-aig-authorization=Bearer tok"),
        ),
        (
            "cloudflare-ai-gateway",
            "workers-ai/@cf/moonshotai/kimi-k2.7-code",
            "CLOUDFLARE_API_KEY",
            &format!("{gateway}/compat - cf-aig-authorization=Bearer tok"),
        ),
        (
            "cloudflare-workers-ai",
            "@cf/moonshotai/kimi-k2.7-code",
            "CLOUDFLARE_API_KEY",
            "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1 tok",
        ),
        ("azure", "deepseek-v4-pro", "AZURE_OPENAI_API_KEY", " tok"),
        ("vercel-ai-gateway", "alibaba/qwen-3-14b", "AI_GATEWAY_API_KEY", "https://ai-gateway.vercel.sh tok"),
        ("kimi-coding", "k3", "KIMI_API_KEY", "https://api.kimi.com/coding/v1 tok"),
        ("xai", "grok-4.3", "XAI_API_KEY", "https://api.x.ai/v1 tok"),
        ("opencode", "claude-fable-5", "OPENCODE_API_KEY", "https://opencode.ai/inference/anthropic tok"),
        (
            "opencode",
            "gemini-3.5-flash",
            "OPENCODE_API_KEY",
            "https://opencode.ai/inference/google/v1beta tok",
        ),
        ("opencode-go", "gpt-5.6-luna", "OPENCODE_API_KEY", "https://opencode.ai/inference/go/openai/v1 tok"),
    ] {
        let home = Home::with_text("{}")
            .variable(variable, "tok")
            .variable("CLOUDFLARE_ACCOUNT_ID", "acc")
            .variable("CLOUDFLARE_GATEWAY_ID", "gw");
        assert_eq!(describe(&home, provider, id).await, expected, "{provider}/{id}");
    }
}

#[tokio::test]
async fn a_key_of_any_source_goes_to_the_same_place_and_the_address_of_models_json_counts() {
    let own = |provider: &str, fields: Value| Home::new(&json!({ "providers": { provider: fields } }));
    let saved = json!({ "github-copilot": { "type": "api_key", "key": "tok" },
        "cloudflare-ai-gateway": { "type": "api_key", "key": "tok" } });
    for provider in ["github-copilot", "cloudflare-ai-gateway"] {
        let expected = match provider {
            "github-copilot" => format!("http://own tok bearer {COPILOT}"),
            _ => "http://own - cf-aig-authorization=Bearer tok".to_owned(),
        };
        let here = own(provider, json!({ "baseUrl": "http://own", "apiKey": "tok" }));
        assert_eq!(describe(&here, provider, "claude-fable-5").await, expected);
        let there = own(provider, json!({ "baseUrl": "http://own" })).auth(&saved);
        assert_eq!(describe(&there, provider, "claude-fable-5").await, expected);
    }
}

#[tokio::test]
async fn the_vendor_behind_cloudflares_gateway_gets_what_models_json_says_and_never_the_gateways_key() {
    let provider = "cloudflare-ai-gateway";
    for (fields, expected) in [
        (
            json!({ "headers": { "Authorization": "Bearer up" } }),
            "http://own - Authorization=Bearer up cf-aig-authorization=Bearer tok",
        ),
        (
            json!({ "headers": { "x-api-key": "up" } }),
            "http://own - x-api-key=up cf-aig-authorization=Bearer tok",
        ),
        (json!({ "headers": { "CF-AIG-Authorization": "own" } }), "http://own - CF-AIG-Authorization=own"),
        (
            json!({ "authHeader": true }),
            "! API key auth failed for provider cloudflare-ai-gateway: authHeader requires a resolved API key",
        ),
    ] {
        let mut fields = fields;
        fields["baseUrl"] = json!("http://own");
        let home =
            Home::new(&json!({ "providers": { provider: fields } })).variable("CLOUDFLARE_API_KEY", "tok");
        let text = describe(&home, provider, "gpt-4.1").await;
        match expected.starts_with('!') {
            true => assert!(text.starts_with(expected), "{text}"),
            false => assert_eq!(text, expected),
        }
    }
}
