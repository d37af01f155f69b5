//! From what the command line asks for to an agent: the session is opened, the parts are put together.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sampi_protocol::data::{SessionId, ThinkingLevel};

use crate::agent::{Agent, AgentError, AgentParts, SessionsRoot};
use crate::cli::{Config, SessionChoice, SessionWish, Startup, StartupError};
use crate::extensions::NoExtensions;
use crate::llm::{Providers, demo_models};
use crate::resources::discovery::ResourceSources;
use crate::resources::paths::SessionsDir;
use crate::resources::{Environment, Paths, ResourceWish, Resources};
use crate::session::listing::{self, Found};
use crate::session::{NewSessionOptions, Session, SessionError};
use crate::tools::{Tool, ToolSet};

/// Why the daemon cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Options, settings or models do not fit.
    #[error(transparent)]
    Startup(#[from] StartupError),
    /// The session could not be opened or made.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The agent could not be made.
    #[error(transparent)]
    Agent(#[from] AgentError),
    /// The session that an option names cannot be used.
    #[error("{0}")]
    SessionChoice(String),
}

/// Makes the agent that the command line asks for.
pub fn start(config: &Config, environment: &Environment, cwd: &Path) -> Result<Agent, StartError> {
    let mut warnings = Vec::new();
    let parts = prepare(config, environment, cwd, &mut warnings);
    // What is wrong with the configuration may be why the start fails.
    tell(&warnings);
    let version = env!("CARGO_PKG_VERSION");
    tracing::debug!(version, pid = std::process::id(), mode = ?config.mode, cwd = %cwd.display(), "start");
    let mut agent = Agent::new(parts?)?;
    // What happened before the host could listen is in the state that it can ask for.
    while agent.next_output().is_some() {}
    agent.report_diagnostics();
    Ok(agent)
}

/// Tells what is wrong and does no harm.
pub fn tell(warnings: &[String]) {
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
}

fn prepare(
    config: &Config,
    environment: &Environment,
    cwd: &Path,
    warnings: &mut Vec<String>,
) -> Result<AgentParts, StartError> {
    let mut paths = Paths::new(environment, cwd);
    let mut startup = Startup::prepare(config, environment, &paths, demo_models(), warnings)?;
    let session = open_session(config, &startup.sessions, cwd)?;
    session.check_cwd()?;
    if session.cwd() != cwd {
        // A session is resumed in its own working directory, with the configuration that holds there.
        paths = Paths::new(environment, session.cwd());
        warnings.clear();
        startup = Startup::prepare(config, environment, &paths, demo_models(), warnings)?;
    }
    let resumed = session.outline();
    let wish = SessionWish {
        model: resumed.model.as_ref().map(|(provider, id)| (provider.as_str(), id.as_str())),
        thinking: resumed.thinking_level.as_deref().and_then(ThinkingLevel::parse),
    };
    let (initial, thinking) = startup.initial(config, wish);
    warnings.extend(initial.warning);
    let available_tools = ToolSet::builtin();
    let tools = select_tools(config, &startup, &available_tools, warnings);
    let resources = load_resources(config, &startup, environment, &paths, warnings);
    let sessions_root = match (&config.session, startup.sessions) {
        (SessionChoice::InMemory { .. }, _) => None,
        (_, SessionsDir::ByProject(root)) => Some(SessionsRoot::ByCwd(root)),
        (_, SessionsDir::Flat(dir)) => Some(SessionsRoot::Fixed(dir)),
    };
    let name = config.name.clone().filter(|name| {
        if session.is_read_only() {
            warnings.push(format!("the session belongs to another process, so it was not named {name}"));
        }
        !session.is_read_only()
    });
    Ok(AgentParts {
        session,
        environment: environment.clone(),
        models: Arc::new(startup.registry),
        providers: Providers::new(),
        settings: startup.settings,
        cache_retention: startup.cache_retention,
        tools,
        available_tools,
        tools_follow_session: config.tools.follows_session(),
        prompt: startup.prompt,
        resources,
        extension: Arc::new(NoExtensions),
        model: initial.model,
        thinking,
        scope: startup.scoped.into_iter().map(|scoped| (scoped.model, scoped.thinking)).collect(),
        sessions_root,
        settings_file: Some(paths.user_settings()),
        name,
    })
}

fn load_resources(
    config: &Config,
    startup: &Startup,
    environment: &Environment,
    paths: &Paths,
    warnings: &mut Vec<String>,
) -> Resources {
    let options = &config.resources;
    let Startup { user_resources: user, project_resources: project, project_trusted, .. } = startup;
    let wish = ResourceWish {
        skills: ResourceSources {
            command_line: &options.skills,
            user: &user.skills,
            project: &project.skills,
            discover: !options.no_skills,
            project_trusted: *project_trusted,
        },
        templates: ResourceSources {
            command_line: &options.prompt_templates,
            user: &user.prompts,
            project: &project.prompts,
            discover: !options.no_prompt_templates,
            project_trusted: *project_trusted,
        },
        context_files: !options.no_context_files,
    };
    Resources::load(environment, paths, &wish, warnings)
}

fn select_tools(
    config: &Config,
    startup: &Startup,
    available: &ToolSet,
    warnings: &mut Vec<String>,
) -> Vec<Arc<dyn Tool>> {
    let known: Vec<&str> = available.iter().map(|tool| tool.definition().name.as_str()).collect();
    let (names, unknown) = config.tools.select(&startup.settings.default_tools, &known);
    warnings.extend(unknown.iter().map(|name| format!("there is no tool {name}")));
    names.iter().filter_map(|name| available.get(name)).cloned().collect()
}

fn open_session(config: &Config, sessions: &SessionsDir, cwd: &Path) -> Result<Session, StartError> {
    let dir = match sessions {
        SessionsDir::ByProject(root) => listing::sessions_dir(root, cwd),
        SessionsDir::Flat(dir) => dir.clone(),
    };
    let with_id = |id: &Option<String>| NewSessionOptions {
        id: id.as_deref().map(SessionId::from),
        ..NewSessionOptions::default()
    };
    Ok(match &config.session {
        SessionChoice::New => Session::create(&dir, cwd, NewSessionOptions::default())?,
        SessionChoice::InMemory { id } => Session::in_memory(cwd, with_id(id)),
        SessionChoice::Continue => match listing::most_recent(&dir, cwd) {
            Some(path) => Session::open_or_read(&path)?,
            None => Session::create(&dir, cwd, NewSessionOptions::default())?,
        },
        SessionChoice::Open(text) => match find_session(text, sessions, &dir, cwd)? {
            Place::Here(path) => Session::open_or_start(&path, cwd)?,
            Place::Elsewhere { path, cwd } => {
                return Err(StartError::SessionChoice(format!(
                    "session {text} belongs to another working directory ({}): start there, or use --fork {}",
                    cwd.display(),
                    path.display()
                )));
            }
        },
        SessionChoice::WithId(id) => match listing::find_by_id(&dir, id) {
            Found::One(stub) if stub.header.id.as_str() == id => Session::open_or_read(&stub.path)?,
            _ => Session::create(&dir, cwd, with_id(&Some(id.clone())))?,
        },
        SessionChoice::Fork { source, id } => {
            let (Place::Here(path) | Place::Elsewhere { path, .. }) =
                find_session(source, sessions, &dir, cwd)?;
            Session::fork_from(&path, cwd, &dir, id.as_deref().map(SessionId::from))?
        }
    })
}

enum Place {
    Here(PathBuf),
    Elsewhere { path: PathBuf, cwd: PathBuf },
}

/// The session file that a text names: a path, or the start of an id.
fn find_session(text: &str, sessions: &SessionsDir, dir: &Path, cwd: &Path) -> Result<Place, StartError> {
    if text.contains(['/', '\\']) || text.ends_with(".jsonl") {
        return Ok(Place::Here(cwd.join(text)));
    }
    let found = match listing::find_by_id(dir, text) {
        Found::Nothing => match sessions {
            SessionsDir::ByProject(root) => listing::find_anywhere(root, text),
            SessionsDir::Flat(_) => Found::Nothing,
        },
        found => found,
    };
    match found {
        Found::One(stub) if stub.path.parent() == Some(dir) => Ok(Place::Here(stub.path)),
        Found::One(stub) => Ok(Place::Elsewhere { cwd: PathBuf::from(&stub.header.cwd), path: stub.path }),
        Found::Ambiguous(stubs) => {
            let ids: Vec<&str> = stubs.iter().map(|stub| stub.header.id.as_str()).collect();
            Err(StartError::SessionChoice(format!("session id {text} is ambiguous: {}", ids.join(", "))))
        }
        Found::Nothing => Err(StartError::SessionChoice(format!("No session found matching '{text}'"))),
    }
}
