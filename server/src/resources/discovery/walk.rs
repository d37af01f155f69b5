//! The files of a folder of skills or templates.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The file that makes a folder a skill.
pub(super) const SKILL_FILE: &str = "SKILL.md";

/// Folders below this depth are not looked at.
const MAX_DEPTH: usize = 32;

/// Files that say what to leave out, in their own folder and below.
const IGNORE_FILES: [&str; 3] = [".gitignore", ".ignore", ".fdignore"];

/// What is looked for in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Folders with a `SKILL.md`, at any depth.
    Skills,
    /// The same, and Markdown files directly in the folder.
    SkillsAndLooseFiles,
    /// Markdown files directly in the folder.
    MarkdownHere,
    /// The same, hidden and ignored ones too.
    AllMarkdownHere,
    /// Markdown files at any depth.
    MarkdownBelow,
}

/// The files in a folder, by name, folders among them. A folder that does not exist has none.
pub(super) fn files(root: &Path, layout: Layout, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let mut walk = Walk { layout, files: Vec::new(), entered: HashSet::new(), warnings };
    walk.enter(root, &[], 0);
    walk.files
}

struct Walk<'a> {
    layout: Layout,
    files: Vec<PathBuf>,
    /// Folders that links led to, so that a link to a folder above does not lead in circles.
    entered: HashSet<PathBuf>,
    warnings: &'a mut Vec<String>,
}

struct Entry {
    name: std::ffi::OsString,
    path: PathBuf,
    is_dir: bool,
    is_link: bool,
}

impl Walk<'_> {
    fn enter(&mut self, dir: &Path, above: &[&Gitignore], depth: usize) {
        let entries = match entries(dir) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    self.warnings.push(format!("{}: cannot be read: {error}", dir.display()));
                }
                return;
            }
        };
        let own = ignore_rules(dir, &entries, self.warnings);
        let mut rules = above.to_vec();
        rules.extend(own.as_ref());
        let skills = matches!(self.layout, Layout::Skills | Layout::SkillsAndLooseFiles);
        let skill = entries.iter().find(|entry| entry.name == SKILL_FILE && !entry.is_dir);
        if let Some(skill) = skill.filter(|_| skills) {
            if !is_ignored(&rules, skill) {
                self.files.push(skill.path.clone());
            }
            return;
        }
        for entry in entries {
            let hidden = entry.name.as_encoded_bytes().starts_with(b".") || entry.name == "node_modules";
            if self.layout != Layout::AllMarkdownHere && (hidden || is_ignored(&rules, &entry)) {
                continue;
            }
            if entry.is_dir {
                let here = matches!(self.layout, Layout::MarkdownHere | Layout::AllMarkdownHere);
                let deeper = !here && depth < MAX_DEPTH;
                if deeper && self.is_new(dir, &entry) {
                    self.enter(&entry.path, &rules, depth + 1);
                }
            } else if is_markdown(&entry.path) && self.takes_files_at(depth) {
                self.files.push(entry.path);
            }
        }
    }

    fn takes_files_at(&self, depth: usize) -> bool {
        match self.layout {
            Layout::Skills => false,
            Layout::SkillsAndLooseFiles | Layout::MarkdownHere | Layout::AllMarkdownHere => depth == 0,
            Layout::MarkdownBelow => true,
        }
    }

    /// False for a link to a folder that was entered, or that it stands in.
    fn is_new(&mut self, dir: &Path, entry: &Entry) -> bool {
        if !entry.is_link {
            return true;
        }
        let (Ok(target), Ok(here)) = (entry.path.canonicalize(), dir.canonicalize()) else { return false };
        !here.starts_with(&target) && self.entered.insert(target)
    }
}

/// True for a file whose name ends in `.md`.
pub(super) fn is_markdown(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("md"))
}

fn entries(dir: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let path = entry.path();
        let mut kind = entry.file_type()?;
        let is_link = kind.is_symlink();
        if is_link {
            // A link that leads nowhere is nothing.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            kind = metadata.file_type();
        }
        if kind.is_dir() || kind.is_file() {
            entries.push(Entry { name: entry.file_name(), path, is_dir: kind.is_dir(), is_link });
        }
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

fn ignore_rules(dir: &Path, entries: &[Entry], warnings: &mut Vec<String>) -> Option<Gitignore> {
    let named =
        |name: &str| entries.iter().find(|entry| !entry.is_dir && entry.name.as_os_str() == OsStr::new(name));
    let files: Vec<&Entry> = IGNORE_FILES.into_iter().filter_map(named).collect();
    if files.is_empty() {
        return None;
    }
    let mut builder = GitignoreBuilder::new(dir);
    for file in files {
        if let Some(error) = builder.add(&file.path) {
            warnings.push(error.to_string());
        }
    }
    builder.build().map_err(|error| warnings.push(format!("{}: {error}", dir.display()))).ok()
}

fn is_ignored(rules: &[&Gitignore], entry: &Entry) -> bool {
    for rules in rules.iter().rev() {
        match rules.matched(&entry.path, entry.is_dir) {
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
            Match::None => {}
        }
    }
    false
}
