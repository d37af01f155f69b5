//! Values of keys and headers in configuration files: a literal, `$NAME` references, or a `!command`.

use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use super::Environment;
use crate::branding::PROCESS_MARKERS;

/// How long a command may take to print a key. Long enough for a person to unlock a key store.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Most bytes that a command may print.
const MAX_COMMAND_OUTPUT: u64 = 64 * 1024;

/// What a configured value turned out to be.
#[derive(Debug, Clone)]
pub(super) enum ConfigValue {
    /// A value, ready to use.
    Ready(SecretString),
    /// A shell command whose output is the value. It may hold secrets itself.
    Command(SecretString),
    /// The value refers to variables that are not set.
    MissingVariables(Vec<String>),
}

impl ConfigValue {
    /// Reads a configured value. `variable` looks a name up.
    pub(super) fn read<'a>(text: &str, variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        if let Some(command) = text.strip_prefix('!') {
            return Self::Command(command.to_owned().into());
        }
        let mut value = String::with_capacity(text.len());
        let mut missing: Vec<String> = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, dollar) = rest.split_at(at);
            value.push_str(before);
            let after = dollar.get(1..).unwrap_or_default();
            if let Some((name, tail)) = reference(after) {
                match variable(name) {
                    Some(found) => value.push_str(found),
                    None => missing.push(name.to_owned()),
                }
                rest = tail;
            } else if let Some(tail) = after.strip_prefix('$') {
                value.push('$');
                rest = tail;
            } else if let Some(tail) = after.strip_prefix('!') {
                value.push('!');
                rest = tail;
            } else {
                value.push('$');
                rest = after;
            }
        }
        value.push_str(rest);
        if missing.is_empty() { Self::Ready(value.into()) } else { Self::MissingVariables(missing) }
    }
}

/// `NAME` or `{NAME}` at the start, and what follows it.
fn reference(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        let (name, tail) = braced.split_once('}')?;
        return (name_length(name) == name.len() && !name.is_empty()).then_some((name, tail));
    }
    let length = name_length(text);
    (length > 0).then(|| text.split_at(length))
}

fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes.first().is_some_and(u8::is_ascii_digit) {
        return 0;
    }
    bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

/// Why a command gave no value. Neither the command nor its output is in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum CommandError {
    #[error("the command could not be started: {0}")]
    Start(String),
    #[error("the command took longer than {} seconds", COMMAND_TIMEOUT.as_secs())]
    Timeout,
    #[error("the command failed ({0})")]
    Failed(String),
    #[error("the command printed nothing")]
    Empty,
    #[error("the command printed more than one line")]
    SeveralLines,
    #[error("the command printed text that is not UTF-8, or too much of it")]
    NotText,
}

/// Runs a command in the shell and gives what it printed, without surrounding space.
pub(super) async fn run_command(
    command: &SecretString,
    environment: &Environment,
) -> Result<SecretString, CommandError> {
    let mut shell = shell(command.expose_secret());
    shell
        .env_clear()
        .envs(environment.variables())
        .envs(PROCESS_MARKERS)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .kill_on_drop(true);
    #[cfg(unix)]
    shell.process_group(0);
    let mut child = shell.spawn().map_err(|error| CommandError::Start(error.to_string()))?;
    let group = Group::of(&child);
    let Some(stdout) = child.stdout.take() else {
        return Err(CommandError::Start("it has no output".to_owned()));
    };
    let work = async {
        let mut output = Vec::new();
        let read = stdout.take(MAX_COMMAND_OUTPUT + 1).read_to_end(&mut output).await;
        let status = if output.len() as u64 > MAX_COMMAND_OUTPUT { None } else { Some(child.wait().await) };
        (read, status, output)
    };
    let (read, status, output) =
        tokio::time::timeout(COMMAND_TIMEOUT, work).await.map_err(|_| CommandError::Timeout)?;
    drop(group);
    let status = match status {
        Some(status) => status.map_err(|error| CommandError::Failed(error.to_string()))?,
        None => return Err(CommandError::NotText),
    };
    if !status.success() {
        return Err(CommandError::Failed(status.to_string()));
    }
    read.map_err(|error| CommandError::Failed(error.to_string()))?;
    let text = String::from_utf8(output).map_err(|_| CommandError::NotText)?;
    match text.trim() {
        "" => Err(CommandError::Empty),
        value if value.contains(['\n', '\r']) => Err(CommandError::SeveralLines),
        value => Ok(value.to_owned().into()),
    }
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

/// The command's process group, killed when dropped, also when the future is.
struct Group {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

impl Group {
    #[cfg(unix)]
    fn of(child: &tokio::process::Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
        Self { id }
    }

    #[cfg(not(unix))]
    fn of(_child: &tokio::process::Child) -> Self {
        Self {}
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(id) = self.id {
            // An error means that no process of the group is left.
            rustix::process::kill_process_group(id, rustix::process::Signal::KILL).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let value = ConfigValue::read(text, |name| match name {
            "FOO" => Some("f"),
            "BAR_2" => Some("b"),
            _ => None,
        });
        match value {
            ConfigValue::Ready(value) => value.expose_secret().to_owned(),
            ConfigValue::Command(command) => format!("command {}", command.expose_secret()),
            ConfigValue::MissingVariables(names) => format!("missing {}", names.join(",")),
        }
    }

    #[test]
    fn names_are_replaced_and_escapes_are_literal() {
        for (text, expected) in [
            ("plain", "plain"),
            ("FOO", "FOO"),
            ("$FOO", "f"),
            ("pre-$FOO-${BAR_2}x", "pre-f-bx"),
            ("$$FOO$!y$", "$FOO!y$"),
            ("$!cmd", "!cmd"),
            ("a$FOO$NOPE${NOPE2}", "missing NOPE,NOPE2"),
            ("$1 ${} ${a-b} ${FOO", "$1 ${} ${a-b} ${FOO"),
            ("!echo $FOO", "command echo $FOO"),
            ("é$FOOé", "éfé"),
            ("", ""),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    async fn run(command: &str) -> Result<String, CommandError> {
        let environment = Environment::new("/", [("PATH", "/usr/bin:/bin"), ("X", "from-env")]);
        let value = run_command(&command.to_owned().into(), &environment).await?;
        Ok(value.expose_secret().to_owned())
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_command_gives_its_trimmed_output_or_a_reason_without_the_command() {
        assert_eq!(run("echo '  key '; echo noise >&2").await, Ok("key".to_owned()));
        assert_eq!(run("printf %s \"$X\"").await, Ok("from-env".to_owned()));
        assert_eq!(run("cat").await, Err(CommandError::Empty));
        assert_eq!(run("printf 'a\\nb\\n'").await, Err(CommandError::SeveralLines));
        assert_eq!(run("head -c 100000 /dev/zero").await, Err(CommandError::NotText));
        let failed = run("echo secret; exit 3").await.unwrap_err().to_string();
        assert!(failed.contains('3') && !failed.contains("secret"), "{failed}");
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn giving_up_on_a_command_kills_its_whole_tree() {
        use std::io::Read;
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let environment = Environment::new("/", [("PATH", "/usr/bin:/bin")]);
        let command = format!("exec 3>'{}'; echo started >&3; sleep 600 & sleep 600", fifo.display()).into();
        let (started, is_started) = tokio::sync::oneshot::channel();
        let reader = tokio::task::spawn_blocking(move || {
            let mut fifo = std::fs::File::open(fifo).unwrap();
            let mut first = [0; 8];
            fifo.read_exact(&mut first).unwrap();
            started.send(()).unwrap();
            // Ends only when no process of the command has the pipe open.
            fifo.read_to_end(&mut Vec::new()).unwrap();
        });
        tokio::select! {
            _ = run_command(&command, &environment) => panic!("the command ended by itself"),
            _ = is_started => {}
        }
        reader.await.unwrap();
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_and_text_without_signs_is_literal(text in "\\PC{0,20}", tail in "[${}!A-Z_0-9é]{0,12}") {
            read(&format!("{text}{tail}"));
            if !text.contains('$') && !text.starts_with('!') {
                proptest::prop_assert_eq!(read(&text), text);
            }
        }
    }
}
