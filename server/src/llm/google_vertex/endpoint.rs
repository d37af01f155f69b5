//! Where a model is: the host of a location, and the path in it.
//!
//! Hosts and paths are those of
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference> and of
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/learn/locations>.

use sampi_protocol::data::Model;

use crate::llm::FailureKind;
use crate::llm::exchange::Fault;
use crate::llm::google_generative_ai::method;
use crate::llm::percent::percent_encoded;

/// Stands in the address of the models that come with the program.
const LOCATION: &str = "{location}";

/// The version of the API.
const VERSION: &str = "v1";

/// Whose models a request is for, and where they are to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Project {
    project: String,
    location: String,
}

impl Project {
    /// What these variables say.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Fault> {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let missing = |names: &str| {
            let text = format!("Google Cloud needs to know where a model is to run: {names} is not set");
            Fault::of_kind(FailureKind::Auth, text)
        };
        let project = set("GOOGLE_CLOUD_PROJECT")
            .or_else(|| set("GCLOUD_PROJECT"))
            .ok_or_else(|| missing("GOOGLE_CLOUD_PROJECT"))?;
        let location = set("GOOGLE_CLOUD_LOCATION").ok_or_else(|| missing("GOOGLE_CLOUD_LOCATION"))?;
        // It becomes a part of the host that is sent a token.
        if !location.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            let text = "GOOGLE_CLOUD_LOCATION must be the name of a location, such as us-central1 or global";
            return Err(Fault::of_kind(FailureKind::InvalidRequest, text));
        }
        Ok(Self { project, location })
    }

    fn host(&self) -> String {
        match self.location.as_str() {
            "global" => "aiplatform.googleapis.com".to_owned(),
            multi @ ("us" | "eu") => format!("aiplatform.{multi}.rep.googleapis.com"),
            region => format!("{region}-aiplatform.googleapis.com"),
        }
    }
}

/// True when the model's address is not Google's own.
pub(super) fn is_custom(model: &Model) -> bool {
    !model.base_url.is_empty() && !model.base_url.contains(LOCATION)
}

/// The address of the model. An address that is not Google's own, such as a gateway's, says itself whose
/// project is meant.
pub(super) fn url(model: &Model, project: Option<&Project>) -> String {
    let path = path(&model.id);
    if is_custom(model) {
        let base = model.base_url.trim_end_matches('/');
        let version = if has_version(base) { String::new() } else { format!("/{VERSION}") };
        return format!("{base}{version}/{}", method(&path));
    }
    match project {
        Some(project) if !path.starts_with("projects/") => {
            let (name, location) = (percent_encoded(&project.project, b":"), &project.location);
            let host = project.host();
            format!("https://{host}/{VERSION}/projects/{name}/locations/{location}/{}", method(&path))
        }
        Some(project) => format!("https://{}/{VERSION}/{}", project.host(), method(&path)),
        None => format!("https://aiplatform.googleapis.com/{VERSION}/{}", method(&path)),
    }
}

/// Models without a publisher are Google's.
fn path(id: &str) -> String {
    if ["publishers/", "projects/", "models/"].iter().any(|known| id.starts_with(known)) {
        return id.to_owned();
    }
    match id.split_once('/') {
        Some((publisher, model)) => format!("publishers/{publisher}/models/{model}"),
        None => format!("publishers/google/models/{id}"),
    }
}

/// True when a part of the address's path is a version, such as `v1` or `v1beta1`.
fn has_version(base: &str) -> bool {
    let is_version = |part: &str| {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let Some(rest) = part.strip_prefix('v') else { return false };
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, stage) = rest.split_at(end);
        let stage = ["alpha", "beta"].iter().find_map(|name| stage.strip_prefix(name)).unwrap_or(stage);
        !number.is_empty() && digits(stage)
    };
    let (_, behind_scheme) = base.split_once("://").unwrap_or(("", base));
    behind_scheme.split('/').skip(1).any(is_version)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::testing;

    fn model(base_url: &str, id: &str) -> Model {
        testing::model("google-vertex", json!({ "id": id, "baseUrl": base_url }))
    }

    fn project(pairs: &[(&str, &str)]) -> Result<Project, String> {
        let find =
            |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Project::of(find).map_err(|fault| fault.text)
    }

    fn at(location: &str) -> Project {
        project(&[("GCLOUD_PROJECT", "p"), ("GOOGLE_CLOUD_LOCATION", location)]).unwrap()
    }

    const OWN: &str = "https://{location}-aiplatform.googleapis.com";

    #[test]
    fn the_host_follows_the_location_and_keys_have_one_for_all() {
        let end = "publishers/google/models/g:streamGenerateContent?alt=sse";
        assert_eq!(url(&model(OWN, "g"), None), format!("https://aiplatform.googleapis.com/v1/{end}"));
        for (location, host) in [
            ("us-central1", "us-central1-aiplatform.googleapis.com"),
            ("global", "aiplatform.googleapis.com"),
            ("us", "aiplatform.us.rep.googleapis.com"),
            ("eu", "aiplatform.eu.rep.googleapis.com"),
        ] {
            let expected = format!("https://{host}/v1/projects/p/locations/{location}/{end}");
            assert_eq!(url(&model(OWN, "g"), Some(&at(location))), expected);
            assert_eq!(url(&model("", "g"), Some(&at(location))), expected);
        }
    }

    #[test]
    fn an_address_of_ones_own_gets_a_version_unless_it_has_one() {
        for (base, expected) in [
            ("http://h:1", "http://h:1/v1"),
            ("http://h/gw/x/", "http://h/gw/x/v1"),
            ("http://h/v1", "http://h/v1"),
            ("http://h/v1beta1/", "http://h/v1beta1"),
            ("http://h/v2/gw", "http://h/v2/gw"),
            ("http://h/version1", "http://h/version1/v1"),
            ("http://v1/x", "http://v1/x/v1"),
        ] {
            let expected = format!("{expected}/publishers/google/models/g:streamGenerateContent?alt=sse");
            assert_eq!(url(&model(base, "g"), None), expected);
        }
    }

    #[test]
    fn names_of_models_may_say_who_published_them() {
        for (id, path) in [
            ("gemini-2.5-pro@001", "publishers/google/models/gemini-2.5-pro@001"),
            ("a b", "publishers/google/models/a%20b"),
            ("meta/llama", "publishers/meta/models/llama"),
            ("publishers/meta/models/l", "publishers/meta/models/l"),
            ("models/x", "models/x"),
        ] {
            let expected = format!("http://h/v1/{path}:streamGenerateContent?alt=sse");
            assert_eq!(url(&model("http://h", id), None), expected);
        }
        let tuned = url(&model(OWN, "projects/q/locations/l/endpoints/9"), Some(&at("l")));
        let path = "v1/projects/q/locations/l/endpoints/9:streamGenerateContent?alt=sse";
        assert_eq!(tuned, format!("https://l-aiplatform.googleapis.com/{path}"));
    }

    #[test]
    fn a_project_needs_a_location_and_neither_may_change_the_host() {
        let set = |name, value| [("GOOGLE_CLOUD_PROJECT", "p"), (name, value)];
        assert!(project(&[]).unwrap_err().contains("GOOGLE_CLOUD_PROJECT is not set"));
        let missing = project(&set("GOOGLE_CLOUD_LOCATION", "")).unwrap_err();
        assert!(missing.contains("GOOGLE_CLOUD_LOCATION is not set"), "{missing}");
        let wrong = project(&set("GOOGLE_CLOUD_LOCATION", "evil.example/")).unwrap_err();
        assert!(wrong.starts_with("GOOGLE_CLOUD_LOCATION must be"), "{wrong}");
        let odd = Project { project: "d.com:p/../x?".into(), location: "l".into() };
        let url = url(&model(OWN, "g"), Some(&odd));
        assert!(url.contains("/projects/d.com:p%2F..%2Fx%3F/locations/l/"), "{url}");
    }
}
