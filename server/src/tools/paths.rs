//! Paths as models write them.

use std::path::{Path, PathBuf};

use unicode_normalization::UnicodeNormalization;

use crate::paths::{expand_tilde, tidy};

/// The absolute path that an argument means: relative to `cwd`, `~` is the home folder, a leading `@`
/// (as people mention files) is dropped.
pub(super) fn resolve(argument: &str, cwd: &Path) -> PathBuf {
    let argument = argument.strip_prefix('@').unwrap_or(argument);
    tidy(&cwd.join(expand_tilde(argument, std::env::home_dir().as_deref())))
}

/// Like [`resolve`], for a file that has to exist: also tries names that look the same, as file names
/// on disk may have other quotes, spaces or accents than people and models type.
pub(super) fn resolve_existing(argument: &str, cwd: &Path) -> PathBuf {
    let path = resolve(argument, cwd);
    if path.symlink_metadata().is_ok() {
        return path;
    }
    let Some(text) = path.to_str() else {
        return path;
    };
    let decomposed: String = text.nfd().collect();
    let candidates = [
        narrow_space_before_am_pm(text),
        decomposed.replace('\'', "\u{2019}"),
        text.replace('\'', "\u{2019}"),
        decomposed,
    ];
    let found =
        candidates.into_iter().map(PathBuf::from).find(|candidate| candidate.symlink_metadata().is_ok());
    found.unwrap_or(path)
}

/// `path` relative to `root`, with `/`.
pub(super) fn relative(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
}

/// Screenshots of macOS have a narrow no-break space there.
fn narrow_space_before_am_pm(text: &str) -> String {
    text.replace(" AM.", "\u{202f}AM.").replace(" PM.", "\u{202f}PM.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_resolve_from_the_working_directory() {
        let cwd = Path::new("/work/dir");
        assert_eq!(resolve("a.txt", cwd), Path::new("/work/dir/a.txt"));
        assert_eq!(resolve("@./x/../a.txt", cwd), Path::new("/work/dir/a.txt"));
        assert_eq!(resolve("../../../a", cwd), Path::new("/a"));
        assert_eq!(resolve("/abs", cwd), Path::new("/abs"));
        assert_eq!(resolve("", cwd), cwd);
        assert_eq!(resolve("~", cwd), std::env::home_dir().unwrap());
        assert_eq!(resolve("~/x", cwd), std::env::home_dir().unwrap().join("x"));
        assert_eq!(resolve("~x", cwd), Path::new("/work/dir/~x"));
    }

    #[test]
    fn a_name_that_looks_the_same_is_found() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["cafe\u{301}.txt", "it\u{2019}s.txt", "at 9\u{202f}AM.png"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        for name in ["café.txt", "it's.txt", "at 9 AM.png"] {
            assert!(resolve_existing(name, folder.path()).exists(), "{name}");
        }
        assert_eq!(resolve_existing("no", folder.path()), folder.path().join("no"));
    }
}
