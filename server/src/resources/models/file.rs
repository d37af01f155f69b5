//! `models.json`: providers and models of the user. What is wrong is reported with its path in the file
//! and leaves out that model or provider alone.

use sampi_protocol::data::{CostTier, Extra, Model, ModelCost, ThinkingLevel};
use secrecy::SecretString;
use serde_json::{Map, Value};

use crate::llm::APIS;
use crate::resources::{Paths, jsonc};

/// Context window of a model that does not say.
const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;
/// Largest output of a model that does not say.
const DEFAULT_MAX_TOKENS: u64 = 16_384;

/// Objects of a model that are handed on as they are.
const OPAQUE_OBJECTS: [&str; 4] =
    ["inputLimits", "promptCache", "samplingParams", "samplingParamsByThinkingLevel"];

/// Headers as configured: the values may be references or commands.
pub(super) type Headers = Vec<(String, SecretString)>;

/// One entry of `providers`.
#[derive(Default)]
pub(super) struct ProviderEntry {
    pub(super) id: String,
    pub(super) base_url: Option<String>,
    pub(super) api: Option<String>,
    pub(super) api_key: Option<SecretString>,
    pub(super) headers: Headers,
    pub(super) auth_header: bool,
    pub(super) compat: Option<Map<String, Value>>,
    pub(super) models: Vec<ModelEntry>,
    pub(super) overrides: Vec<ModelEntry>,
}

/// One entry of `models` or `modelOverrides`: what it says and nothing else.
pub(super) struct ModelEntry {
    /// Where it stands, for messages.
    pub(super) path: String,
    pub(super) id: String,
    name: Option<String>,
    api: Option<String>,
    base_url: Option<String>,
    reasoning: Option<bool>,
    thinking_level_map: Option<Map<String, Value>>,
    input: Option<Vec<String>>,
    cost: CostEntry,
    context_window: Option<u64>,
    max_tokens: Option<u64>,
    compat: Option<Map<String, Value>>,
    pub(super) headers: Headers,
    opaque: Extra,
}

#[derive(Default)]
struct CostEntry {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
    tiers: Option<Vec<CostTier>>,
}

/// What a custom model takes from its surroundings where it says nothing.
pub(super) struct Surroundings<'a> {
    pub(super) provider: &'a ProviderEntry,
    /// A model that the provider has without the file.
    pub(super) sibling: Option<&'a Model>,
}

/// Reads the file. Gives the providers in order, and what is wrong, one line each.
pub(super) fn load(paths: &Paths) -> (Vec<ProviderEntry>, Vec<String>) {
    let mut warnings = Vec::new();
    let path = paths.models_file();
    let root = match jsonc::read_object(&path) {
        Ok(root) => root.unwrap_or_default(),
        Err(error) => {
            warnings.push(format!("{error}; custom providers are ignored"));
            return (Vec::new(), warnings);
        }
    };
    let providers = read(&root, &path.display().to_string(), &mut warnings);
    (providers, warnings)
}

/// Reads what the file would hold. Warnings name the source.
pub(super) fn read(
    root: &Map<String, Value>,
    source: &str,
    warnings: &mut Vec<String>,
) -> Vec<ProviderEntry> {
    let mut providers = Vec::new();
    match root.get("providers") {
        None | Some(Value::Null) => {}
        Some(Value::Object(entries)) => {
            for (id, entry) in entries {
                let mut problems = Vec::new();
                let provider = read_provider(id, entry, &mut problems);
                problems.extend(provider.iter().flat_map(ProviderEntry::unknown_apis));
                providers.extend(provider);
                warnings.extend(problems.into_iter().map(|problem| format!("{source}: {problem}")));
            }
        }
        Some(_) => warnings.push(format!("{source}: providers: must be an object")),
    }
    providers
}

impl ProviderEntry {
    /// Where the entry names an API that this version does not speak. Its models are listed all the same, as
    /// in Pi; asking one fails.
    fn unknown_apis(&self) -> Vec<String> {
        let own = self.api.iter().map(|api| (format!("providers.{}", self.id), api));
        let models = self.models.iter().chain(&self.overrides);
        let of_models = models.filter_map(|model| Some((model.path.clone(), model.api.as_ref()?)));
        own.chain(of_models)
            .filter(|(_, api)| !APIS.contains(&api.as_str()))
            .map(|(path, api)| {
                format!("{path}.api: {api:?} is not supported; the known ones are {}", APIS.join(", "))
            })
            .collect()
    }
}

fn read_provider(id: &str, entry: &Value, problems: &mut Vec<String>) -> Option<ProviderEntry> {
    let path = format!("providers.{id}");
    let fields = match Fields::new(entry, &path) {
        Ok(fields) => fields,
        Err(problem) => {
            problems.push(format!("{problem}; the provider is left out"));
            return None;
        }
    };
    let read = || -> Result<ProviderEntry, String> {
        Ok(ProviderEntry {
            id: id.to_owned(),
            base_url: fields.text("baseUrl")?,
            api: fields.text("api")?,
            api_key: fields.text("apiKey")?.map(SecretString::from),
            headers: fields.headers()?,
            auth_header: fields.flag("authHeader")?.unwrap_or(false),
            compat: fields.object("compat")?.cloned(),
            models: Vec::new(),
            overrides: Vec::new(),
        })
    };
    let mut provider = match read() {
        Ok(provider) => provider,
        Err(problem) => {
            problems.push(format!("{problem}; the provider is left out"));
            return None;
        }
    };
    let mut add = |into: &mut Vec<ModelEntry>, model: Result<ModelEntry, String>| match model {
        Ok(model) => into.push(model),
        Err(problem) => problems.push(format!("{problem}; the model is left out")),
    };
    match fields.get("models") {
        None => {}
        Some(Value::Array(models)) => {
            for (nth, model) in models.iter().enumerate() {
                add(&mut provider.models, read_model(model, &format!("{path}.models[{nth}]")));
            }
        }
        Some(_) => add(&mut provider.models, Err(format!("{path}.models: must be a list"))),
    }
    match fields.object("modelOverrides") {
        Ok(overrides) => {
            for (id, model) in overrides.into_iter().flatten() {
                add(
                    &mut provider.overrides,
                    read_override(id, model, &format!("{path}.modelOverrides[{id:?}]")),
                );
            }
        }
        Err(problem) => add(&mut provider.overrides, Err(problem)),
    }
    Some(provider)
}

fn read_model(value: &Value, path: &str) -> Result<ModelEntry, String> {
    let fields = Fields::new(value, path)?;
    let id = fields.text("id")?.ok_or_else(|| format!("{path}.id: is missing"))?;
    let entry = read_fields(id, &fields)?;
    if fields.get("cost").is_some() {
        let CostEntry { input, output, cache_read, cache_write, .. } = entry.cost;
        for (name, value) in
            [("input", input), ("output", output), ("cacheRead", cache_read), ("cacheWrite", cache_write)]
        {
            value.ok_or_else(|| format!("{path}.cost.{name}: is missing"))?;
        }
    }
    Ok(entry)
}

fn read_override(id: &str, value: &Value, path: &str) -> Result<ModelEntry, String> {
    read_fields(id.to_owned(), &Fields::new(value, path)?)
}

fn read_fields(id: String, fields: &Fields<'_>) -> Result<ModelEntry, String> {
    let path = fields.path;
    if let Some(map) = fields.object("thinkingLevelMap")? {
        for (level, value) in map {
            if ThinkingLevel::parse(level).is_some() && !(value.is_string() || value.is_null()) {
                return Err(format!("{path}.thinkingLevelMap.{level}: must be a string or null"));
            }
        }
    }
    let mut opaque = Extra::new();
    for name in OPAQUE_OBJECTS {
        if let Some(object) = fields.object(name)? {
            opaque.insert(name.to_owned(), Value::Object(object.clone()));
        }
    }
    Ok(ModelEntry {
        path: path.to_owned(),
        id,
        name: fields.text("name")?,
        api: fields.text("api")?,
        base_url: fields.text("baseUrl")?,
        reasoning: fields.flag("reasoning")?,
        thinking_level_map: fields.object("thinkingLevelMap")?.cloned(),
        input: read_input(fields)?,
        cost: read_cost(fields)?,
        context_window: fields.tokens("contextWindow")?,
        max_tokens: fields.tokens("maxTokens")?,
        compat: fields.object("compat")?.cloned(),
        headers: fields.headers()?,
        opaque,
    })
}

fn read_input(fields: &Fields<'_>) -> Result<Option<Vec<String>>, String> {
    let Some(value) = fields.get("input") else { return Ok(None) };
    let wrong = || format!("{}.input: must be a list of \"text\" and \"image\"", fields.path);
    let kinds = value.as_array().ok_or_else(wrong)?;
    let known = kinds.iter().map(|kind| kind.as_str().filter(|kind| ["text", "image"].contains(kind)));
    known.map(|kind| kind.map(str::to_owned).ok_or_else(wrong)).collect::<Result<Vec<_>, _>>().map(Some)
}

fn read_cost(fields: &Fields<'_>) -> Result<CostEntry, String> {
    let path = format!("{}.cost", fields.path);
    let Some(value) = fields.get("cost") else { return Ok(CostEntry::default()) };
    let cost = Fields::new(value, &path)?;
    let tiers = match cost.get("tiers") {
        None => None,
        Some(Value::Array(tiers)) => {
            let read = tiers.iter().enumerate().map(|(nth, tier)| {
                let path = format!("{path}.tiers[{nth}]");
                let tier = Fields::new(tier, &path)?;
                Ok(CostTier {
                    input_tokens_above: tier.required("inputTokensAbove")? as u64,
                    input: tier.required("input")?,
                    output: tier.required("output")?,
                    cache_read: tier.required("cacheRead")?,
                    cache_write: tier.required("cacheWrite")?,
                })
            });
            Some(read.collect::<Result<Vec<_>, String>>()?)
        }
        Some(_) => return Err(format!("{path}.tiers: must be a list")),
    };
    Ok(CostEntry {
        input: cost.number("input")?,
        output: cost.number("output")?,
        cache_read: cost.number("cacheRead")?,
        cache_write: cost.number("cacheWrite")?,
        tiers,
    })
}

impl ModelEntry {
    /// The custom model that the entry describes.
    pub(super) fn build(&self, surroundings: &Surroundings<'_>) -> Result<Model, String> {
        let Surroundings { provider, sibling } = surroundings;
        let missing = |field: &str| {
            format!("{}: no {field}, neither here nor at the provider; the model is left out", self.path)
        };
        let base_url = self
            .base_url
            .clone()
            .or_else(|| provider.base_url.clone())
            .or_else(|| sibling.map(|model| model.base_url.clone()))
            .ok_or_else(|| missing("baseUrl"))?;
        let api = self
            .api
            .clone()
            .or_else(|| provider.api.clone())
            .or_else(|| sibling.map(|model| model.api.clone()))
            .ok_or_else(|| missing("api"))?;
        let mut model = Model {
            id: self.id.clone(),
            name: self.id.clone(),
            api,
            provider: provider.id.clone(),
            base_url,
            input: vec!["text".to_owned()],
            context_window: DEFAULT_CONTEXT_WINDOW,
            max_tokens: DEFAULT_MAX_TOKENS,
            compat: provider.compat.clone(),
            ..Model::default()
        };
        self.apply(&mut model);
        Ok(model)
    }

    /// Lays what the entry says over a model: objects field by field, the rest replaced.
    pub(super) fn apply(&self, model: &mut Model) {
        fn set<T: Clone>(field: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                field.clone_from(value);
            }
        }
        set(&mut model.name, &self.name);
        set(&mut model.api, &self.api);
        set(&mut model.base_url, &self.base_url);
        set(&mut model.reasoning, &self.reasoning);
        set(&mut model.input, &self.input);
        set(&mut model.context_window, &self.context_window);
        set(&mut model.max_tokens, &self.max_tokens);
        lay_over(&mut model.thinking_level_map, &self.thinking_level_map);
        lay_over(&mut model.compat, &self.compat);
        let ModelCost { input, output, cache_read, cache_write, tiers } = &mut model.cost;
        set(input, &self.cost.input);
        set(output, &self.cost.output);
        set(cache_read, &self.cost.cache_read);
        set(cache_write, &self.cost.cache_write);
        if self.cost.tiers.is_some() {
            tiers.clone_from(&self.cost.tiers);
        }
        for (key, value) in &self.opaque {
            match (model.extra.get_mut(key).and_then(Value::as_object_mut), value) {
                (Some(base), Value::Object(over)) => {
                    base.extend(over.iter().map(|(key, value)| (key.clone(), value.clone())));
                }
                _ => {
                    model.extra.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// Lays one object over another, field by field.
pub(super) fn lay_over(base: &mut Option<Map<String, Value>>, over: &Option<Map<String, Value>>) {
    if let Some(over) = over {
        let base = base.get_or_insert_default();
        base.extend(over.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

/// The fields of an object, read with errors that name their path. Values are never shown: they may be
/// keys.
struct Fields<'a> {
    object: &'a Map<String, Value>,
    path: &'a str,
}

impl<'a> Fields<'a> {
    fn new(value: &'a Value, path: &'a str) -> Result<Self, String> {
        let object = value.as_object().ok_or_else(|| format!("{path}: must be an object"))?;
        Ok(Self { object, path })
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        self.object.get(name).filter(|value| !value.is_null())
    }

    fn read<T>(
        &self,
        name: &str,
        expected: &str,
        read: impl Fn(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, String> {
        self.get(name)
            .map(|value| read(value).ok_or_else(|| format!("{}.{name}: must be {expected}", self.path)))
            .transpose()
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        let read = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        self.read(name, "a string that is not empty", read)
    }

    fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        self.read(name, "true or false", Value::as_bool)
    }

    fn number(&self, name: &str) -> Result<Option<f64>, String> {
        self.read(name, "a number", Value::as_f64)
    }

    fn required(&self, name: &str) -> Result<f64, String> {
        self.number(name)?.ok_or_else(|| format!("{}.{name}: is missing", self.path))
    }

    fn tokens(&self, name: &str) -> Result<Option<u64>, String> {
        self.read(name, "a number of tokens above 0", |value| {
            // A cast of a float saturates.
            value.as_f64().filter(|tokens| *tokens >= 1.0).map(|tokens| tokens as u64)
        })
    }

    fn object(&self, name: &str) -> Result<Option<&'a Map<String, Value>>, String> {
        self.read(name, "an object", Value::as_object)
    }

    fn headers(&self) -> Result<Headers, String> {
        let mut headers = Headers::new();
        for (name, value) in self.object("headers")?.into_iter().flatten() {
            let value =
                value.as_str().ok_or_else(|| format!("{}.headers.{name}: must be a string", self.path))?;
            headers.push((name.clone(), SecretString::from(value)));
        }
        Ok(headers)
    }
}
