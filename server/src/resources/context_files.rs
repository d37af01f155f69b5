//! Files with instructions: `AGENTS.md` and the like, of the user and of the folders above the work.

use super::Paths;
use super::front_matter::read_text;
use super::system_prompt::ContextFile;

/// Names of instruction files. Of one folder the first that exists counts, even when it is empty.
const NAMES: [&str; 5] = ["AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"];

/// Reads the instruction files: the user's, then those from the root down to the working directory.
/// They count without trust in the project, as in Pi.
pub fn load_context_files(paths: &Paths, warnings: &mut Vec<String>) -> Vec<ContextFile> {
    let mut files = Vec::new();
    let above: Vec<_> = paths.cwd().ancestors().filter(|dir| *dir != paths.agent_dir()).collect();
    for dir in std::iter::once(paths.agent_dir()).chain(above.into_iter().rev()) {
        let Some(path) = NAMES.iter().map(|name| dir.join(name)).find(|path| path.is_file()) else {
            continue;
        };
        match read_text(&path) {
            // An empty file hides the others of its folder and says nothing.
            Ok(text) if text.trim().is_empty() => {}
            Ok(text) => files.push(ContextFile { path: path.to_string_lossy().into_owned(), text }),
            Err(error) => warnings.push(format!("{}: cannot be read: {error}", path.display())),
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::resources::Environment;

    fn load(files: &[(&str, &[u8])], cwd: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir_all(root.join(cwd)).unwrap();
        for (file, text) in files {
            fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            fs::write(root.join(file), text).unwrap();
        }
        let paths = Paths::new(&Environment::new(&root, [("", ""); 0]), root.join(cwd));
        let mut warnings = Vec::new();
        let found = load_context_files(&paths, &mut warnings);
        assert!(warnings.is_empty(), "{warnings:?}");
        let short = |file: &ContextFile| file.path.replace(&format!("{}/", root.display()), "");
        found.iter().map(|file| format!("{} {:?}", short(file), file.text)).collect()
    }

    #[test]
    fn the_users_file_comes_first_then_one_of_each_folder_from_the_root_down() {
        let files: &[(&str, &[u8])] = &[
            (".pi/agent/AGENTS.md", b"user\r\ntext\n"),
            ("AGENTS.md", b"home"),
            ("g/CLAUDE.md", b"g-claude"),
            ("g/AGENTS.md", b"g-agents"),
            ("g/h/CLAUDE.MD", b"h"),
            ("g/h/w/AGENTS.override.md", b"over"),
            ("g/h/w/AGENTS.md", b"w"),
            ("g/h/w/.pi/AGENTS.md", b"not this"),
        ];
        assert_eq!(
            load(files, "g/h/w"),
            [
                r#".pi/agent/AGENTS.md "user\r\ntext\n""#,
                r#"AGENTS.md "home""#,
                r#"g/AGENTS.md "g-agents""#,
                r#"g/h/CLAUDE.MD "h""#,
                r#"g/h/w/AGENTS.override.md "over""#,
            ]
        );
    }

    #[test]
    fn an_empty_file_hides_the_others_of_its_folder_and_a_folder_hides_nothing() {
        let files: &[(&str, &[u8])] = &[
            ("w/AGENTS.override.md", b" \n"),
            ("w/AGENTS.md", b"hidden"),
            ("AGENTS.md/x", b""),
            ("CLAUDE.md", b"\xef\xbb\xbfbom \xff"),
        ];
        assert_eq!(load(files, "w"), ["CLAUDE.md \"bom \u{fffd}\""]);
    }

    #[test]
    fn a_working_directory_in_the_agent_directory_reads_its_file_once() {
        assert_eq!(
            load(&[(".pi/agent/AGENTS.md", b"once")], ".pi/agent/w"),
            [r#".pi/agent/AGENTS.md "once""#]
        );
    }
}
