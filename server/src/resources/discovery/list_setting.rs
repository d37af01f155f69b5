//! A list of resources in the settings: paths, patterns that choose among their files, and switches.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::walk::SKILL_FILE;
use crate::paths::tidy;
use crate::resources::Environment;

/// One of the lists `skills` and `prompts`.
#[derive(Debug, Default)]
pub(super) struct ListSetting {
    /// Files and folders to load, absolute.
    pub(super) paths: Vec<PathBuf>,
    /// Patterns of which a file of these must match one, when there are any.
    only: Vec<Pattern>,
    /// `!pattern`
    except: Vec<Pattern>,
    /// `+path`
    always: Vec<String>,
    /// `-path`
    never: Vec<String>,
}

#[derive(Debug)]
struct Pattern {
    matcher: GlobMatcher,
    /// A pattern for whole paths, not for paths below the base folder.
    absolute: bool,
}

impl ListSetting {
    /// Reads a list whose relative paths start at `base`.
    pub(super) fn read(
        entries: &[String],
        base: &Path,
        environment: &Environment,
        warnings: &mut Vec<String>,
    ) -> Self {
        let mut list = Self::default();
        let expand = |text: &str| environment.expand_tilde(text).to_string_lossy().into_owned();
        for entry in entries {
            let mut pattern = |text: &str| {
                let text = expand(text.strip_prefix("./").unwrap_or(text));
                match GlobBuilder::new(&text).literal_separator(true).build() {
                    Ok(glob) => Some(Pattern {
                        matcher: glob.compile_matcher(),
                        absolute: Path::new(&text).is_absolute(),
                    }),
                    Err(error) => {
                        warnings.push(format!("{}: {entry:?} is no pattern: {error}", base.display()));
                        None
                    }
                }
            };
            let exact = |path: &str| expand(path.strip_prefix("./").unwrap_or(path));
            match entry.split_at_checked(1) {
                Some(("!", text)) => list.except.extend(pattern(text)),
                Some(("+", path)) => list.always.push(exact(path)),
                Some(("-", path)) => list.never.push(exact(path)),
                _ if entry.contains(['*', '?']) => list.only.extend(pattern(entry)),
                _ => list.paths.push(tidy(&environment.resolve_path(base, entry))),
            }
        }
        list
    }

    /// True for a file of the listed paths that the patterns leave in.
    pub(super) fn takes(&self, file: &Path, base: &Path) -> bool {
        let names = Names::of(file, base);
        let chosen = self.only.is_empty() || self.only.iter().any(|pattern| names.fit(pattern));
        self.switched(&names, chosen)
    }

    /// True for a file that was found without being listed, unless it is switched off.
    pub(super) fn leaves(&self, file: &Path, base: &Path) -> bool {
        self.switched(&Names::of(file, base), true)
    }

    fn switched(&self, names: &Names, chosen: bool) -> bool {
        let on = (chosen && !self.except.iter().any(|pattern| names.fit(pattern)))
            || self.always.iter().any(|path| names.are(path));
        on && !self.never.iter().any(|path| names.are(path))
    }
}

/// What an entry may call a file. A skill is also called by its folder.
struct Names {
    relative: Vec<PathBuf>,
    absolute: Vec<PathBuf>,
}

impl Names {
    fn of(file: &Path, base: &Path) -> Self {
        let mut absolute = vec![file.to_owned()];
        if file.file_name().is_some_and(|name| name == SKILL_FILE) {
            absolute.extend(file.parent().map(Path::to_owned));
        }
        let relative =
            absolute.iter().filter_map(|path| path.strip_prefix(base).ok().map(Path::to_owned)).collect();
        Self { relative, absolute }
    }

    fn fit(&self, pattern: &Pattern) -> bool {
        if pattern.absolute {
            return self.absolute.iter().any(|path| pattern.matcher.is_match(path));
        }
        let last = self.absolute.iter().filter_map(|path| path.file_name().map(Path::new));
        self.relative.iter().map(PathBuf::as_path).chain(last).any(|path| pattern.matcher.is_match(path))
    }

    fn are(&self, path: &str) -> bool {
        let path = Path::new(path);
        self.relative.iter().chain(&self.absolute).any(|name| name == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [&str; 5] = ["ex/a.md", "ex/n/deep.md", "ex/s.md", "sk/a/SKILL.md", "sk/n/b/SKILL.md"];

    fn left(entries: &[&str], check: fn(&ListSetting, &Path, &Path) -> bool) -> String {
        let entries: Vec<String> = entries.iter().map(|entry| (*entry).to_owned()).collect();
        let mut warnings = Vec::new();
        let environment = Environment::new("/base", [("", ""); 0]);
        let list = ListSetting::read(&entries, Path::new("/base"), &environment, &mut warnings);
        assert!(warnings.is_empty(), "{warnings:?}");
        let base = Path::new("/base");
        FILES.into_iter().filter(|file| check(&list, &base.join(file), base)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn patterns_match_the_path_below_the_base_or_the_last_name_and_switches_name_exact_paths() {
        let all = FILES.join(" ");
        for (entries, expected) in [
            (&["ex", "sk"][..], all.as_str()),
            (&["ex", "!s.md"], "ex/a.md ex/n/deep.md sk/a/SKILL.md sk/n/b/SKILL.md"),
            (&["ex", "!ex/s.md"], "ex/a.md ex/n/deep.md sk/a/SKILL.md sk/n/b/SKILL.md"),
            (&["ex", "!**/s.md", "!sk/**"], "ex/a.md ex/n/deep.md"),
            (&["ex", "-s.md", "!n", "!n/**", "!deep"], all.as_str()),
            (&["ex", "-ex/s.md", "-./ex/a.md"], "ex/n/deep.md sk/a/SKILL.md sk/n/b/SKILL.md"),
            (&["ex", "!*", "+ex/s.md"], "ex/s.md"),
            (&["ex", "!*", "+ex/s.md", "-ex/s.md"], ""),
            (&["ex", "*.md", "!SKILL.md"], "ex/a.md ex/n/deep.md ex/s.md"),
            (&["ex", "s?md"], "ex/s.md"),
            (&["ex", "!{a,s}.md", "!sk/**"], "ex/n/deep.md"),
            (&["sk", "!a", "!ex/**"], "sk/n/b/SKILL.md"),
            (&["sk", "!sk/a", "!ex/**"], "sk/n/b/SKILL.md"),
            (&["sk", "!**/a/**", "!ex/**"], "sk/n/b/SKILL.md"),
            (&["sk", "-sk/a", "!ex/**"], "sk/n/b/SKILL.md"),
            (&["sk", "-~/sk/a/SKILL.md", "!/base/ex/**"], "sk/n/b/SKILL.md"),
        ] {
            assert_eq!(left(entries, ListSetting::takes), expected, "{entries:?}");
        }
    }

    #[test]
    fn files_that_are_found_without_being_listed_can_only_be_switched_off() {
        for (entries, expected) in [
            (&["a*", "+ex/s.md"][..], FILES.join(" ")),
            (&["!a.md", "-sk/n/b"], "ex/n/deep.md ex/s.md sk/a/SKILL.md".to_owned()),
        ] {
            assert_eq!(left(entries, ListSetting::leaves), expected, "{entries:?}");
        }
    }

    #[test]
    fn a_pattern_that_is_none_is_a_warning() {
        let mut warnings = Vec::new();
        let environment = Environment::new("/base", [("", ""); 0]);
        ListSetting::read(&["!a[".to_owned()], Path::new("/base"), &environment, &mut warnings);
        assert!(warnings.concat().contains(r#""!a[" is no pattern"#), "{warnings:?}");
    }
}
