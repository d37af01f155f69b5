//! What the program is called, where its configuration lives, and how its environment variables begin: the one
//! place that a fork edits to go by another name.
//!
//! It drives the texts that name the program (help, version, errors, hints), the configuration folder of the user
//! and of a project, the environment variables that are this program's own, its user agent and the names of its
//! temporary files. It does not touch what others rely on by name: the wire, the session files, the variables that
//! every fork of Pi calls `PI_...`, and the prompts of the model.

/// The program's name: lower case letters, digits and hyphens.
const NAME: &str = "sampi";

/// The configuration folder, in the home directory and in projects.
const CONFIG_DIR: &str = ".pi";

/// The name of what Pi calls after itself and hosts and users of Pi know: the variables of the directories,
/// exported pages. Empty: the program's name, as in a fork of Pi.
const SHARED_NAME: &str = "pi";

/// The names of this build. `SAMPI_BUILD_NAME`, `SAMPI_BUILD_CONFIG_DIR` and `SAMPI_BUILD_SHARED_NAME` in the
/// environment of the build go before the constants above; with a name of its own it shares none with Pi unless
/// told so.
pub const BRANDING: Branding = Branding {
    name: given(option_env!("SAMPI_BUILD_NAME"), NAME),
    config_dir: given(option_env!("SAMPI_BUILD_CONFIG_DIR"), CONFIG_DIR),
    shared_name: given(
        option_env!("SAMPI_BUILD_SHARED_NAME"),
        if is_given(option_env!("SAMPI_BUILD_NAME")) { "" } else { SHARED_NAME },
    ),
};

const _: () =
    assert!(is_name(BRANDING.name), "the name: lower case letters, digits and hyphens, a letter first");
const _: () = assert!(is_folder(BRANDING.config_dir), "the configuration folder: the name of one folder");
const _: () = assert!(
    BRANDING.shared_name.is_empty() || is_name(BRANDING.shared_name),
    "the shared name: as the name, or empty"
);

/// The names by which users know the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branding {
    /// What the program calls itself.
    pub name: &'static str,
    /// The folder of the configuration, in the home directory and in projects.
    pub config_dir: &'static str,
    /// The name of what Pi calls after itself: the variables of the directories, exported pages. Empty when that is
    /// [`Self::name`].
    pub shared_name: &'static str,
}

impl Branding {
    /// The name as the first word of a sentence.
    pub fn title(&self) -> String {
        let mut letters = self.name.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
    }

    /// A variable of the program's own: the name in capitals, an underscore, and what it is about. A hyphen becomes
    /// an underscore, because no shell can set a variable with a hyphen.
    pub fn variable(&self, subject: &str) -> String {
        variable_of(self.name, subject)
    }

    /// Overrides the agent directory.
    pub fn agent_dir_variable(&self) -> String {
        variable_of(self.shared_name(), "CODING_AGENT_DIR")
    }

    /// Overrides where sessions are kept.
    pub fn session_dir_variable(&self) -> String {
        variable_of(self.shared_name(), "CODING_AGENT_SESSION_DIR")
    }

    /// Names the level of the log.
    pub fn log_variable(&self) -> String {
        self.variable("LOG")
    }

    /// Names the file with the script of the demo model.
    pub fn script_variable(&self) -> String {
        self.variable("DEMO_SCRIPT")
    }

    /// The agent directory as a user writes it.
    pub fn agent_dir(&self) -> String {
        format!("~/{}/agent", self.config_dir)
    }

    /// Who asks, as servers of models see it.
    pub fn user_agent(&self) -> String {
        format!("{}/{}", self.name, env!("CARGO_PKG_VERSION"))
    }

    /// How the names of exported pages begin.
    pub fn page_prefix(&self) -> String {
        format!("{}-session-", self.shared_name())
    }

    /// Whether Pi keeps its configuration in the same place.
    pub fn is_configured_as_pi(&self) -> bool {
        self.config_dir == PI_CONFIG_DIR
    }

    fn shared_name(&self) -> &'static str {
        if self.shared_name.is_empty() { self.name } else { self.shared_name }
    }
}

/// Where Pi has its configuration.
const PI_CONFIG_DIR: &str = ".pi";

fn variable_of(name: &str, subject: &str) -> String {
    format!("{}_{subject}", name.to_ascii_uppercase().replace('-', "_"))
}

/// Turns automatic network activity off. Like the others below it is called so in every fork of Pi: programs,
/// skills and scripts know the name.
pub const OFFLINE_VARIABLE: &str = "PI_OFFLINE";
/// Asks for extended prompt caches when it is `long`.
pub const CACHE_RETENTION_VARIABLE: &str = "PI_CACHE_RETENTION";

/// Variables that tell every child process that an agent, and one that works like Pi, started it.
pub const PROCESS_MARKERS: [(&str, &str); 2] = [("AI_AGENT", "pi"), ("PI_CODING_AGENT", "true")];

/// The variables that describe the session to the commands that the model runs.
pub mod session_variables {
    /// The session's id.
    pub const ID: &str = "PI_SESSION_ID";
    /// The session's file.
    pub const FILE: &str = "PI_SESSION_FILE";
    /// The provider of the model.
    pub const PROVIDER: &str = "PI_PROVIDER";
    /// The model's id.
    pub const MODEL: &str = "PI_MODEL";
    /// How much the model thinks.
    pub const REASONING_LEVEL: &str = "PI_REASONING_LEVEL";
}

const fn is_given(text: Option<&str>) -> bool {
    matches!(text, Some(text) if !text.is_empty())
}

const fn given(text: Option<&'static str>, otherwise: &'static str) -> &'static str {
    match text {
        Some(text) if !text.is_empty() => text,
        _ => otherwise,
    }
}

const fn is_name(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut index = 0;
    while index < bytes.len() {
        match bytes[index] {
            b'a'..=b'z' => {}
            b'0'..=b'9' | b'-' if index > 0 => {}
            _ => return false,
        }
        index += 1;
    }
    index > 0
}

const fn is_folder(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut index = 0;
    let mut is_dots = true;
    while index < bytes.len() {
        match bytes[index] {
            b'/' | b'\\' | 0 => return false,
            b'.' => {}
            _ => is_dots = false,
        }
        index += 1;
    }
    !is_dots
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORK: Branding = Branding { name: "my-agent", config_dir: ".my-agent", shared_name: "" };

    #[test]
    fn a_fork_has_names_of_its_own_for_everything_that_users_see() {
        assert_eq!(FORK.title(), "My-agent");
        assert_eq!(FORK.agent_dir(), "~/.my-agent/agent");
        assert_eq!(FORK.user_agent(), format!("my-agent/{}", env!("CARGO_PKG_VERSION")));
        assert_eq!(FORK.page_prefix(), "my-agent-session-");
        assert!(!FORK.is_configured_as_pi());
        let variables = [
            FORK.agent_dir_variable(),
            FORK.session_dir_variable(),
            FORK.log_variable(),
            FORK.script_variable(),
            FORK.variable("COMMAND_ID"),
        ];
        let expected = ["CODING_AGENT_DIR", "CODING_AGENT_SESSION_DIR", "LOG", "DEMO_SCRIPT", "COMMAND_ID"];
        assert_eq!(variables, expected.map(|subject| format!("MY_AGENT_{subject}")));
    }

    #[test]
    fn a_fork_can_share_with_pi_what_pi_calls_after_itself() {
        let fork = Branding { shared_name: "pi", ..FORK };
        assert_eq!(fork.agent_dir_variable(), "PI_CODING_AGENT_DIR");
        assert_eq!(fork.session_dir_variable(), "PI_CODING_AGENT_SESSION_DIR");
        assert_eq!(fork.page_prefix(), "pi-session-");
        assert_eq!(fork.log_variable(), "MY_AGENT_LOG");
    }

    #[test]
    fn names_that_would_break_paths_or_variables_do_not_build() {
        assert!(is_name("a") && is_name("my-agent2"));
        assert!(!is_name("") && !is_name("2a") && !is_name("My") && !is_name("a b") && !is_name("a/b"));
        assert!(is_folder(".pi") && is_folder("pi"));
        assert!(!is_folder("") && !is_folder(".") && !is_folder("..") && !is_folder("a/b"));
    }

    #[test]
    fn an_empty_variable_of_the_build_counts_as_none() {
        assert_eq!((given(None, "a"), given(Some(""), "a"), given(Some("b"), "a")), ("a", "a", "b"));
        assert!(!is_given(None) && !is_given(Some("")) && is_given(Some("b")));
    }
}
