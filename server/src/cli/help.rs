//! The texts of `--help` and `--version`.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use sampi_protocol::PI_VERSION;

use super::options::{Effect, GROUPS, Spec, Takes};

/// Width of the help in columns.
const WIDTH: usize = 100;
/// Column at which the explanations start.
const INDENT: usize = 36;

/// The text of `--version`. Under the name `pi` the program is taken for Pi, so it says which one it is
/// compatible with.
pub fn version_text(program: &OsStr) -> String {
    if is_pi(program) {
        return PI_VERSION.to_owned();
    }
    format!("sampi {} (compatible with Pi {PI_VERSION})", env!("CARGO_PKG_VERSION"))
}

fn is_pi(program: &OsStr) -> bool {
    Path::new(program).file_stem().is_some_and(|name| name == "pi")
}

/// The text of `--help`, made from the table of options. Ends in a newline.
pub fn help_text() -> String {
    let mut text = String::from(
        "sampi: a coding agent that a host program drives over stdin and stdout\n\n\
         Usage:\n\
         \x20 sampi --mode rpc [options]          serve a host until stdin ends\n\
         \x20 sampi -p [options] [@file...] [prompt...]\n\
         \x20                                     run the prompts, print the last answer\n\
         \x20 sampi --mode json [options] [@file...] [prompt...]\n\
         \x20                                     run the prompts, write every event as JSON\n\
         \x20 sampi --export <session file> [page]  write a session as an HTML page\n\
         \x20 sampi --list-models [search]        show which models can be used\n\
         \x20 sampi auth <command>                save, check, print or remove credentials (sampi auth --help)\n\
         \x20 sampi schema                        print the JSON Schema of the protocol\n\n\
         A value follows its option as the next argument or after `=`. `--` ends the options; what follows\n\
         it and starts with @ is still a file.\n\
         Options with a * belong to parts that are not there yet: they are accepted without effect, or\n\
         refused where that would mislead.\n",
    );
    for (group, specs) in GROUPS {
        // Writing to a string cannot fail.
        write!(text, "\n{group}:\n").ok();
        for spec in *specs {
            option_lines(&mut text, spec);
        }
    }
    text.push_str(
        "\nEnvironment:\n\
         \x20 PI_CODING_AGENT_DIR               configuration directory (default: ~/.pi/agent)\n\
         \x20 PI_CODING_AGENT_SESSION_DIR       where sessions are kept; --session-dir goes before it\n\
         \x20 PI_OFFLINE                        1, true or yes: as --offline\n\
         \x20 ANTHROPIC_API_KEY, OPENAI_API_KEY, OPENROUTER_API_KEY, GROQ_API_KEY, ...\n\
         \x20                                   keys of the providers\n\
         \x20 HTTP_PROXY, HTTPS_PROXY, NO_PROXY proxies of requests to models\n\
         \x20 NODE_EXTRA_CA_CERTS               file with certificates of further authorities; SSL_CERT_FILE\n\
         \x20                                   names those that count instead of the system's\n\
         \x20 SAMPI_LOG                         log on stderr: off, error, warn (default), info, debug, trace\n\
         \x20 SAMPI_DEMO_SCRIPT                 file with the script of the demo model\n\n\
         Configuration (the same files as Pi's):\n\
         \x20 ~/.pi/agent/settings.json         settings; .pi/settings.json of a trusted project over them\n\
         \x20 ~/.pi/agent/models.json           providers and models of your own\n\
         \x20 ~/.pi/agent/auth.json             saved API keys\n\n\
         Tools: read, bash, edit and write are on by default; grep, find and ls can be added.\n",
    );
    text
}

fn option_lines(text: &mut String, spec: &Spec) {
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
    for word in spec.help.split(' ') {
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
