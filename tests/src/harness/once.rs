use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use super::builder::{DaemonBuilder, Workspace};
use super::within_timeout;

/// What a program that ran once left behind.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to stdout.
    pub stdout: String,
    /// What it wrote to stderr.
    pub stderr: String,
    /// Its directories.
    pub workspace: Workspace,
}

impl DaemonBuilder {
    /// Runs the program with these arguments only and the configuration of a daemon, its stdin holding this
    /// text, until it ends.
    pub async fn run_once(self, stdin: &str) -> Finished {
        let (mut child, workspace) = self.spawn_once();
        let mut pipe = child.stdin.take().expect("stdin is a pipe");
        // A program that does not read its stdin may be gone.
        pipe.write_all(stdin.as_bytes()).await.ok();
        drop(pipe);
        finished(child, workspace).await
    }

    /// Starts the program with these arguments only, its stdin, stdout and stderr piped.
    pub fn spawn_once(self) -> (Child, Workspace) {
        let (command, args, env) = self.launch();
        let mut process = Command::new(command.program);
        process
            .args(command.args)
            .args(args)
            .current_dir(self.workspace().cwd())
            .env_clear()
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        (process.spawn().expect("the program can be started"), self.into_workspace())
    }
}

/// Waits for the end of a program that was started with [`DaemonBuilder::spawn_once`].
pub async fn finished(child: Child, workspace: Workspace) -> Finished {
    let output = within_timeout("the program to end", child.wait_with_output()).await;
    let output = output.expect("the program can be waited for");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the output is UTF-8");
    Finished {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
        workspace,
    }
}
