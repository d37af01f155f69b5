//! Paths, worked out from their text alone.

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

#[cfg(test)]
mod tests {
    use super::*;

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
