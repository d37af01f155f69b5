use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sampi_client::{RpcClient, RpcClientBuilder};
use sampi_server::embed::{AgentSession, AgentSessionBuilder};
use sampi_server::resources::Environment;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::daemon::Daemon;
use super::locate::DaemonCommand;
use crate::fake_llm::FakeLlm;

/// The models that the fake server stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Model {
    /// `mock/m1`: OpenAI completions, text and images, with costs.
    #[default]
    Plain,
    /// `mock/m2`: OpenAI completions, reasoning.
    Reasoning,
    /// `mockant/a1`: Anthropic messages, reasoning, with costs.
    Anthropic,
    /// No model is named on the command line.
    Unnamed,
}

impl Model {
    fn args(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &["--provider", "mock", "--model", "m1"],
            Self::Reasoning => &["--provider", "mock", "--model", "m2"],
            Self::Anthropic => &["--provider", "mockant", "--model", "a1"],
            Self::Unnamed => &[],
        }
    }
}

/// The directories of one test: home, agent directory, working directory, temporary files.
#[derive(Debug)]
pub struct Workspace {
    root: TempDir,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workspace {
    /// Makes the directories.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("sampi-it-").tempdir().expect("a temporary directory");
        let workspace = Self { root };
        for directory in [workspace.agent_dir(), workspace.cwd(), workspace.temporary()] {
            std::fs::create_dir(directory).expect("a new directory");
        }
        workspace
    }

    /// Above all the others, and the home of the user.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("the temporary directory is there")
    }

    /// `PI_CODING_AGENT_DIR`
    pub fn agent_dir(&self) -> PathBuf {
        self.root().join("agent")
    }

    /// The working directory.
    pub fn cwd(&self) -> PathBuf {
        self.root().join("w")
    }

    /// `TMPDIR`
    pub fn temporary(&self) -> PathBuf {
        self.root().join("tmp")
    }

    /// All files below a directory of the workspace.
    pub fn files_below(&self, directory: &Path) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for entry in directory.read_dir().into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => files.extend(self.files_below(&path)),
                path => files.push(path),
            }
        }
        files
    }
}

/// What a daemon starts with.
#[derive(Debug)]
pub struct DaemonBuilder {
    workspace: Workspace,
    models: Value,
    model: Model,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl DaemonBuilder {
    pub(super) fn new(llm: &FakeLlm) -> Self {
        Self {
            workspace: Workspace::new(),
            models: models_json(&llm.url()),
            model: Model::default(),
            args: Vec::new(),
            env: Vec::new(),
        }
    }

    /// Starts in the directories of an earlier daemon.
    pub fn in_workspace(self, workspace: Workspace) -> Self {
        Self { workspace, ..self }
    }

    /// The model on the command line.
    pub fn model(self, model: Model) -> Self {
        Self { model, ..self }
    }

    /// Replaces models.json.
    pub fn models(self, models: Value) -> Self {
        Self { models, ..self }
    }

    /// More arguments.
    pub fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// A variable of the environment, which is otherwise nearly empty.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// settings.json of the user.
    pub fn settings(self, settings: Value) -> Self {
        self.agent_file("settings.json", &settings.to_string())
    }

    /// A file in the working directory.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        write(&self.workspace.cwd().join(path), content.as_ref());
        self
    }

    /// A file in the agent directory.
    pub fn agent_file(self, path: &str, content: &str) -> Self {
        write(&self.workspace.agent_dir().join(path), content.as_bytes());
        self
    }

    /// The directories, to put something there before the start.
    pub fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(super) fn into_workspace(self) -> Workspace {
        self.workspace
    }

    /// Starts the daemon.
    pub async fn spawn(self) -> Daemon {
        let (command, args, env) = self.launch();
        let mut process = tokio::process::Command::new(command.program);
        process
            .args(command.args)
            .args(["--mode", "rpc"])
            .args(args)
            .current_dir(self.workspace.cwd())
            .env_clear()
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let child = process.spawn().expect("the daemon can be started");
        Daemon::of_process(child, self.workspace)
    }

    /// A builder of the Rust client that starts the daemon in the same way, and the directories, which must
    /// outlive it.
    pub fn client(self) -> (RpcClientBuilder, Workspace) {
        let (command, args, env) = self.launch();
        let mut client = RpcClient::builder()
            .program(command.program)
            .program_args(command.args)
            .args(args)
            .cwd(self.workspace.cwd());
        for (name, value) in env {
            client = client.env(name, value);
        }
        (client, self.workspace)
    }

    /// A builder of a session inside the test, with the same configuration and the model that the daemon would be
    /// given by name, and the directories, which must outlive it. Arguments do not count.
    pub fn embed(self) -> (AgentSessionBuilder, Workspace) {
        self.launch();
        let agent_dir = self.workspace.agent_dir();
        let variables =
            [("PI_CODING_AGENT_DIR", agent_dir.to_str().expect("a path of text")), ("PI_OFFLINE", "1")];
        let environment = Environment::new(self.workspace.root(), variables);
        let builder = AgentSession::builder().cwd(self.workspace.cwd()).environment(environment);
        let builder = match self.model.args() {
            [_, provider, _, id] => builder.model(format!("{provider}/{id}")),
            _ => builder,
        };
        (builder, self.workspace)
    }

    /// Writes the configuration; gives the command, its arguments and its environment.
    pub(super) fn launch(&self) -> (DaemonCommand, Vec<String>, Vec<(OsString, OsString)>) {
        write(&self.workspace.agent_dir().join("models.json"), self.models.to_string().as_bytes());
        let model = self.model.args().iter().map(|argument| (*argument).to_owned());
        let own: [(&str, OsString); 6] = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.workspace.root().into()),
            ("TMPDIR", self.workspace.temporary().into()),
            ("PI_CODING_AGENT_DIR", self.workspace.agent_dir().into()),
            ("PI_OFFLINE", "1".into()),
            ("PI_TELEMETRY", "0".into()),
        ];
        let env = own.into_iter().map(|(name, value)| (name.into(), value));
        let more = self.env.iter().map(|(name, value)| (name.into(), value.into()));
        (DaemonCommand::of_this_run(), model.chain(self.args.clone()).collect(), env.chain(more).collect())
    }
}

/// models.json for a server at this address.
fn models_json(url: &str) -> Value {
    json!({ "providers": {
        "mock": {
            "api": "openai-completions", "baseUrl": format!("{url}/v1"), "apiKey": "key-of-mock",
            "models": [
                {
                    "id": "m1", "name": "Mock One", "contextWindow": 100_000, "maxTokens": 4096,
                    "input": ["text", "image"],
                    "cost": { "input": 1, "output": 2, "cacheRead": 0.1, "cacheWrite": 0 },
                },
                { "id": "m2", "name": "Mock Two", "reasoning": true, "contextWindow": 100_000, "maxTokens": 4096 },
            ],
        },
        "mockant": {
            "api": "anthropic-messages", "baseUrl": url, "apiKey": "key-of-mockant",
            "models": [{
                "id": "a1", "name": "Mock Ant", "reasoning": true, "contextWindow": 200_000, "maxTokens": 8192,
                "cost": { "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 },
            }],
        },
    } })
}

fn write(path: &Path, content: &[u8]) {
    let directory = path.parent().expect("a file is in a directory");
    std::fs::create_dir_all(directory).expect("a new directory");
    std::fs::write(path, content).expect("a new file");
}
