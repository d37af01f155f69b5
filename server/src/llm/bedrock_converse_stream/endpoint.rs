//! Where a model is: the region, and the address in it.

use reqwest::Url;
use sampi_protocol::data::Model;

use super::credentials::Environment;
use crate::llm::percent::percent_encoded;

/// The region when nothing names one.
const DEFAULT_REGION: &str = "us-east-1";

/// How the hosts of Bedrock begin and end; the region stands between.
const HOST: (&str, &str) = ("bedrock-runtime.", ".amazonaws.com");

/// The region to ask: that of the model's ARN, of the environment, of the model's address.
pub(super) fn region(model: &Model, environment: &Environment) -> String {
    let arn = model.id.strip_prefix("arn:").and_then(|rest| rest.split(':').nth(2));
    let named = arn.filter(|region| !region.is_empty()).map(str::to_owned);
    let here = || environment.region().map(str::to_owned);
    named.or_else(here).or_else(|| url_region(&model.base_url)).unwrap_or_else(|| DEFAULT_REGION.to_owned())
}

/// The region in an address of AWS itself.
fn url_region(base: &str) -> Option<String> {
    let url = Url::parse(base).ok()?;
    let region = url.host_str()?.strip_prefix(HOST.0)?.strip_suffix(HOST.1)?;
    Some(region.to_owned()).filter(|region| !region.is_empty())
}

/// The address of the model. Addresses that are not of AWS itself, such as gateways, stay as they are.
pub(super) fn url(model: &Model, region: &str) -> String {
    let base = model.base_url.trim_end_matches('/');
    let base = if base.is_empty() || url_region(base).is_some() {
        format!("https://{}{region}{}", HOST.0, HOST.1)
    } else {
        base.to_owned()
    };
    format!("{base}/model/{}/converse-stream", percent_encoded(&model.id, b""))
}
