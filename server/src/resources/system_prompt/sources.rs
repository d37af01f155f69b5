//! What the user says instead of our prompt, or after it.

use std::fs;
use std::io;
use std::path::Path;

use crate::resources::{Environment, Paths};

/// The user's own prompt texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptSources {
    /// Replaces our prompt.
    pub custom: Option<String>,
    /// Appended, in order.
    pub appended: Vec<String>,
}

/// What the command line says about the prompt: each a text, or the path of a file that exists.
#[derive(Debug, Clone, Copy, Default)]
pub struct PromptWish<'a> {
    /// `--system-prompt`
    pub system_prompt: Option<&'a str>,
    /// `--append-system-prompt`, each time it was given.
    pub appended: &'a [String],
    /// True when the project's `SYSTEM.md` and `APPEND_SYSTEM.md` may be used.
    pub project_trusted: bool,
}

/// A prompt file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the prompt file {path}: {source}")]
pub struct PromptError {
    /// The file.
    pub path: String,
    /// Why.
    pub source: io::Error,
}

impl PromptSources {
    /// Takes the command line's texts; where it has none, the project's file, then the user's.
    pub fn load(environment: &Environment, paths: &Paths, wish: PromptWish<'_>) -> Result<Self, PromptError> {
        let file = |name: &str| -> Result<Option<String>, PromptError> {
            if wish.project_trusted
                && let Some(text) = read(&paths.project_dir().join(name))?
            {
                return Ok(Some(text));
            }
            read(&paths.agent_dir().join(name))
        };
        let custom = match wish.system_prompt.filter(|text| !text.is_empty()) {
            Some(text) => Some(text_or_file(environment, paths.cwd(), text)?),
            None => file("SYSTEM.md")?,
        };
        let mut appended = Vec::new();
        if wish.appended.is_empty() {
            appended.extend(file("APPEND_SYSTEM.md")?);
        }
        for text in wish.appended {
            appended.push(text_or_file(environment, paths.cwd(), text)?);
        }
        appended.retain(|text| !text.trim().is_empty());
        Ok(Self { custom: custom.filter(|text| !text.trim().is_empty()), appended })
    }
}

fn text_or_file(environment: &Environment, cwd: &Path, text: &str) -> Result<String, PromptError> {
    // A prompt of several lines is no path; asking the file system about it could only fail.
    let file = if text.contains('\n') { None } else { read(&environment.resolve_path(cwd, text))? };
    Ok(file.unwrap_or_else(|| text.to_owned()))
}

/// The text of a file. `None` when there is no such file.
fn read(path: &Path) -> Result<Option<String>, PromptError> {
    if !path.is_file() {
        return Ok(None);
    }
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(source) => Err(PromptError { path: path.display().to_string(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_names_a_file_is_that_file_and_the_command_line_goes_before_files() {
        let home = tempfile::tempdir().unwrap();
        let (agent, cwd) = (home.path().join(".pi/agent"), home.path().join("w"));
        fs::create_dir_all(&agent).unwrap();
        fs::create_dir_all(cwd.join(".pi")).unwrap();
        fs::write(agent.join("SYSTEM.md"), "user").unwrap();
        fs::write(agent.join("APPEND_SYSTEM.md"), "user append").unwrap();
        fs::write(cwd.join(".pi/SYSTEM.md"), "project").unwrap();
        fs::write(cwd.join("own.txt"), "own\n").unwrap();
        let environment = Environment::new(home.path(), [("", ""); 0]);
        let paths = Paths::new(&environment, &cwd);
        let load = |wish| PromptSources::load(&environment, &paths, wish).unwrap();

        let wish = PromptWish::default();
        assert_eq!(load(wish).custom.as_deref(), Some("user"));
        assert_eq!(load(wish).appended, ["user append"]);
        assert_eq!(load(PromptWish { project_trusted: true, ..wish }).custom.as_deref(), Some("project"));
        let appended = ["~/w/own.txt".to_owned(), "text".to_owned(), String::new()];
        let sources =
            load(PromptWish { system_prompt: Some("own.txt"), appended: &appended, project_trusted: true });
        assert_eq!(sources.custom.as_deref(), Some("own\n"));
        assert_eq!(sources.appended, ["own\n", "text"]);
        let long = "x".repeat(10_000);
        assert_eq!(load(PromptWish { system_prompt: Some(&long), ..wish }).custom, Some(long.clone()));
        assert_eq!(load(PromptWish { system_prompt: Some(""), ..wish }).custom.as_deref(), Some("user"));
    }

    #[test]
    fn a_file_that_is_no_text_is_an_error_that_names_it() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("bin"), [0xff, 0xfe, 0x00]).unwrap();
        let environment = Environment::new(home.path(), [("", ""); 0]);
        let paths = Paths::new(&environment, home.path());
        let wish = PromptWish { system_prompt: Some("bin"), ..PromptWish::default() };
        let error = PromptSources::load(&environment, &paths, wish).unwrap_err().to_string();
        assert!(error.starts_with("cannot read the prompt file ") && error.contains("bin"), "{error}");
    }
}
