//! What is publicly documented of the providers' authorization servers.
//!
//! - OpenRouter: <https://openrouter.ai/docs/use-cases/oauth-pkce>. It gives a key that does not expire.
//! - Kimi: the open-source Kimi CLI (MoonshotAI/kimi-cli, Apache-2.0).
//! - OpenAI Codex: the open-source Codex CLI (openai/codex, Apache-2.0).
//!
//! Of the others (Anthropic, GitHub Copilot, Meta, xAI) no documentation says how a program other
//! than their own signs in or refreshes tokens: a sign-in that Pi saved is used until it expires.

/// A provider's authorization server.
#[derive(Debug, Clone)]
pub struct Service {
    /// The provider.
    pub provider: &'static str,
    /// How to sign in.
    pub sign_in: SignIn,
    /// How to get the next tokens. `None` where tokens do not expire.
    pub refresh: Option<Refresh>,
}

/// How to sign in.
#[derive(Debug, Clone)]
pub enum SignIn {
    /// In a browser, which brings a code back.
    Browser(BrowserSignIn),
    /// With a code that is typed in on a web page.
    Device(DeviceSignIn),
}

/// A sign-in in a browser.
#[derive(Debug, Clone)]
pub struct BrowserSignIn {
    /// Where it begins.
    pub authorize_url: String,
    /// Where the code is given for tokens.
    pub exchange_url: String,
    /// What the two want to hear.
    pub dialect: Dialect,
}

/// What a server wants to hear.
#[derive(Debug, Clone)]
pub enum Dialect {
    /// RFC 6749 and 7636.
    Code(CodeClient),
    /// OpenRouter's: no client and no state; a key for the code.
    KeyExchange,
}

/// A client that is known to an authorization server.
#[derive(Debug, Clone)]
pub struct CodeClient {
    /// Its id.
    pub client_id: String,
    /// What is asked for.
    pub scope: String,
    /// The port of the page that the browser comes back to; 0 for any.
    pub port: u16,
    /// The path of that page.
    pub path: String,
    /// Further parameters of the address that the browser opens.
    pub extra: Vec<(&'static str, &'static str)>,
}

/// A sign-in with a code that is typed in.
#[derive(Debug, Clone)]
pub struct DeviceSignIn {
    /// Where a code is asked for.
    pub device_url: String,
    /// Where it is given for tokens.
    pub token_url: String,
    /// The client's id.
    pub client_id: String,
    /// What is asked for; empty for the server's default.
    pub scope: String,
}

/// How to get the next tokens.
#[derive(Debug, Clone)]
pub struct Refresh {
    /// Where.
    pub token_url: String,
    /// The client's id.
    pub client_id: String,
}

/// The service of a provider.
pub fn find<'s>(services: &'s [Service], provider: &str) -> Option<&'s Service> {
    services.iter().find(|service| service.provider == provider)
}

/// All services that are documented.
pub fn known() -> Vec<Service> {
    const KIMI_CLIENT: &str = "17e5f671-d194-4dfb-9706-5516cb48c098";
    const KIMI_TOKENS: &str = "https://auth.kimi.com/api/oauth/token";
    const CODEX_CLIENT: &str = "app_EMoamEEZ73f0CkXaXp7hrann";
    const CODEX_TOKENS: &str = "https://auth.openai.com/oauth/token";
    let refresh =
        |url: &str, client: &str| Some(Refresh { token_url: url.to_owned(), client_id: client.to_owned() });
    vec![
        Service {
            provider: "openrouter",
            sign_in: SignIn::Browser(BrowserSignIn {
                authorize_url: "https://openrouter.ai/auth".to_owned(),
                exchange_url: "https://openrouter.ai/api/v1/auth/keys".to_owned(),
                dialect: Dialect::KeyExchange,
            }),
            refresh: None,
        },
        Service {
            provider: "kimi-coding",
            sign_in: SignIn::Device(DeviceSignIn {
                device_url: "https://auth.kimi.com/api/oauth/device_authorization".to_owned(),
                token_url: KIMI_TOKENS.to_owned(),
                client_id: KIMI_CLIENT.to_owned(),
                scope: String::new(),
            }),
            refresh: refresh(KIMI_TOKENS, KIMI_CLIENT),
        },
        Service {
            provider: "openai-codex",
            sign_in: SignIn::Browser(BrowserSignIn {
                authorize_url: "https://auth.openai.com/oauth/authorize".to_owned(),
                exchange_url: CODEX_TOKENS.to_owned(),
                dialect: Dialect::Code(CodeClient {
                    client_id: CODEX_CLIENT.to_owned(),
                    scope: "openid profile email offline_access".to_owned(),
                    port: 1455,
                    path: "/auth/callback".to_owned(),
                    extra: vec![
                        ("id_token_add_organizations", "true"),
                        ("codex_cli_simplified_flow", "true"),
                    ],
                }),
            }),
            refresh: refresh(CODEX_TOKENS, CODEX_CLIENT),
        },
    ]
}
