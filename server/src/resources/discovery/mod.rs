//! Where skills and prompt templates lie, in the order in which they count: the project's, the user's,
//! those of the command line.

mod list_setting;
#[cfg(test)]
mod tests;
mod walk;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use sampi_protocol::commands::SourceInfo;

use super::{Environment, Paths};
use crate::paths::{same_file, tidy};
use list_setting::ListSetting;
use walk::{Layout, SKILL_FILE, is_markdown};

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceKind {
    /// Skills.
    Skills,
    /// Prompt templates.
    Templates,
}

/// What the command line and the settings say about one kind of resource.
#[derive(Debug, Clone, Copy)]
pub struct ResourceSources<'a> {
    /// Paths of the command line.
    pub command_line: &'a [String],
    /// The list in the user's settings.
    pub user: &'a [String],
    /// The list in the project's settings.
    pub project: &'a [String],
    /// False to load what the command line names and nothing else.
    pub discover: bool,
    /// True when what the project brings may be used.
    pub project_trusted: bool,
}

/// A file that may be a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// False for a Markdown file that only happens to lie in a folder of skills.
    pub declared: bool,
    /// Where it comes from.
    pub source_info: SourceInfo,
}

/// Finds the files of one kind, each once.
pub fn find(
    kind: ResourceKind,
    sources: &ResourceSources<'_>,
    environment: &Environment,
    paths: &Paths,
    warnings: &mut Vec<String>,
) -> Vec<Candidate> {
    let mut search = Search { kind, environment, found: Vec::new(), seen: HashSet::new(), warnings };
    if sources.discover {
        let project = paths.project_dir();
        if sources.project_trusted && project != paths.agent_dir() {
            let mut places = vec![Place::of(kind, &project)];
            if kind == ResourceKind::Skills {
                places.extend(project_agents_dirs(paths).iter().map(|dir| Place::of_agents(dir)));
            }
            search.scope("project", &project, sources.project, &places);
        }
        let mut places = vec![Place::of(kind, paths.agent_dir())];
        if let Some(home) = paths.home().filter(|_| kind == ResourceKind::Skills) {
            places.push(Place::of_agents(&home.join(AGENTS_DIR)));
        }
        search.scope("user", paths.agent_dir(), sources.user, &places);
    }
    for text in sources.command_line {
        search.command_line(&tidy(&environment.resolve_path(paths.cwd(), text)));
    }
    search.found
}

/// Folders `.agents` with skills, from the working directory up to the root of its repository. The one
/// in the home directory is the user's.
pub(super) fn project_agents_dirs(paths: &Paths) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for dir in paths.cwd().ancestors() {
        let agents = dir.join(AGENTS_DIR);
        if agents.join(SKILLS_DIR).is_dir() && !paths.home().is_some_and(|home| same_file(home, dir)) {
            dirs.push(agents);
        }
        if dir.join(".git").exists() {
            break;
        }
    }
    dirs
}

const AGENTS_DIR: &str = ".agents";
const SKILLS_DIR: &str = "skills";

/// A folder that is searched without being listed.
struct Place {
    dir: PathBuf,
    base: PathBuf,
    layout: Layout,
}

impl Place {
    fn of(kind: ResourceKind, base: &Path) -> Self {
        let (name, layout) = match kind {
            ResourceKind::Skills => (SKILLS_DIR, Layout::SkillsAndLooseFiles),
            ResourceKind::Templates => ("prompts", Layout::MarkdownHere),
        };
        Self { dir: base.join(name), base: base.to_owned(), layout }
    }

    fn of_agents(base: &Path) -> Self {
        Self { dir: base.join(SKILLS_DIR), base: base.to_owned(), layout: Layout::Skills }
    }
}

struct Search<'a> {
    kind: ResourceKind,
    environment: &'a Environment,
    found: Vec<Candidate>,
    seen: HashSet<PathBuf>,
    warnings: &'a mut Vec<String>,
}

impl Search<'_> {
    /// What the settings list, then what lies in the usual places.
    fn scope(&mut self, scope: &str, base: &Path, entries: &[String], places: &[Place]) {
        let list = ListSetting::read(entries, base, self.environment, self.warnings);
        for path in &list.paths {
            for file in self.files_of(path) {
                if list.takes(&file, base) {
                    self.add(file, Source { source: "local", scope, base_dir: None }, path);
                }
            }
        }
        for place in places {
            for file in walk::files(&place.dir, place.layout, self.warnings) {
                if list.leaves(&file, &place.base) {
                    self.add(file, Source { source: "auto", scope, base_dir: Some(&place.base) }, &place.dir);
                }
            }
        }
    }

    fn command_line(&mut self, path: &Path) {
        let files = match self.kind {
            // As in Pi: whoever names a folder means all templates in it, and none below.
            ResourceKind::Templates if path.is_dir() => {
                walk::files(path, Layout::AllMarkdownHere, self.warnings)
            }
            _ => self.files_of(path),
        };
        for file in files {
            let base_dir = file.parent().map(Path::to_owned);
            let source = Source { source: "local", scope: "temporary", base_dir: base_dir.as_deref() };
            self.add(file, source, path);
        }
    }

    /// The files that a path stands for which somebody named.
    fn files_of(&mut self, path: &Path) -> Vec<PathBuf> {
        if path.is_dir() {
            let layout = match self.kind {
                ResourceKind::Skills => Layout::SkillsAndLooseFiles,
                ResourceKind::Templates => Layout::MarkdownBelow,
            };
            return walk::files(path, layout, self.warnings);
        }
        let what = match self.kind {
            ResourceKind::Skills => "skill",
            ResourceKind::Templates => "prompt template",
        };
        if !path.is_file() {
            self.warnings.push(format!("{}: the {what} path does not exist", path.display()));
        } else if !is_markdown(path) {
            self.warnings.push(format!("{}: not a {what}, its name does not end in .md", path.display()));
        } else {
            return vec![path.to_owned()];
        }
        Vec::new()
    }

    fn add(&mut self, path: PathBuf, source: Source<'_>, named: &Path) {
        // One file may be reached in several ways.
        let key = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !self.seen.insert(key) {
            return;
        }
        let declared = path == named || path.file_name().is_some_and(|name| name == SKILL_FILE);
        let source_info = SourceInfo {
            path: text(&path),
            source: source.source.to_owned(),
            scope: source.scope.to_owned(),
            origin: "top-level".to_owned(),
            base_dir: source.base_dir.map(text),
        };
        self.found.push(Candidate { path, declared, source_info });
    }
}

#[derive(Clone, Copy)]
struct Source<'a> {
    source: &'a str,
    scope: &'a str,
    base_dir: Option<&'a Path>,
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
