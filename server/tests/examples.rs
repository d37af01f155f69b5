//! Every example is run, and what it prints is what it should.

// Of an example the tests call `show`; its `main` is for `cargo run`.
#![allow(dead_code, missing_docs, unreachable_pub)]

#[path = "../examples/api_keys.rs"]
mod api_keys;
#[path = "../examples/context_files.rs"]
mod context_files;
#[path = "../examples/full_control.rs"]
mod full_control;
#[path = "../examples/minimal.rs"]
mod minimal;
#[path = "../examples/model.rs"]
mod model;
#[path = "../examples/prompt_templates.rs"]
mod prompt_templates;
#[path = "../examples/session_runtime.rs"]
mod session_runtime;
#[path = "../examples/sessions.rs"]
mod sessions;
#[path = "../examples/settings.rs"]
mod settings;
#[path = "../examples/skills.rs"]
mod skills;
#[path = "../examples/system_prompt.rs"]
mod system_prompt;
#[path = "../examples/tools.rs"]
mod tools;

/// What an example prints.
macro_rules! printed {
    ($example:ident) => {{
        let mut out = Vec::new();
        $example::show(&mut out).await.unwrap();
        String::from_utf8(out).unwrap()
    }};
}

#[tokio::test]
async fn minimal_streams_the_answer_and_names_the_tool() {
    let out = printed!(minimal);
    assert!(out.contains("I am the demo model of Sampi") && out.contains("\n> bash\n"), "{out}");
    assert!(out.contains("Done. The tool `bash` gave back") && out.ends_with("[5 messages]\n"), "{out}");
}

#[tokio::test]
async fn model_thinks_as_told_and_the_level_is_clamped() {
    let out = printed!(model);
    assert!(out.starts_with("demo/demo-thinking thinks: high\nthinking: The user wants"), "{out}");
    assert!(out.ends_with("demo/demo thinks: off\n"), "{out}");
}

#[tokio::test]
async fn system_prompt_is_replaced_and_appended_to() {
    assert_eq!(printed!(system_prompt), "replaced: You are a pirate. Answer as one.\nappended: true\n");
}

#[tokio::test]
async fn skills_are_found_filtered_and_added() {
    let out = printed!(skills);
    assert!(out.contains("/skill:release: How to release.\n/skill:review: How to review.\n"), "{out}");
    assert!(!out.contains("secret") && out.ends_with("the model reads: true\n"), "{out}");
}

#[tokio::test]
async fn tools_are_allowed_denied_and_the_hosts_own_is_called() {
    let expected =
        "allowed: read grep find ls\nwithout bash: read edit write\nown: dice\ndice gave back: 6\nThere.\n";
    assert_eq!(printed!(tools), expected);
}

#[tokio::test]
async fn context_files_are_found_added_and_replaced() {
    let expected = "found: Use tabs.\nadded: Use tabs. Write tests first.\nreplaced: Write tests first.\n";
    assert_eq!(printed!(context_files), expected);
}

#[tokio::test]
async fn prompt_templates_stand_for_their_text() {
    let out = printed!(prompt_templates);
    assert!(out.contains("/explain: Explains something\n"), "{out}");
    assert!(out.ends_with("the model reads: Explain lifetimes to somebody who knows C and Go.\n"), "{out}");
}

#[tokio::test]
async fn api_keys_of_the_host_count_and_models_can_come_from_memory() {
    let expected = "with a key of the host: anthropic is offered\nin memory: mine/qwen3:4b at http://127.0.0.1:11434/v1\nfiles: 0\n";
    assert_eq!(printed!(api_keys), expected);
}

#[tokio::test]
async fn settings_come_from_files_overrides_and_memory() {
    let expected = "files: steering All, compaction on\noverridden: steering All, compaction off\n\
                    in memory: steering OneAtATime, compaction on\nin memory: written false\nfiles: written true\n";
    assert_eq!(printed!(settings), expected);
}

#[tokio::test]
async fn sessions_are_kept_continued_listed_opened_and_forked() {
    let expected = "in memory: None\nnew: a file true\ncontinued: first steps with 3 messages\nlisted: Hello\n\
                    opened: true\nforked: true\n";
    assert_eq!(printed!(sessions), expected);
}

#[tokio::test]
async fn full_control_reads_and_writes_no_file() {
    let expected =
        "You are a minimal assistant. Be concise.\ntools: read bash\nok: true\nwarnings: 0\nfiles: 0\n";
    assert_eq!(printed!(full_control), expected);
}

#[tokio::test]
async fn session_runtime_replaces_the_session() {
    let expected = "the old session: the session is disposed\nits subscription ended: true\nnew: 0 messages\n\
                    switched: the same file true\nforked before: And again\nimported: a copy true\nrefused: true\n\
                    still: true\n";
    assert_eq!(printed!(session_runtime), expected);
}

#[test]
fn every_example_has_a_test() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let own = include_str!("examples.rs");
    for entry in folder.read_dir().unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let name = name.trim_end_matches(".rs");
        assert!(own.contains(&format!("printed!({name})")), "{name} is not run");
    }
}
