use std::fs;
use std::os::unix::fs::symlink;

use super::*;

struct Home {
    dir: tempfile::TempDir,
}

impl Home {
    fn new(files: &[&str]) -> Self {
        let home = Self { dir: tempfile::tempdir().unwrap() };
        files.iter().for_each(|file| home.write(file, ""));
        fs::create_dir_all(home.path("g/w")).unwrap();
        home
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, file: &str, text: &str) {
        fs::create_dir_all(self.path(file).parent().unwrap()).unwrap();
        fs::write(self.path(file), text).unwrap();
    }

    fn find(&self, kind: ResourceKind, sources: ResourceSources<'_>) -> (Vec<String>, Vec<String>) {
        let environment = Environment::new(self.path(""), [("", ""); 0]);
        let paths = Paths::new(&environment, self.path("g/w"));
        let mut warnings = Vec::new();
        let root = text(&self.path(""));
        let found = find(kind, &sources, &environment, &paths, &mut warnings);
        let short = |path: &str| path.replace(&root, "");
        let lines = found.iter().map(|found| {
            let info = &found.source_info;
            let base = info.base_dir.as_deref().map(short).unwrap_or_else(|| "-".to_owned());
            let loose = if found.declared { "" } else { " loose" };
            format!("{} {} {} {base}{loose}", short(&info.path), info.source, info.scope)
        });
        (lines.collect(), warnings.iter().map(|warning| short(warning)).collect())
    }
}

const TRUSTED: ResourceSources<'_> =
    ResourceSources { command_line: &[], user: &[], project: &[], discover: true, project_trusted: true };

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn skills_of_the_project_come_first_then_the_users_then_those_of_the_command_line() {
    let home = Home::new(&[
        ".pi/agent/skills/a/SKILL.md",
        ".pi/agent/skills/loose.md",
        ".pi/agent/urel/u/SKILL.md",
        ".agents/skills/ag/SKILL.md",
        ".agents/skills/agloose.md",
        "g/.agents/skills/up/SKILL.md",
        "g/w/.agents/skills/pa/SKILL.md",
        "g/w/.agents/skills/paloose.md",
        "g/w/.pi/skills/pj/SKILL.md",
        "g/w/.pi/rel/r/SKILL.md",
        "g/w/extra/e/SKILL.md",
        "g/w/one/SKILL.md",
        "g/w/single.md",
    ]);
    let (user, project) = (owned(&["urel"]), owned(&["rel"]));
    let command_line = owned(&["extra", "./one", "~/g/w/single.md", "nosuch"]);
    let sources = ResourceSources { command_line: &command_line, user: &user, project: &project, ..TRUSTED };
    let of_project = [
        "g/w/.pi/rel/r/SKILL.md local project -",
        "g/w/.pi/skills/pj/SKILL.md auto project g/w/.pi",
        "g/w/.agents/skills/pa/SKILL.md auto project g/w/.agents",
        "g/.agents/skills/up/SKILL.md auto project g/.agents",
    ];
    let of_user = [
        ".pi/agent/urel/u/SKILL.md local user -",
        ".pi/agent/skills/a/SKILL.md auto user .pi/agent",
        ".pi/agent/skills/loose.md auto user .pi/agent loose",
        ".agents/skills/ag/SKILL.md auto user .agents",
    ];
    let of_command_line = [
        "g/w/extra/e/SKILL.md local temporary g/w/extra/e",
        "g/w/one/SKILL.md local temporary g/w/one",
        "g/w/single.md local temporary g/w",
    ];
    let (found, warnings) = home.find(ResourceKind::Skills, sources);
    assert_eq!(found, [&of_project[..], &of_user, &of_command_line].concat());
    assert_eq!(warnings, ["g/w/nosuch: the skill path does not exist"]);
    let (found, _) = home.find(ResourceKind::Skills, ResourceSources { project_trusted: false, ..sources });
    assert_eq!(found, [&of_user[..], &of_command_line].concat());
    let (found, _) = home.find(ResourceKind::Skills, ResourceSources { discover: false, ..sources });
    assert_eq!(found, of_command_line);
}

#[test]
fn folders_of_agents_count_up_to_the_root_of_the_repository_and_never_the_home_directory() {
    let home = Home::new(&[
        ".agents/skills/h/SKILL.md",
        "g/.agents/skills/up/SKILL.md",
        "g/w/.agents/skills/here/SKILL.md",
        "g/w/.git",
    ]);
    let names = |home: &Home| home.find(ResourceKind::Skills, TRUSTED).0;
    assert_eq!(
        names(&home),
        [
            "g/w/.agents/skills/here/SKILL.md auto project g/w/.agents",
            ".agents/skills/h/SKILL.md auto user .agents"
        ]
    );
    fs::rename(home.path("g/w/.git"), home.path("g/.git")).unwrap();
    assert_eq!(names(&home).len(), 3);
}

#[test]
fn a_skill_folder_ends_the_search_in_it_and_hidden_and_ignored_files_are_left_out() {
    let home = Home::new(&[
        ".pi/agent/skills/a/SKILL.md",
        ".pi/agent/skills/a/sub/SKILL.md",
        ".pi/agent/skills/nest/deep/b/SKILL.md",
        ".pi/agent/skills/nest/note.md",
        ".pi/agent/skills/lower/skill.md",
        ".pi/agent/skills/.hid/SKILL.md",
        ".pi/agent/skills/node_modules/n/SKILL.md",
        ".pi/agent/skills/g/SKILL.md",
        ".pi/agent/skills/i/SKILL.md",
        ".pi/agent/skills/f/SKILL.md",
        ".pi/agent/skills/n/m/SKILL.md",
        ".pi/agent/skills/n/k/SKILL.md",
    ]);
    home.write(".pi/agent/.gitignore", "skills\n");
    home.write(".pi/agent/skills/.gitignore", "g\nk\n");
    home.write(".pi/agent/skills/.ignore", "i\n");
    home.write(".pi/agent/skills/.fdignore", "f/\n");
    home.write(".pi/agent/skills/n/.gitignore", "m/SKILL.md\n!k\n");
    let (found, warnings) = home.find(ResourceKind::Skills, TRUSTED);
    let names = ["a/SKILL.md", "n/k/SKILL.md", "nest/deep/b/SKILL.md"];
    assert_eq!(found, names.map(|name| format!(".pi/agent/skills/{name} auto user .pi/agent")));
    assert!(warnings.is_empty(), "{warnings:?}");
    home.write(".pi/agent/skills/SKILL.md", "");
    let (found, _) = home.find(ResourceKind::Skills, TRUSTED);
    assert_eq!(found, [".pi/agent/skills/SKILL.md auto user .pi/agent"]);
}

#[test]
fn links_are_followed_once_and_never_in_circles() {
    let home = Home::new(&["real/ls/SKILL.md", ".pi/agent/skills/q/SKILL.md"]);
    let skills = home.path(".pi/agent/skills");
    symlink(home.path("real/ls"), skills.join("ls")).unwrap();
    symlink(home.path("real/ls"), skills.join("ls2")).unwrap();
    symlink(&skills, skills.join("loop")).unwrap();
    symlink(home.path(""), skills.join("above")).unwrap();
    symlink("/nonexistent", skills.join("dangling")).unwrap();
    let (found, warnings) = home.find(ResourceKind::Skills, TRUSTED);
    assert_eq!(
        found,
        [
            ".pi/agent/skills/ls/SKILL.md auto user .pi/agent",
            ".pi/agent/skills/q/SKILL.md auto user .pi/agent"
        ]
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[test]
fn templates_lie_directly_in_their_folder_and_anywhere_below_a_listed_one() {
    let home = Home::new(&[
        ".pi/agent/prompts/a.md",
        ".pi/agent/prompts/UP.MD",
        ".pi/agent/prompts/x.txt",
        ".pi/agent/prompts/.hid.md",
        ".pi/agent/prompts/sub/deep.md",
        ".pi/agent/ex/n/deep.md",
        ".pi/agent/ex/s.md",
        ".pi/agent/ex/z.md",
        "g/w/.pi/prompts/p.md",
        "g/w/cli/.h.md",
        "g/w/cli/c.md",
        "g/w/cli/n/d.md",
        "g/w/x.txt",
    ]);
    let user = owned(&["ex", "ex/s.md", "!z.md", "prompts/sub/deep.md"]);
    let command_line = owned(&["cli", "cli/c.md", "x.txt"]);
    let sources = ResourceSources { command_line: &command_line, user: &user, ..TRUSTED };
    let (found, warnings) = home.find(ResourceKind::Templates, sources);
    assert_eq!(
        found,
        [
            "g/w/.pi/prompts/p.md auto project g/w/.pi loose",
            ".pi/agent/ex/n/deep.md local user - loose",
            ".pi/agent/ex/s.md local user - loose",
            ".pi/agent/prompts/sub/deep.md local user -",
            ".pi/agent/prompts/a.md auto user .pi/agent loose",
            "g/w/cli/.h.md local temporary g/w/cli loose",
            "g/w/cli/c.md local temporary g/w/cli loose",
        ]
    );
    assert_eq!(warnings, ["g/w/x.txt: not a prompt template, its name does not end in .md"]);
}
