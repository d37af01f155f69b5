//! Whether the configuration that a project brings along may be used.

use std::path::Path;

use super::settings::{DefaultProjectTrust, TrustOverride};
use super::{Paths, discovery, jsonc};

/// What in a project's `.pi` counts only when the project is trusted.
const PROTECTED: [&str; 8] = [
    "settings.json",
    "mcp.json",
    "extensions",
    "skills",
    "prompts",
    "themes",
    "SYSTEM.md",
    "APPEND_SYSTEM.md",
];

/// Whether a project is trusted, and by whose word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustDecision {
    /// True when the project's configuration may be used.
    pub trusted: bool,
    /// What is left out although nobody decided so.
    pub left_out: Vec<String>,
    /// What is wrong with the file of saved decisions.
    pub warning: Option<String>,
}

impl TrustDecision {
    fn of(trusted: bool) -> Self {
        Self { trusted, left_out: Vec::new(), warning: None }
    }
}

/// Decides: the command line, then what was saved for the folder or the closest one above it, then the
/// user's settings. A run that cannot ask leaves out what it would have to ask about.
pub fn decide_trust(paths: &Paths, word: TrustOverride, default: DefaultProjectTrust) -> TrustDecision {
    match word {
        TrustOverride::Approve => return TrustDecision::of(true),
        TrustOverride::Deny => return TrustDecision::of(false),
        TrustOverride::Unset => {}
    }
    let protected = protected_resources(paths);
    if protected.is_empty() {
        return TrustDecision::of(default == DefaultProjectTrust::Always);
    }
    match saved_decision(paths) {
        Ok(Some(trusted)) => TrustDecision::of(trusted),
        Ok(None) => match default {
            DefaultProjectTrust::Always => TrustDecision::of(true),
            DefaultProjectTrust::Never => TrustDecision::of(false),
            DefaultProjectTrust::Ask => TrustDecision { left_out: protected, ..TrustDecision::of(false) },
        },
        // It may say no to this project.
        Err(error) => TrustDecision {
            left_out: protected,
            warning: Some(format!("{error}; no project is trusted")),
            ..TrustDecision::of(false)
        },
    }
}

/// What the project has that needs trust.
fn protected_resources(paths: &Paths) -> Vec<String> {
    let mut found = Vec::new();
    let dir = paths.project_dir();
    if dir != paths.agent_dir() && dir.is_dir() {
        let files = PROTECTED.iter().map(|name| dir.join(name));
        found.extend(files.filter(|path| path.exists()).map(|path| path.display().to_string()));
    }
    let agents = discovery::project_agents_dirs(paths);
    found.extend(agents.iter().map(|dir| dir.join("skills").display().to_string()));
    found
}

/// The decision saved for the working directory or the closest folder above it.
fn saved_decision(paths: &Paths) -> Result<Option<bool>, String> {
    let file = paths.trust_file();
    let Some(decisions) = jsonc::read_object(&file).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    if let Some((path, _)) = decisions.iter().find(|(_, value)| !value.is_boolean() && !value.is_null()) {
        return Err(format!("{}: the value for {path:?} must be true, false or null", file.display()));
    }
    let cwd = paths.cwd().canonicalize().unwrap_or_else(|_| paths.cwd().to_owned());
    // Paths are compared part by part, so that a slash at the end changes nothing.
    let saved = |dir: &Path| {
        decisions.iter().find(|(path, _)| Path::new(path) == dir).and_then(|(_, value)| value.as_bool())
    };
    Ok(cwd.ancestors().find_map(saved))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::resources::Environment;

    struct Project {
        dir: tempfile::TempDir,
    }

    impl Project {
        fn new(files: &[&str]) -> Self {
            let project = Self { dir: tempfile::tempdir().unwrap() };
            for path in ["g/w", ".pi/agent"] {
                fs::create_dir_all(project.path(path)).unwrap();
            }
            for file in files {
                fs::create_dir_all(project.path(file).parent().unwrap()).unwrap();
                fs::write(project.path(file), "").unwrap();
            }
            project
        }

        fn path(&self, path: &str) -> PathBuf {
            self.dir.path().canonicalize().unwrap().join(path)
        }

        fn decide(&self, saved: &str, word: TrustOverride, default: DefaultProjectTrust) -> TrustDecision {
            let saved = saved.replace("ROOT", &self.path("").to_string_lossy());
            fs::write(self.path(".pi/agent/trust.json"), saved).unwrap();
            let environment = Environment::new(self.path(""), [("", ""); 0]);
            decide_trust(&Paths::new(&environment, self.path("g/w")), word, default)
        }
    }

    #[test]
    fn the_command_line_decides_then_the_closest_saved_decision_then_the_settings() {
        use DefaultProjectTrust::{Always, Ask, Never};
        use TrustOverride::{Approve, Deny, Unset};
        let project = Project::new(&["g/w/.pi/settings.json"]);
        for (saved, word, default, trusted) in [
            (r#"{"ROOTg/w":true}"#, Unset, Ask, true),
            (r#"{"ROOTg/w/":true}"#, Unset, Ask, true),
            (r#"{"ROOTg":true}"#, Unset, Never, true),
            (r#"{"/":true}"#, Unset, Ask, true),
            (r#"{"ROOTg":true,"ROOTg/w":false}"#, Unset, Always, false),
            (r#"{"ROOTg":true,"ROOTg/w":null}"#, Unset, Ask, true),
            (r#"{"ROOTg/ww":true}"#, Unset, Ask, false),
            (r#"{"ROOTg/w":false}"#, Approve, Never, true),
            (r#"{"ROOTg/w":true}"#, Deny, Always, false),
            ("{}", Unset, Always, true),
            ("{}", Unset, Never, false),
            ("", Unset, Ask, false),
        ] {
            let decision = project.decide(saved, word, default);
            assert_eq!(decision.trusted, trusted, "{saved} {word:?} {default:?}");
            let undecided = word == Unset && default == Ask && !trusted;
            assert_eq!(decision.left_out.is_empty(), !undecided, "{saved} {word:?} {default:?}");
            assert_eq!(decision.warning, None);
        }
    }

    #[test]
    fn a_saved_decision_is_found_through_a_link_to_the_folder() {
        let project = Project::new(&["g/w/.pi/settings.json"]);
        std::os::unix::fs::symlink(project.path("g"), project.path("link")).unwrap();
        let saved = format!(r#"{{"{}":true}}"#, project.path("g/w").display());
        fs::write(project.path(".pi/agent/trust.json"), saved).unwrap();
        let environment = Environment::new(project.path(""), [("", ""); 0]);
        let paths = Paths::new(&environment, project.path("link/w"));
        assert!(decide_trust(&paths, TrustOverride::Unset, DefaultProjectTrust::Ask).trusted);
    }

    #[test]
    fn a_file_of_decisions_that_cannot_be_read_trusts_nothing_and_says_so() {
        let project = Project::new(&["g/w/.pi/SYSTEM.md"]);
        for (saved, said) in [
            ("nope", "trust.json:1:2: not valid JSON"),
            ("[]", "trust.json: the top level must be an object"),
            (r#"{"/":true,"/x":"yes"}"#, r#"trust.json: the value for "/x" must be true, false or null"#),
        ] {
            let decision = project.decide(saved, TrustOverride::Unset, DefaultProjectTrust::Always);
            assert!(!decision.trusted);
            let warning = decision.warning.unwrap();
            assert!(warning.contains(said), "{warning}");
        }
    }

    #[test]
    fn what_needs_trust_is_named_and_without_it_no_decision_is_looked_up() {
        let files = [
            "g/w/.pi/skills/x",
            "g/w/.pi/AGENTS.md",
            "g/w/.pi/SYSTEM.md",
            "g/.agents/skills/x",
            ".agents/skills/x",
        ];
        let project = Project::new(&files);
        let decision = project.decide("{}", TrustOverride::Unset, DefaultProjectTrust::Ask);
        let expected = ["g/w/.pi/skills", "g/w/.pi/SYSTEM.md", "g/.agents/skills"];
        assert_eq!(decision.left_out, expected.map(|path| project.path(path).display().to_string()));
        let bare = Project::new(&["g/w/.pi/other"]);
        let decision = bare.decide("broken", TrustOverride::Unset, DefaultProjectTrust::Ask);
        assert_eq!(decision, TrustDecision::of(false));
    }
}
