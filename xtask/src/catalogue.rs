//! Writes the table of the models that come with the daemon from a file of facts about them.
//!
//! The facts are an object: for each provider a list of models in the form in which hosts see them. The table
//! is one file for each provider, read by `server/src/resources/models/catalogue`, whose documentation says
//! what stands in it, and a list of these files in Rust.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde_json::{Map, Value};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../server/src/resources/models/catalogue");

/// Fields of a model that have a place of their own, or that no request and no host needs: the provider is
/// the file, and what a gateway says of itself is not the model's.
const NOT_EXTRA: [&str; 16] = [
    "id",
    "name",
    "api",
    "provider",
    "baseUrl",
    "reasoning",
    "input",
    "cost",
    "contextWindow",
    "maxTokens",
    "compat",
    "thinkingLevelMap",
    "lab",
    "enabled",
    "providers",
    "free",
];

/// `cargo xtask catalogue PATH`
pub(crate) fn run(mut args: lexopt::Parser) -> anyhow::Result<()> {
    let mut facts = None;
    while let Some(arg) = args.next()? {
        match arg {
            lexopt::Arg::Value(path) if facts.is_none() => facts = Some(PathBuf::from(path)),
            other => return Err(other.unexpected().into()),
        }
    }
    let facts = facts.context("the path of the file of facts is missing")?;
    let text = fs::read_to_string(&facts).with_context(|| format!("could not read {}", facts.display()))?;
    let facts: Map<String, Value> = serde_json::from_str(&text).context("the facts are no object")?;
    let mut tables = Vec::new();
    for (provider, facts) in &facts {
        ensure!(is_file_name(provider), "the provider {provider:?} cannot be a file's name");
        let facts = facts.as_array().with_context(|| format!("{provider}: no list"))?;
        tables.push((provider, facts.len(), Table::write(facts).with_context(|| provider.clone())?));
    }
    // Nothing is touched before all facts are understood.
    write_tables(&tables)?;
    let (models, bytes) = tables.iter().fold((0, 0), |sum, (_, n, table)| (sum.0 + n, sum.1 + table.len()));
    println!("{models} models of {} providers in {bytes} bytes", tables.len());
    Ok(())
}

fn write_tables(tables: &[(&String, usize, String)]) -> anyhow::Result<()> {
    let folder = Path::new(FOLDER).join("tables");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("could not remove the old tables")?;
    }
    fs::create_dir_all(&folder)?;
    let mut list = String::from(
        "//! The tables, in the order in which hosts see the providers. Written by `cargo xtask catalogue`.\n\n\
         /// Each provider's id and its table.\n\
         pub(in crate::resources::models) const TABLES: &[(&str, &str)] = &[\n",
    );
    for (provider, _, table) in tables {
        fs::write(folder.join(format!("{provider}.tsv")), table)?;
        writeln!(list, "    ({provider:?}, include_str!(\"tables/{provider}.tsv\")),")?;
    }
    list.push_str("];\n");
    fs::write(folder.with_extension("rs"), list)?;
    Ok(())
}

fn is_file_name(provider: &str) -> bool {
    !provider.is_empty()
        && provider.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The table of one provider while it is written: what several models share stands in it once.
#[derive(Default)]
struct Table {
    endpoints: Vec<String>,
    compat: Vec<String>,
    thinking: Vec<String>,
    extra: Vec<String>,
    models: String,
}

impl Table {
    fn write(facts: &[Value]) -> anyhow::Result<String> {
        let mut table = Self::default();
        for model in facts {
            let id = model.get("id").and_then(Value::as_str).context("a model without an id")?;
            table.add(model).with_context(|| id.to_owned())?;
        }
        let mut text = String::new();
        for (kind, lines) in
            [("e", &table.endpoints), ("c", &table.compat), ("t", &table.thinking), ("x", &table.extra)]
        {
            for line in lines {
                writeln!(text, "{kind}\t{line}")?;
            }
        }
        text.push_str(&table.models);
        Ok(text)
    }

    fn add(&mut self, model: &Value) -> anyhow::Result<()> {
        let model = model.as_object().context("no object")?;
        let endpoint = format!("{}\t{}", text(model, "api")?, text(model, "baseUrl")?);
        let endpoint = place(&mut self.endpoints, endpoint);
        let compat = place_object(&mut self.compat, model.get("compat"))?;
        let thinking = place_object(&mut self.thinking, model.get("thinkingLevelMap"))?;
        let extra = model.iter().filter(|(name, _)| !NOT_EXTRA.contains(&name.as_str()));
        let extra: Map<String, Value> = extra.map(|(name, value)| (name.clone(), value.clone())).collect();
        let extra = place_object(&mut self.extra, Some(&Value::Object(extra)))?;
        let mut input = String::new();
        for kind in model.get("input").and_then(Value::as_array).context("input: no list")? {
            input.push(match kind.as_str() {
                Some("text") => 't',
                Some("image") => 'i',
                _ => bail!("input: {kind} is not known"),
            });
        }
        let reasoning = model.get("reasoning").and_then(Value::as_bool).context("reasoning: no flag")?;
        writeln!(
            self.models,
            "m\t{}\t{}\t{endpoint}\t{compat}\t{thinking}\t{extra}\t{}\t{input}\t{}\t{}\t{}",
            text(model, "id")?,
            text(model, "name")?,
            u8::from(reasoning),
            count(model, "contextWindow")?,
            count(model, "maxTokens")?,
            cost(model.get("cost").and_then(Value::as_object).context("cost: no object")?)?,
        )?;
        Ok(())
    }
}

fn text<'a>(model: &'a Map<String, Value>, name: &str) -> anyhow::Result<&'a str> {
    let text = model.get(name).and_then(Value::as_str).with_context(|| format!("{name}: no string"))?;
    ensure!(!text.contains(['\t', '\n', '\r']), "{name}: has a tab or a line break");
    Ok(text)
}

fn count(model: &Map<String, Value>, name: &str) -> anyhow::Result<u64> {
    model.get(name).and_then(Value::as_u64).with_context(|| format!("{name}: no whole number"))
}

/// `input/output/cacheRead/cacheWrite`, then `;above:` and the same for each tier.
fn cost(cost: &Map<String, Value>) -> anyhow::Result<String> {
    let mut text = prices(cost)?;
    for tier in cost.get("tiers").and_then(Value::as_array).into_iter().flatten() {
        let tier = tier.as_object().context("cost.tiers: no object")?;
        write!(text, ";{}:{}", count(tier, "inputTokensAbove")?, prices(tier)?)?;
    }
    Ok(text)
}

fn prices(cost: &Map<String, Value>) -> anyhow::Result<String> {
    let price = |name: &str| -> anyhow::Result<String> {
        let price =
            cost.get(name).and_then(Value::as_f64).with_context(|| format!("cost.{name}: no number"))?;
        Ok(price.to_string())
    };
    Ok([price("input")?, price("output")?, price("cacheRead")?, price("cacheWrite")?].join("/"))
}

/// The place of a line among those that are shared, where it is put if it is not there.
fn place(lines: &mut Vec<String>, line: String) -> usize {
    lines.iter().position(|other| *other == line).unwrap_or_else(|| {
        lines.push(line);
        lines.len() - 1
    })
}

/// The same for an object; nothing for one that is absent or empty.
fn place_object(lines: &mut Vec<String>, object: Option<&Value>) -> anyhow::Result<String> {
    match object {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::Object(object)) if object.is_empty() => Ok(String::new()),
        Some(object @ Value::Object(_)) => Ok(place(lines, object.to_string()).to_string()),
        Some(_) => bail!("an object was expected"),
    }
}
