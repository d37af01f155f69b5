//! Which models there are, which of them can be used, and what authorises a request to one.

mod catalogue;
mod choose;
mod file;
mod key_place;
mod list;
mod resolve;
mod scope;
mod shelf;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use sampi_protocol::data::Model;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};

use super::auth::{
    AuthError, AuthFile, CommandCache, KeyForm, KeySource, Renewal, SignIns, environment_variables,
    key_source,
};
use super::config_value::{CommandError, ConfigValue, run_command};
use super::{Environment, Paths};
use crate::llm::Credentials;
use crate::llm::anthropic_messages::Federation;
use crate::llm::google_vertex::DefaultCredentials;
use crate::llm::http::Http;
use crate::oauth::Tokens;
pub use choose::{Initial, InitialWish, ThinkingWish, default_thinking, unknown_model};
use file::{Headers, ProviderEntry, Surroundings};
use key_place::place_key;
pub use list::list_models;
pub use resolve::{ModelWish, ResolveError, Resolved};
pub use scope::ScopedModel;
use shelf::Shelf;

/// The provider of the embedded demo model. It needs no key and is used only when asked for.
pub const DEMO_PROVIDER: &str = "demo";

/// The models and their providers' credentials. The default has neither.
#[derive(Default)]
pub struct ModelRegistry {
    environment: Environment,
    /// Those that come with the program first, then those of `models.json` in its order.
    shelves: Vec<Shelf>,
    providers: BTreeMap<String, ProviderAuth>,
    auth: AuthFile,
    sign_ins: SignIns,
    cache: Arc<CommandCache>,
    api_keys: HashMap<String, SecretString>,
    /// Providers that count only when named, and those of them that were.
    on_request: BTreeSet<String>,
    requested: BTreeSet<String>,
    warnings: Vec<String>,
}

/// What `models.json` says about a provider's requests.
#[derive(Default)]
struct ProviderAuth {
    api_key: Option<SecretString>,
    headers: Headers,
    auth_header: bool,
    has_base_url: bool,
    model_headers: HashMap<String, Headers>,
}

/// A key that was found, before a command has run.
struct FoundKey {
    source: KeySource,
    form: KeyForm,
    origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A failure counts as having no key, and a command runs once.
    AuthFile,
    /// A failure fails the request, and a command runs for every request.
    ModelsFile,
    Other,
}

impl ModelRegistry {
    /// Reads `models.json` and `auth.json`. The providers of `on_request` need no key and are offered
    /// only after [`Self::request`]; naming them in a pattern finds their models at any time.
    pub fn load(environment: &Environment, paths: &Paths, on_request: Vec<Model>) -> Self {
        let (entries, mut warnings) = file::load(paths);
        let (auth, auth_warnings) = AuthFile::load(paths);
        warnings.extend(auth_warnings);
        let mut registry = Self::new(environment, auth, on_request.iter());
        registry.sign_ins = SignIns::new(paths.auth_file());
        registry.warnings = warnings;
        for entry in entries {
            registry.add_provider(entry, &paths.models_file().display().to_string());
        }
        registry.warn_of_hidden_keys(&paths.auth_file());
        registry.add_models(on_request);
        registry
    }

    /// Reads no file: `models` is in the form of `models.json`, and keys come from there, from the environment and
    /// from [`Self::set_api_key`]. `on_request` as with [`Self::load`].
    pub fn in_memory(environment: &Environment, models: &Map<String, Value>, on_request: Vec<Model>) -> Self {
        let source = "models in memory";
        let mut registry = Self::new(environment, AuthFile::default(), on_request.iter());
        let entries = file::read(models, source, &mut registry.warnings);
        for entry in entries {
            registry.add_provider(entry, source);
        }
        registry.add_models(on_request);
        registry
    }

    fn new<'a>(
        environment: &Environment,
        auth: AuthFile,
        on_request: impl Iterator<Item = &'a Model>,
    ) -> Self {
        Self {
            environment: environment.clone(),
            shelves: Shelf::builtin(),
            auth,
            on_request: on_request.map(|model| model.provider.clone()).collect(),
            ..Self::default()
        }
    }

    fn add_models(&mut self, models: Vec<Model>) {
        for model in models {
            let shelf = Shelf::of(&mut self.shelves, &model.provider);
            shelf.change(|_| None, |models| models.push(model));
        }
    }

    /// Takes over what an earlier registry knows of the life of the process: what commands of `auth.json` that
    /// run once have said.
    pub fn continue_from(&mut self, earlier: &Self) {
        self.cache = Arc::clone(&earlier.cache);
    }

    /// What was wrong with the files, one line each.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Sets the key of a provider for this run (`--api-key`). It goes before every other.
    pub fn set_api_key(&mut self, provider: &str, key: SecretString) {
        self.api_keys.insert(provider.to_owned(), key);
    }

    /// Offers the models of a provider that is otherwise not counted.
    pub fn request(&mut self, provider: &str) {
        if self.on_request.contains(provider) {
            self.requested.insert(provider.to_owned());
        }
    }

    /// The models whose provider has credentials.
    pub fn available(&self) -> Vec<Model> {
        self.available_models().cloned().collect()
    }

    /// The model with exactly this provider and id, with or without credentials.
    pub fn find(&self, provider: &str, id: &str) -> Option<Model> {
        self.models_of(provider).iter().find(|model| model.id == id).cloned()
    }

    /// Where the key of a model's provider comes from. Runs no command.
    pub fn key_source(&self, model: &Model) -> KeySource {
        self.find_key(&model.provider).source
    }

    /// Says at once whether a request to the model can be tried: what is known without running a command.
    pub fn check(&self, model: &Model) -> Result<(), AuthError> {
        match self.key_source(model) {
            KeySource::Missing(why) => Err(no_key(&model.provider, why)),
            KeySource::Ready(_) | KeySource::Command(_) | KeySource::SignIn(_) | KeySource::NotNeeded => {
                Ok(())
            }
        }
    }

    /// True for a provider that is known, with or without credentials.
    pub fn has_provider(&self, provider: &str) -> bool {
        self.providers().any(|known| known == provider)
    }

    /// The tokens of the provider's sign-in, also when they have expired. `None` when another kind of
    /// credentials counts.
    pub fn sign_in(&self, provider: &str) -> Option<Tokens> {
        match self.auth.key_source(provider, &self.environment)? {
            KeySource::SignIn(tokens) if !self.api_keys.contains_key(provider) => Some(*tokens),
            _ => None,
        }
    }

    /// The same, renewed if need be.
    pub async fn renewed_sign_in(
        &self,
        provider: &str,
        tokens: &Tokens,
        renewal: Renewal,
    ) -> Result<Tokens, AuthError> {
        self.sign_ins.tokens(provider, tokens, renewal).await
    }

    /// Renews sign-ins over this HTTP client.
    pub fn use_http(&mut self, http: Http) {
        self.sign_ins = self.sign_ins.over(http);
    }

    /// Takes these for what is known of authorization servers.
    #[cfg(test)]
    pub(crate) fn set_services(&mut self, file: std::path::PathBuf, services: Vec<crate::oauth::Service>) {
        self.sign_ins = SignIns::with_services(file, services);
    }

    /// All providers that are known, with or without credentials.
    pub fn providers(&self) -> impl Iterator<Item = &str> {
        let names = self.shelves.iter().map(|shelf| shelf.provider.as_ref());
        names.filter(|provider| self.is_offered(provider))
    }

    /// The providers that `auth.json` says something of.
    pub fn saved_providers(&self) -> impl Iterator<Item = &str> {
        self.auth.providers()
    }

    /// The variables without which requests to the provider have no address.
    pub fn required_variables(&self, provider: &str) -> &'static [&'static str] {
        match self.providers.get(provider).is_some_and(|auth| auth.has_base_url) {
            true => &[],
            false => catalogue::required_variables(provider),
        }
    }

    /// The key of a provider. `None` where it needs none.
    pub async fn key(&self, provider: &str, renewal: Renewal) -> Result<Option<SecretString>, AuthError> {
        Ok(self.resolve_key(provider, self.find_key(provider), renewal).await?.0)
    }

    async fn resolve_key(
        &self,
        provider: &str,
        found: FoundKey,
        renewal: Renewal,
    ) -> Result<(Option<SecretString>, KeyForm), AuthError> {
        let FoundKey { source, origin, form } = found;
        match source {
            KeySource::Ready(key) => Ok((Some(key), form)),
            KeySource::SignIn(tokens) => {
                Ok((Some(self.sign_ins.tokens(provider, &tokens, renewal).await?.access), form))
            }
            KeySource::NotNeeded => Ok((None, form)),
            KeySource::Missing(why) => Err(no_key(provider, why)),
            KeySource::Command(command) if origin == Origin::AuthFile => {
                match self.cache.run(&command, &self.environment).await {
                    Ok(key) => Ok((Some(key), form)),
                    Err(error) => self.key_beside(provider, &error),
                }
            }
            KeySource::Command(command) => {
                let failed = |error: CommandError| AuthError::Unresolved {
                    provider: provider.to_owned(),
                    why: format!(
                        "Failed to resolve API key for provider \"{provider}\" from shell command: {error}"
                    ),
                };
                Ok((Some(run_command(&command, &self.environment).await.map_err(failed)?), form))
            }
        }
    }

    /// What the environment has where the command of an entry of `auth.json` gave no key.
    fn key_beside(
        &self,
        provider: &str,
        error: &CommandError,
    ) -> Result<(Option<SecretString>, KeyForm), AuthError> {
        let why = format!("the key in auth.json could not be had: {error}");
        let FoundKey { source, form, .. } = match self.environment_key(provider) {
            Some(found) if found.source.is_usable() => found,
            _ => return Err(no_key(provider, Some(why))),
        };
        tracing::warn!(provider, why, "the credentials of the environment are used");
        match source {
            KeySource::Ready(key) => Ok((Some(key), form)),
            _ => Ok((None, form)),
        }
    }

    /// What authorises a request to the model, with every value resolved. Runs commands where they are
    /// configured: those of `auth.json` once, those of `models.json` every time.
    pub async fn credentials(&self, model: &Model) -> Result<Credentials, AuthError> {
        let provider = model.provider.as_str();
        let found = self.find_key(provider);
        let signed_in = matches!(found.source, KeySource::SignIn(_));
        let (api_key, form) = self.resolve_key(provider, found, Renewal::default()).await?;
        let mut headers = self.headers(model).await?;
        let auth_header = self.providers.get(provider).is_some_and(|auth| auth.auth_header);
        if auth_header && api_key.is_some() {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        }
        let bearer = auth_header || form == KeyForm::Bearer;
        let variables = self.auth.own_variables(provider);
        let environment = self.environment.clone();
        let enterprise_url = if signed_in { self.auth.enterprise_url(provider) } else { None };
        let mut credentials =
            Credentials { api_key, headers, bearer, signed_in, enterprise_url, variables, environment };
        place_key(provider, &mut credentials)?;
        Ok(credentials)
    }

    /// The models of all providers that have credentials. Reads the tables of those.
    fn available_models(&self) -> impl Iterator<Item = &Model> {
        let is_available =
            |shelf: &&Shelf| self.is_offered(&shelf.provider) && self.is_usable(&shelf.provider);
        self.shelves.iter().filter(is_available).flat_map(|shelf| self.models_on(shelf))
    }

    /// The models of a provider, whether it has credentials or not.
    fn models_of(&self, provider: &str) -> &[Model] {
        let shelf = self.shelves.iter().find(|shelf| shelf.provider == provider);
        shelf.map(|shelf| self.models_on(shelf)).unwrap_or_default()
    }

    fn models_on<'a>(&'a self, shelf: &'a Shelf) -> &'a [Model] {
        shelf.models(|name| self.auth.variable(&shelf.provider, name, &self.environment))
    }

    /// False for a provider that nobody asked for.
    fn is_offered(&self, provider: &str) -> bool {
        !self.on_request.contains(provider) || self.requested.contains(provider)
    }

    fn is_usable(&self, provider: &str) -> bool {
        self.find_key(provider).source.is_usable()
    }

    fn find_key(&self, provider: &str) -> FoundKey {
        let mut found = self.configured_key(provider);
        if found.source.is_usable()
            && let Some(name) = self.missing_variable(provider)
        {
            found.source = KeySource::Missing(Some(format!("{name} is not set")));
        }
        found
    }

    /// A variable that the address of the provider needs and that is not set.
    fn missing_variable(&self, provider: &str) -> Option<&'static str> {
        let is_missing = |name: &str| self.auth.variable(provider, name, &self.environment).is_none();
        self.required_variables(provider).iter().copied().find(|name| is_missing(name))
    }

    fn configured_key(&self, provider: &str) -> FoundKey {
        let found = |source, origin| FoundKey { source, form: KeyForm::ApiKey, origin };
        if let Some(key) = self.api_keys.get(provider) {
            return found(KeySource::Ready(key.clone()), Origin::Other);
        }
        if self.on_request.contains(provider) {
            return found(KeySource::NotNeeded, Origin::Other);
        }
        let variable = |name: &str| self.auth.variable(provider, name, &self.environment);
        match self.auth.key_source(provider, &self.environment) {
            // An entry may be there for its variables alone, as in Pi.
            Some(KeySource::Missing(why)) => {
                let none = || found(KeySource::Missing(why), Origin::AuthFile);
                return self.environment_key(provider).unwrap_or_else(none);
            }
            Some(KeySource::SignIn(tokens)) => {
                let obstacle = self.sign_ins.obstacle(provider, &tokens);
                let source = obstacle.map_or(KeySource::SignIn(tokens), |why| KeySource::Missing(Some(why)));
                return found(source, Origin::AuthFile);
            }
            Some(source) => return found(source, Origin::AuthFile),
            None => {}
        }
        // A key that is configured and cannot be had ends the search: the next one may be meant for
        // another endpoint.
        if let Some(key) = self.providers.get(provider).and_then(|auth| auth.api_key.as_ref()) {
            let value = ConfigValue::read(key.expose_secret(), variable);
            return found(key_source(value, "apiKey in models.json"), Origin::ModelsFile);
        }
        self.environment_key(provider).unwrap_or_else(|| found(KeySource::Missing(None), Origin::Other))
    }

    /// What the environment has for a provider: a key, or credentials that need none.
    fn environment_key(&self, provider: &str) -> Option<FoundKey> {
        let variable = |name: &str| self.auth.variable(provider, name, &self.environment);
        let found = |source, form| Some(FoundKey { source, form, origin: Origin::Other });
        for key in environment_variables(provider) {
            // In Pi the variables of an entry are no place for the key itself, but for those of a cloud.
            let is_cloud = CLOUDS.contains(&provider);
            let value = if is_cloud { variable(key.name) } else { self.environment.get(key.name) };
            if let Some(value) = value {
                return found(KeySource::Ready(value.into()), key.form);
            }
        }
        found(ambient_source(provider, variable)?, KeyForm::ApiKey)
    }

    /// The headers of a model: those that it comes with, the provider's over them, and over these what
    /// `models.json` says of the model.
    async fn headers(&self, model: &Model) -> Result<Vec<(String, SecretString)>, AuthError> {
        let provider = model.provider.as_str();
        let mut headers = built_in_headers(model);
        let Some(auth) = self.providers.get(provider) else { return Ok(headers) };
        let mut configured: Vec<&(String, SecretString)> = Vec::new();
        for header in auth.headers.iter().chain(auth.model_headers.get(&model.id).into_iter().flatten()) {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case(&header.0));
            configured.retain(|(name, _)| !name.eq_ignore_ascii_case(&header.0));
            configured.push(header);
        }
        for (name, value) in configured {
            let failed = |how: String| AuthError::Unresolved {
                provider: provider.to_owned(),
                why: format!("Failed to resolve provider \"{provider}\" header \"{name}\" from {how}"),
            };
            let variable = |name: &str| self.auth.variable(provider, name, &self.environment);
            let value = match ConfigValue::read(value.expose_secret(), variable) {
                ConfigValue::Ready(value) => value,
                ConfigValue::MissingVariables(names) => {
                    let plural = if names.len() > 1 { "s" } else { "" };
                    return Err(failed(format!("environment variable{plural}: {}", names.join(", "))));
                }
                ConfigValue::Command(command) => run_command(&command, &self.environment)
                    .await
                    .map_err(|error| failed(format!("shell command: {error}")))?,
            };
            headers.push((name.clone(), value));
        }
        Ok(headers)
    }

    fn add_provider(&mut self, entry: ProviderEntry, source: &str) {
        let Self { shelves, auth, environment, .. } = self;
        let mut problems = Vec::new();
        Shelf::of(shelves, &entry.id).change(
            |name| auth.variable(&entry.id, name, environment),
            |models| merge(models, &entry, &mut problems),
        );
        self.warnings.extend(problems.into_iter().map(|problem| format!("{source}: {problem}")));
        let with_headers =
            entry.models.iter().chain(&entry.overrides).filter(|model| !model.headers.is_empty());
        let model_headers = with_headers.map(|model| (model.id.clone(), model.headers.clone())).collect();
        let auth = ProviderAuth {
            api_key: entry.api_key,
            headers: entry.headers,
            auth_header: entry.auth_header,
            has_base_url: entry.base_url.is_some(),
            model_headers,
        };
        self.providers.insert(entry.id, auth);
    }

    /// An entry of `auth.json` that gives no key goes before the key in `models.json`, and one of an expired
    /// sign-in before the environment too, as in Pi. That is told, as it is a surprise.
    fn warn_of_hidden_keys(&mut self, file: &Path) {
        let mut warnings = Vec::new();
        for provider in self.auth.providers() {
            let (why, is_sign_in) = match self.auth.key_source(provider, &self.environment) {
                Some(KeySource::Missing(why)) => (why, false),
                Some(KeySource::SignIn(tokens)) => (self.sign_ins.obstacle(provider, &tokens), true),
                _ => continue,
            };
            let Some(why) = why else { continue };
            let in_models = self.providers.get(provider).is_some_and(|auth| auth.api_key.is_some());
            let names = environment_variables(provider).iter().map(|key| key.name);
            let hidden = match in_models {
                true => Some("the apiKey in models.json"),
                false if is_sign_in => names.into_iter().find(|name| self.environment.get(name).is_some()),
                false => None,
            };
            if let Some(hidden) = hidden {
                let file = file.display();
                warnings.push(format!(
                    "{file}: {provider}: {why}; the entry goes before {hidden}, which is not used"
                ));
            }
        }
        self.warnings.extend(warnings);
    }
}

/// Lays what `models.json` says of a provider over its models.
fn merge(models: &mut Vec<Model>, entry: &ProviderEntry, problems: &mut Vec<String>) {
    for model in models.iter_mut() {
        if let Some(base_url) = &entry.base_url {
            model.base_url.clone_from(base_url);
        }
        file::lay_over(&mut model.compat, &entry.compat);
        if let Some(patch) = entry.overrides.iter().find(|patch| patch.id == model.id) {
            patch.apply(model);
        }
    }
    let sibling = models.first().cloned();
    let surroundings = Surroundings { provider: entry, sibling: sibling.as_ref() };
    for custom in &entry.models {
        match custom.build(&surroundings) {
            Ok(model) => match models.iter_mut().find(|other| other.id == model.id) {
                Some(place) => *place = model,
                None => models.push(model),
            },
            Err(problem) => problems.push(problem),
        }
    }
}

/// The headers that a model of the catalogue comes with. They are no secrets.
fn built_in_headers(model: &Model) -> Vec<(String, SecretString)> {
    let headers = model.extra.get("headers").and_then(serde_json::Value::as_object).into_iter().flatten();
    headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.into()))).collect()
}

/// Providers with credentials of another kind than keys.
const CLOUDS: [&str; 2] = ["amazon-bedrock", "google-vertex"];

/// What these variables have that authorises the provider's requests without a key.
fn ambient_source<'v>(provider: &str, variable: impl Fn(&str) -> Option<&'v str>) -> Option<KeySource> {
    let has = |name: &str| variable(name).is_some();
    match provider {
        "amazon-bedrock" => {
            let has_keys = has("AWS_ACCESS_KEY_ID") && has("AWS_SECRET_ACCESS_KEY");
            (has("AWS_PROFILE") || has_keys).then_some(KeySource::NotNeeded)
        }
        "anthropic" => Some(match Federation::find(|name| variable(name).map(str::to_owned))? {
            Ok(_) => KeySource::NotNeeded,
            Err(why) => KeySource::Missing(Some(why)),
        }),
        "google-vertex" => match DefaultCredentials::find(|name| variable(name).map(str::to_owned)) {
            DefaultCredentials::Usable => Some(KeySource::NotNeeded),
            DefaultCredentials::Incomplete(why) => Some(KeySource::Missing(Some(why))),
            DefaultCredentials::Absent => None,
        },
        _ => None,
    }
}

fn no_key(provider: &str, why: Option<String>) -> AuthError {
    if provider == UNKNOWN {
        return AuthError::NoModel;
    }
    AuthError::NoKey { provider: provider.to_owned(), why }
}

/// Says what to do when there is no model at all.
const NO_MODELS: &str = "No models available. Set a provider's key in the environment, save one in auth.json, or \
describe a provider in models.json.";

/// Stands for every name of the model when there is none.
const UNKNOWN: &str = "unknown";
