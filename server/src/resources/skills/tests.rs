use std::fs;

use super::*;

struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), text).unwrap();
        }
        Self { dir }
    }

    fn candidate(&self, file: &str) -> Candidate {
        let path = self.dir.path().join(file);
        let source_info = SourceInfo {
            path: path.to_string_lossy().into_owned(),
            source: "auto".into(),
            scope: "user".into(),
            origin: "top-level".into(),
            base_dir: None,
        };
        Candidate { declared: file.ends_with("SKILL.md"), path, source_info }
    }

    fn load(&self, files: &[&str]) -> (Vec<Skill>, Vec<String>) {
        let mut warnings = Vec::new();
        let skills = load(files.iter().map(|file| self.candidate(file)).collect(), &mut warnings);
        let root = format!("{}/", self.dir.path().display());
        (skills, warnings.iter().map(|warning| warning.replace(&root, "")).collect())
    }
}

#[test]
fn a_skill_with_a_doubtful_name_is_loaded_with_a_warning_and_one_without_description_is_not() {
    let long = format!("---\nname: {}\ndescription: d\n---\n", "n".repeat(70));
    let wordy = format!("---\nname: wordy\ndescription: {}\n---\n", "x".repeat(1100));
    let bad = "name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)";
    let refused = "description is required; the skill is not loaded";
    for (text, name, warning) in [
        ("---\nname: a-1\ndescription: d\n---\nB", Some("a-1"), ""),
        ("---\ndescription: d\n---\nB", Some("folder"), ""),
        ("---\nname: 12\ndescription: d\n---\nB", Some("folder"), ""),
        ("---\nname: Bad_Name\ndescription: d\n---\nB", Some("Bad_Name"), bad),
        ("---\nname: a--b\ndescription: d\n---\n", Some("a--b"), "name must not contain consecutive hyphens"),
        ("---\nname: -a\ndescription: d\n---\n", Some("-a"), "name must not start or end with a hyphen"),
        (&long, Some(&*"n".repeat(70)), "name exceeds 64 characters (70)"),
        (&wordy, Some("wordy"), "description exceeds 1024 characters (1100)"),
        ("---\nname: x\n---\nB", None, refused),
        ("---\nname: x\ndescription: \"  \"\n---\nB", None, refused),
        ("---\nname: x\ndescription: 12\n---\nB", None, refused),
        ("# no front matter", None, refused),
        ("", None, refused),
        ("---\nname: [x\ndescription: d\n---\nB", None, "the front matter is not valid YAML: "),
    ] {
        let (skills, warnings) = Folder::new(&[("folder/SKILL.md", text)]).load(&["folder/SKILL.md"]);
        assert_eq!(skills.first().map(|skill| skill.name.as_str()), name, "{text}");
        assert_eq!(warnings.len(), usize::from(!warning.is_empty()), "{text}: {warnings:?}");
        let said = warnings.concat();
        assert!(warning.is_empty() || said.starts_with(&format!("folder/SKILL.md: {warning}")), "{said}");
    }
}

#[test]
fn a_loose_file_that_is_no_skill_is_passed_over_in_silence() {
    let folder = Folder::new(&[
        ("s/README.md", "# Skills"),
        ("s/broken.md", "---\nname: [x\n---\n"),
        ("s/one.md", "---\ndescription: d\n---\nB"),
    ]);
    let (skills, warnings) = folder.load(&["s/README.md", "s/broken.md", "s/one.md"]);
    assert_eq!(skills.len(), 1);
    assert_eq!(skills[0].name, "s");
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn of_two_skills_with_one_name_the_first_is_kept_and_the_other_named() {
    let text = "---\nname: same\ndescription: d\n---\n";
    let folder = Folder::new(&[("a/SKILL.md", text), ("b/SKILL.md", text)]);
    let (skills, warnings) = folder.load(&["a/SKILL.md", "b/SKILL.md"]);
    assert_eq!(skills.len(), 1);
    assert!(skills[0].path.ends_with("a/SKILL.md"));
    assert_eq!(warnings, ["b/SKILL.md: ignored, a/SKILL.md is the skill same already"]);
}

#[test]
fn only_true_hides_a_skill_from_the_model() {
    for (value, hidden) in
        [("true", true), ("True", true), ("yes", false), ("\"true\"", false), ("false", false)]
    {
        let text = format!("---\nname: a\ndescription: d\ndisable-model-invocation: {value}\n---\n");
        let (skills, _) = Folder::new(&[("a/SKILL.md", &text)]).load(&["a/SKILL.md"]);
        assert_eq!(skills[0].disable_model_invocation, hidden, "{value}");
        assert_eq!(skills_section(&skills, |_| true).is_none(), hidden, "{value}");
        assert_eq!(skills[0].command().name, "skill:a");
    }
}

#[test]
fn the_section_escapes_what_it_lists_and_needs_a_tool_that_can_read() {
    let text = "---\nname: x\ndescription: a < b & \"c\" > 'd'\n---\n";
    let (skills, _) = Folder::new(&[("x/SKILL.md", text)]).load(&["x/SKILL.md"]);
    let section = skills_section(&skills, |_| true).unwrap();
    assert_eq!(section.name, "skills");
    let listed = format!(
        "<available_skills>\n  <skill>\n    <name>x</name>\n    <description>a &lt; b &amp; &quot;c&quot; &gt; &apos;d&apos;</description>\n    \
         <location>{}</location>\n  </skill>\n</available_skills>",
        skills[0].path.display()
    );
    assert!(section.text.contains("with read") && section.text.ends_with(&listed), "{}", section.text);
    assert!(skills_section(&skills, |tool| tool == "bash").unwrap().text.contains("with bash"));
    assert_eq!(skills_section(&skills, |tool| tool == "edit"), None);
    assert_eq!(skills_section(&[], |_| true), None);
}

#[test]
fn a_skill_command_ends_at_the_first_space_and_the_rest_is_the_users_request() {
    let folder = Folder::new(&[
        ("a/SKILL.md", "---\r\nname: a\r\ndescription: d\r\n---\r\n\r\n\r\n# A $1\r\n  body\r\n\r\n"),
        ("empty/SKILL.md", "---\nname: empty\ndescription: d\ndisable-model-invocation: true\n---\n"),
    ]);
    let (skills, _) = folder.load(&["a/SKILL.md", "empty/SKILL.md"]);
    let root = folder.dir.path().display();
    let of_a = format!(
        "<skill name=\"a\" location=\"{root}/a/SKILL.md\">\nReferences are relative to {root}/a.\n\n# A $1\n  body\n</skill>"
    );
    let of_empty = format!(
        "<skill name=\"empty\" location=\"{root}/empty/SKILL.md\">\nReferences are relative to {root}/empty.\n\n\n</skill>\n\nz"
    );
    for (text, expected) in [
        ("/skill:a", Some(of_a.clone())),
        ("/skill:a  x  y ", Some(format!("{of_a}\n\nx  y"))),
        ("/skill:empty z", Some(of_empty)),
        ("/skill:a\nx", None),
        ("/skill:A", None),
        ("/skill: a", None),
        ("/skill:none q", None),
        (" /skill:a", None),
        ("/a", None),
    ] {
        assert_eq!(expand(text, &skills).unwrap(), expected, "{text:?}");
    }
}

#[test]
fn a_skill_is_read_anew_each_time_and_one_that_is_gone_is_an_error() {
    let folder = Folder::new(&[("a/SKILL.md", "---\nname: a\ndescription: d\n---\nold")]);
    let (skills, _) = folder.load(&["a/SKILL.md"]);
    fs::write(&skills[0].path, "---\nname: a\ndescription: d\n---\nnew").unwrap();
    assert!(expand("/skill:a", &skills).unwrap().unwrap().contains("\n\nnew\n"));
    fs::remove_file(&skills[0].path).unwrap();
    let error = expand("/skill:a", &skills).unwrap_err();
    assert!(error.path.ends_with("a/SKILL.md") && error.to_string().contains("cannot be read"), "{error}");
}
