//! The table of options: names, values, help.

/// What stands behind an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    /// A value, named like this in the help.
    Value(&'static str),
    /// A value, unless an option or nothing follows.
    Maybe(&'static str),
}

/// True for options that are accepted and change nothing yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Now,
    Later,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opt {
    Mode,
    Print,
    Provider,
    Model,
    Models,
    ListModels,
    ApiKey,
    Thinking,
    Continue,
    Resume,
    Session,
    SessionId,
    Fork,
    SessionDir,
    NoSession,
    Name,
    Tools,
    ExcludeTools,
    NoBuiltinTools,
    NoTools,
    SystemPrompt,
    AppendSystemPrompt,
    Extension,
    NoExtensions,
    NoMcp,
    Skill,
    NoSkills,
    PromptTemplate,
    NoPromptTemplates,
    Theme,
    UseTheme,
    NoThemes,
    NoContextFiles,
    Export,
    TuiMode,
    Approve,
    NoApprove,
    Offline,
    Verbose,
    Help,
    Version,
}

pub(super) struct Spec {
    pub(super) option: Opt,
    /// With the dashes.
    pub(super) long: &'static str,
    /// With the dash, or empty.
    pub(super) short: &'static str,
    pub(super) takes: Takes,
    pub(super) effect: Effect,
    pub(super) help: &'static str,
}

impl Spec {
    pub(super) fn find(name: &str) -> Option<&'static Self> {
        GROUPS
            .iter()
            .flat_map(|(_, specs)| specs.iter())
            .find(|spec| spec.long == name || (!spec.short.is_empty() && spec.short == name))
    }
}

const fn now(option: Opt, long: &'static str, short: &'static str, takes: Takes, help: &'static str) -> Spec {
    Spec { option, long, short, takes, effect: Effect::Now, help }
}

const fn later(
    option: Opt,
    long: &'static str,
    short: &'static str,
    takes: Takes,
    help: &'static str,
) -> Spec {
    Spec { option, long, short, takes, effect: Effect::Later, help }
}

use Takes::{Maybe, Nothing, Value};

/// The options by group, as the help lists them.
pub(super) const GROUPS: &[(&str, &[Spec])] = &[
    (
        "Mode",
        &[
            now(
                Opt::Mode,
                "--mode",
                "",
                Value("text|json|rpc"),
                "What speaks over stdin and stdout. rpc serves a host until stdin ends.",
            ),
            now(Opt::Print, "--print", "-p", Nothing, "Run the prompts, print the last answer, exit."),
            now(
                Opt::Export,
                "--export",
                "",
                Value("session file"),
                "Write a session as an HTML page, exit. The next argument is the page's path.",
            ),
        ],
    ),
    (
        "Model",
        &[
            now(
                Opt::Model,
                "--model",
                "",
                Value("pattern"),
                "Model by id, part of an id or name, or provider/id; a suffix :level sets the thinking level.",
            ),
            now(
                Opt::Provider,
                "--provider",
                "",
                Value("name"),
                "Look for --model at this provider only. `--provider demo` alone selects the built-in demo model.",
            ),
            now(
                Opt::Models,
                "--models",
                "",
                Value("patterns"),
                "Models to start with and to cycle through, separated by commas; takes * and ?.",
            ),
            now(
                Opt::ListModels,
                "--list-models",
                "",
                Maybe("search"),
                "List the models that can be used, exit.",
            ),
            now(
                Opt::ApiKey,
                "--api-key",
                "",
                Value("key"),
                "Key of the selected model's provider, for this run. Other users may see it in the process list.",
            ),
            now(
                Opt::Thinking,
                "--thinking",
                "",
                Value("level"),
                "off, minimal, low, medium, high, xhigh or max; wins over the suffix of --model.",
            ),
        ],
    ),
    (
        "Session",
        &[
            now(
                Opt::Continue,
                "--continue",
                "-c",
                Nothing,
                "Go on with the working directory's last session.",
            ),
            now(
                Opt::Session,
                "--session",
                "",
                Value("path|id"),
                "Open the session with this path or the start of this id.",
            ),
            now(
                Opt::SessionId,
                "--session-id",
                "",
                Value("id"),
                "Open the working directory's session with this id, or make it.",
            ),
            now(
                Opt::Fork,
                "--fork",
                "",
                Value("path|id"),
                "Start with a copy of this session; --session-id names the copy.",
            ),
            now(Opt::NoSession, "--no-session", "", Nothing, "Keep the session in memory only."),
            now(
                Opt::SessionDir,
                "--session-dir",
                "",
                Value("dir"),
                "Where sessions are kept and looked for.",
            ),
            now(Opt::Name, "--name", "-n", Value("name"), "Display name of the session."),
            later(
                Opt::Resume,
                "--resume",
                "-r",
                Nothing,
                "Needs a terminal to choose in; use --continue or --session.",
            ),
        ],
    ),
    (
        "Tools",
        &[
            now(
                Opt::Tools,
                "--tools",
                "-t",
                Value("list"),
                "Tools to enable instead of the default ones, separated by commas; takes *. With +name and -name only, changes the default.",
            ),
            now(
                Opt::ExcludeTools,
                "--exclude-tools",
                "-xt",
                Value("list"),
                "Tools to disable after every other choice; takes *.",
            ),
            now(
                Opt::NoBuiltinTools,
                "--no-builtin-tools",
                "-nbt",
                Nothing,
                "Start without the built-in tools.",
            ),
            now(Opt::NoTools, "--no-tools", "-nt", Nothing, "Start without any tool."),
        ],
    ),
    (
        "Prompt",
        &[
            now(Opt::SystemPrompt, "--system-prompt", "", Value("text|file"), "Replace the system prompt."),
            now(
                Opt::AppendSystemPrompt,
                "--append-system-prompt",
                "",
                Value("text|file"),
                "Add to the system prompt. Repeatable.",
            ),
            now(
                Opt::NoContextFiles,
                "--no-context-files",
                "-nc",
                Nothing,
                "Do not read AGENTS.md and CLAUDE.md.",
            ),
        ],
    ),
    (
        "Resources",
        &[
            later(Opt::Extension, "--extension", "-e", Value("path"), "Load an extension. Repeatable."),
            later(Opt::NoExtensions, "--no-extensions", "-ne", Nothing, "Load no extension but those of -e."),
            now(Opt::Skill, "--skill", "", Value("path"), "Load a skill. Repeatable."),
            now(Opt::NoSkills, "--no-skills", "-ns", Nothing, "Load no skill but those of --skill."),
            now(
                Opt::PromptTemplate,
                "--prompt-template",
                "",
                Value("path"),
                "Load a prompt template. Repeatable.",
            ),
            now(
                Opt::NoPromptTemplates,
                "--no-prompt-templates",
                "-np",
                Nothing,
                "Load no template but those of --prompt-template.",
            ),
            later(Opt::NoMcp, "--no-mcp", "", Nothing, "Use no MCP server."),
            later(
                Opt::Theme,
                "--theme",
                "",
                Value("path"),
                "There is no terminal interface to give a theme.",
            ),
            later(Opt::UseTheme, "--use-theme", "", Value("name"), "As --theme."),
            later(Opt::NoThemes, "--no-themes", "", Nothing, "As --theme."),
            later(Opt::TuiMode, "--tui-mode", "", Value("mode"), "fullscreen or regular. As --theme."),
        ],
    ),
    (
        "Process",
        &[
            now(
                Opt::Approve,
                "--approve",
                "-a",
                Nothing,
                "Trust the project: use its own configuration ({config_dir}) for this run.",
            ),
            now(
                Opt::NoApprove,
                "--no-approve",
                "-na",
                Nothing,
                "Leave the project's own configuration out, whatever the settings say.",
            ),
            now(
                Opt::Offline,
                "--offline",
                "",
                Nothing,
                "No network activity but requests to models. As {OFFLINE}=1.",
            ),
            later(
                Opt::Verbose,
                "--verbose",
                "",
                Nothing,
                "Shows more at the start of a terminal interface. {LOG}=debug logs more to stderr.",
            ),
            now(Opt::Help, "--help", "-h", Nothing, "Show this help, exit."),
            now(Opt::Version, "--version", "-v", Nothing, "Show the version, exit."),
        ],
    ),
];
