//! Where the configuration lives.

use std::path::{Path, PathBuf};

use crate::branding::{BRANDING, Branding};
use crate::environment::Environment;

/// The directories and files of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    branding: Branding,
    agent_dir: PathBuf,
    cwd: PathBuf,
    home: Option<PathBuf>,
}

impl Paths {
    /// The paths for a working directory, which should be absolute.
    pub fn new(environment: &Environment, cwd: impl Into<PathBuf>) -> Self {
        Self::branded(BRANDING, environment, cwd)
    }

    /// The paths of a program of this name.
    pub fn branded(branding: Branding, environment: &Environment, cwd: impl Into<PathBuf>) -> Self {
        let cwd = cwd.into();
        let agent_dir = match environment.get(&branding.agent_dir_variable()) {
            Some(dir) => environment.resolve_path(&cwd, dir),
            None => environment.home().unwrap_or(&cwd).join(branding.config_dir).join("agent"),
        };
        Self { branding, agent_dir, cwd, home: environment.home().map(Path::to_owned) }
    }

    /// The user's configuration directory, `~/.pi/agent` by default.
    pub fn agent_dir(&self) -> &Path {
        &self.agent_dir
    }

    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The home directory.
    pub fn home(&self) -> Option<&Path> {
        self.home.as_deref()
    }

    /// The project's configuration directory, `.pi` in the working directory.
    pub fn project_dir(&self) -> PathBuf {
        self.cwd.join(self.branding.config_dir)
    }

    /// The user's settings.
    pub fn user_settings(&self) -> PathBuf {
        self.agent_dir.join("settings.json")
    }

    /// The project's settings.
    pub fn project_settings(&self) -> PathBuf {
        self.project_dir().join("settings.json")
    }

    /// Providers and models of the user.
    pub fn models_file(&self) -> PathBuf {
        self.agent_dir.join("models.json")
    }

    /// Saved decisions about which projects to trust.
    pub fn trust_file(&self) -> PathBuf {
        self.agent_dir.join("trust.json")
    }

    /// Saved keys and tokens.
    pub fn auth_file(&self) -> PathBuf {
        self.agent_dir.join("auth.json")
    }

    /// Where sessions are kept: `--session-dir`, then the environment, then the setting, then the
    /// agent directory.
    pub fn sessions(&self, environment: &Environment, wish: SessionDirWish<'_>) -> SessionsDir {
        let variable = self.branding.session_dir_variable();
        let custom = wish.option.or_else(|| environment.get(&variable)).or(wish.setting);
        match custom.filter(|dir| !dir.is_empty()) {
            Some(dir) => SessionsDir::Flat(environment.resolve_path(&self.cwd, dir)),
            None => SessionsDir::ByProject(self.agent_dir.join("sessions")),
        }
    }
}

/// What the user says about where sessions are kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionDirWish<'a> {
    /// `--session-dir`
    pub option: Option<&'a str>,
    /// The setting `sessionDir`.
    pub setting: Option<&'a str>,
}

/// Where sessions are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionsDir {
    /// A directory with one folder for each working directory: the default.
    ByProject(PathBuf),
    /// A directory that the user chose. Session files lie directly in it.
    Flat(PathBuf),
}

impl SessionsDir {
    /// The directory itself.
    pub fn path(&self) -> &Path {
        match self {
            Self::ByProject(path) | Self::Flat(path) => path,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        Environment::new("/home/u", variables.iter().copied())
    }

    #[test]
    fn the_agent_directory_is_in_the_home_directory_unless_the_environment_names_one() {
        assert_eq!(Paths::new(&environment(&[]), "/w").agent_dir(), Path::new("/home/u/.pi/agent"));
        for (value, expected) in
            [("/x", "/x"), ("~/y", "/home/u/y"), ("rel", "/w/rel"), ("", "/home/u/.pi/agent")]
        {
            let environment = environment(&[("PI_CODING_AGENT_DIR", value)]);
            assert_eq!(Paths::new(&environment, "/w").agent_dir(), Path::new(expected), "{value}");
        }
    }

    #[test]
    fn a_fork_has_folders_and_variables_of_its_own_and_does_not_look_at_those_of_others() {
        let fork = Branding { name: "my-agent", config_dir: ".mine", shared_name: "" };
        let of = |variables: &[(&str, &str)]| {
            let environment = environment(variables);
            let paths = Paths::branded(fork, &environment, "/w");
            let sessions = paths.sessions(&environment, SessionDirWish::default()).path().to_owned();
            (paths.agent_dir().to_owned(), paths.project_settings(), sessions)
        };
        let expected = |agent: &str, sessions: &str| {
            (PathBuf::from(agent), PathBuf::from("/w/.mine/settings.json"), PathBuf::from(sessions))
        };
        let default = expected("/home/u/.mine/agent", "/home/u/.mine/agent/sessions");
        assert_eq!(of(&[]), default);
        assert_eq!(of(&[("PI_CODING_AGENT_DIR", "/x"), ("PI_CODING_AGENT_SESSION_DIR", "/y")]), default);
        let own = [("MY_AGENT_CODING_AGENT_DIR", "/x"), ("MY_AGENT_CODING_AGENT_SESSION_DIR", "/y")];
        assert_eq!(of(&own), expected("/x", "/y"));
    }

    #[test]
    fn a_tilde_is_the_home_directory_only_as_a_whole_first_component() {
        let environment = environment(&[]);
        for (text, expected) in
            [("~", "/home/u"), ("~/a/b", "/home/u/a/b"), ("~other/a", "~other/a"), ("a/~", "a/~"), ("", "")]
        {
            assert_eq!(environment.expand_tilde(text), Path::new(expected), "{text}");
        }
    }

    #[test]
    fn the_session_directory_comes_from_the_option_then_the_environment_then_the_setting() {
        let set = environment(&[("PI_CODING_AGENT_SESSION_DIR", "~/env")]);
        let unset = environment(&[]);
        let paths = Paths::new(&unset, "/w");
        let both = SessionDirWish { option: Some("opt"), setting: Some("set") };
        let setting = SessionDirWish { option: None, setting: Some("set") };
        assert_eq!(paths.sessions(&set, both), SessionsDir::Flat("/w/opt".into()));
        assert_eq!(paths.sessions(&set, setting), SessionsDir::Flat("/home/u/env".into()));
        assert_eq!(paths.sessions(&unset, setting), SessionsDir::Flat("/w/set".into()));
        let default = paths.sessions(&unset, SessionDirWish::default());
        assert_eq!(default, SessionsDir::ByProject("/home/u/.pi/agent/sessions".into()));
    }

    #[test]
    fn debug_shows_no_value_of_a_variable() {
        let text = format!("{:?}", environment(&[("OPENAI_API_KEY", "sk-secret")]));
        assert!(text.contains("OPENAI_API_KEY") && !text.contains("sk-secret"), "{text}");
    }

    #[test]
    fn a_flag_is_on_for_one_true_and_yes_only() {
        let environment = environment(&[("A", "1"), ("B", "True"), ("C", "0"), ("D", "")]);
        assert!(environment.flag("A") && environment.flag("B"));
        assert!(!environment.flag("C") && !environment.flag("D") && !environment.flag("E"));
    }
}
