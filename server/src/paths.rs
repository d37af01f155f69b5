//! Paths: tidied and expanded from their text alone, and compared by what they lead to.

use std::path::{Component, Path, PathBuf};

/// The path without `.` and `..`, as far as they can be resolved without looking at the disk.
pub(crate) fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            component => tidied.push(component),
        }
    }
    tidied
}

/// Replaces a leading `~` or `~/` by the home folder, if there is one. `~other` stays as it is.
pub(crate) fn expand_tilde(text: &str, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), home) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
            home.join(rest.trim_start_matches('/'))
        }
        _ => PathBuf::from(text),
    }
}

/// True when two paths lead to the same file or folder. Two that lead nowhere are the same when their
/// texts are.
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    one == other || matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_is_the_same_file_as_its_target_and_what_does_not_exist_only_as_itself() {
        let dir = tempfile::tempdir().unwrap();
        let [file, link, other] = ["file", "link", "other"].map(|name| dir.path().join(name));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(same_file(&file, &link) && same_file(&other, &other));
        assert!(!same_file(&file, &other) && !same_file(&other, &dir.path().join("missing")));
    }

    #[test]
    fn dots_are_resolved_from_the_text_alone() {
        for (path, tidied) in [("/a/./b/../c", "/a/c"), ("/../a", "/a"), ("/a/", "/a"), ("a/../..", "")] {
            assert_eq!(tidy(Path::new(path)), Path::new(tidied), "{path}");
        }
    }

    #[test]
    fn a_leading_tilde_is_the_home_folder() {
        let home = Some(Path::new("/home/u"));
        for (text, path) in
            [("~", "/home/u"), ("~/x", "/home/u/x"), ("~//x", "/home/u/x"), ("~v/x", "~v/x"), ("x~", "x~")]
        {
            assert_eq!(expand_tilde(text, home), Path::new(path), "{text}");
        }
        assert_eq!(expand_tilde("~/x", None), Path::new("~/x"));
    }
}
