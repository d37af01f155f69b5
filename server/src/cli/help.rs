//! The texts of `--help` and `--version`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use sampi_protocol::PI_VERSION;

use super::options::{Effect, GROUPS, Spec, Takes};
use crate::branding::{Branding, OFFLINE_VARIABLE};

/// Width of the help in columns.
const WIDTH: usize = 100;
/// Column at which the explanations start.
const INDENT: usize = 36;

/// The text of `--version`. Under the name `pi` the program is taken for Pi, so it says which one it is
/// compatible with.
pub fn version_text(branding: Branding, program: &OsStr) -> String {
    if is_pi(program) {
        return PI_VERSION.to_owned();
    }
    format!("{} {} (compatible with Pi {PI_VERSION})", branding.name, env!("CARGO_PKG_VERSION"))
}

fn is_pi(program: &OsStr) -> bool {
    Path::new(program).file_stem().is_some_and(|name| name == "pi")
}

/// The text of `--help`, made from the table of options. Ends in a newline.
pub fn help_text(branding: Branding) -> String {
    let mut text = format!(
        "{}: a coding agent that a host program drives over stdin and stdout\n\nUsage:\n",
        branding.name
    );
    for (arguments, meaning) in USAGE {
        text.push_str(&row(&format!("{} {arguments}", branding.name), INDENT, meaning));
    }
    text.push_str(RULES);
    for (group, specs) in GROUPS {
        // Writing to a string cannot fail.
        write!(text, "\n{group}:\n").ok();
        for spec in *specs {
            option_lines(&mut text, spec, branding);
        }
    }
    text.push_str("\nEnvironment:\n");
    for (variable, meaning) in VARIABLES {
        text.push_str(&row(&fill(variable, branding), INDENT - 2, &fill(meaning, branding)));
    }
    let whose = if branding.is_configured_as_pi() { " (the same files as Pi's)" } else { "" };
    text.push_str(&format!("\nConfiguration{whose}:\n"));
    for (file, meaning) in FILES {
        text.push_str(&row(&fill(file, branding), INDENT - 2, &fill(meaning, branding)));
    }
    text.push_str(TOOLS);
    text
}

/// Ways to start the program: what follows its name, and what it does then.
const USAGE: [(&str, &str); 7] = [
    ("--mode rpc [options]", "serve a host until stdin ends"),
    ("-p [options] [@file...] [prompt...]", "run the prompts, print the last answer"),
    ("--mode json [options] [@file...] [prompt...]", "run the prompts, write every event as JSON"),
    ("--export <session file> [page]", "write a session as an HTML page"),
    ("--list-models [search]", "show which models can be used"),
    ("auth <command>", "save, check, print or remove credentials (see auth --help)"),
    ("schema", "print the JSON Schema of the protocol"),
];

const RULES: &str = "
A value follows its option as the next argument or after `=`. `--` ends the options; what follows
it and starts with @ is still a file.
Options with a * belong to parts that are not there yet: they are accepted without effect, or
refused where that would mislead.
";

const VARIABLES: [(&str, &str); 8] = [
    ("{AGENT_DIR}", "configuration directory (default: {agent_dir})"),
    ("{SESSION_DIR}", "where sessions are kept; --session-dir goes before it"),
    ("{OFFLINE}", "1, true or yes: as --offline"),
    ("ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY, GROQ_API_KEY, ...", "keys of the providers"),
    ("HTTP_PROXY, HTTPS_PROXY, NO_PROXY", "proxies of requests to models"),
    ("NODE_EXTRA_CA_CERTS", "file with certificates of authorities to trust as well"),
    ("{LOG}", "log on stderr: off, error, warn (default), info, debug, trace"),
    ("{SCRIPT}", "file with the script of the demo model"),
];

const FILES: [(&str, &str); 3] = [
    ("{agent_dir}/settings.json", "settings; {config_dir}/settings.json of a trusted project over them"),
    ("{agent_dir}/models.json", "providers and models of your own"),
    ("{agent_dir}/auth.json", "saved API keys"),
];

const TOOLS: &str =
    "\nTools: read, bash, edit and write are on by default; grep, find and ls can be added.\n";

/// Puts the program's names into a text.
fn fill(text: &str, branding: Branding) -> String {
    text.replace("{AGENT_DIR}", &branding.agent_dir_variable())
        .replace("{SESSION_DIR}", &branding.session_dir_variable())
        .replace("{OFFLINE}", OFFLINE_VARIABLE)
        .replace("{LOG}", &branding.log_variable())
        .replace("{SCRIPT}", &branding.script_variable())
        .replace("{agent_dir}", &branding.agent_dir())
        .replace("{config_dir}", branding.config_dir)
}

/// A line of two columns, or two lines where the first column is far too long.
fn row(left: &str, width: usize, right: &str) -> String {
    match left.len() {
        length if length < width => format!("  {left:<width$}{right}\n"),
        length if length == width => format!("  {left}  {right}\n"),
        _ => format!("  {left}\n  {:width$}{right}\n", ""),
    }
}

fn option_lines(text: &mut String, spec: &Spec, branding: Branding) {
    let mark = if spec.effect == Effect::Later { "*" } else { " " };
    let mut left = format!(" {mark}{}", spec.long);
    if !spec.short.is_empty() {
        left.push_str(", ");
        left.push_str(spec.short);
    }
    match spec.takes {
        Takes::Nothing => {}
        Takes::Value(name) => left.push_str(&format!(" <{name}>")),
        Takes::Maybe(name) => left.push_str(&format!(" [{name}]")),
    }
    if left.len() >= INDENT - 1 {
        text.push_str(&left);
        text.push('\n');
        left.clear();
    }
    let mut line = left;
    let mut is_empty = true;
    for word in fill(spec.help, branding).split(' ') {
        if !is_empty && line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::new();
            is_empty = true;
        }
        if is_empty {
            line = format!("{line:<INDENT$}{word}");
            is_empty = false;
        } else {
            line.push(' ');
            line.push_str(word);
        }
    }
    text.push_str(&line);
    text.push('\n');
}
