use std::path::Path;

use super::*;
use crate::resources::Environment;

fn sources(cwd: &Path, messages: &[&str], files: &[&str]) -> PromptSources {
    PromptSources {
        messages: messages.iter().map(|&text| text.to_owned()).collect(),
        files: files.iter().map(|&file| file.to_owned()).collect(),
        cwd: cwd.to_owned(),
        environment: Environment::new(cwd, Vec::<(String, String)>::new()),
    }
}

async fn texts(sources: PromptSources, piped: &str) -> Result<Vec<String>, String> {
    match read_prompts(sources, Some(piped.as_bytes())).await {
        Ok(prompts) => Ok(prompts.into_iter().map(|prompt| prompt.text).collect()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn piped_text_and_files_go_before_the_first_message() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    std::fs::create_dir(cwd.join("sub")).unwrap();
    std::fs::write(cwd.join("a.txt"), "\u{feff}one\r\ntwo").unwrap();
    std::fs::write(cwd.join("empty.txt"), "").unwrap();
    std::fs::write(cwd.join("b.bin"), b"\xff\0x").unwrap();
    std::fs::write(cwd.join("p.png"), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR").unwrap();
    let files = ["sub/../a.txt", "./empty.txt", "~/b.bin", "p.png"];
    let prompts =
        read_prompts(sources(&cwd, &["look", "", "next"], &files), Some(&b" piped \n"[..])).await.unwrap();
    let here = cwd.display();
    assert_eq!(
        prompts[0].text,
        format!(
            "piped<file name=\"{here}/a.txt\">\none\r\ntwo\n</file>\n<file name=\"{here}/b.bin\">\n\u{fffd}\0x\n</file>\n\
             <file name=\"{here}/p.png\"></file>\nlook"
        )
    );
    assert_eq!(prompts[0].images.len(), 1);
    assert_eq!(prompts[0].images[0].mime_type, "image/png");
    assert_eq!(prompts[1].text, "next");
    assert_eq!(prompts.len(), 2);
}

#[tokio::test]
async fn nothing_to_say_is_no_prompt_and_a_file_that_cannot_be_read_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let cwd = folder.path().canonicalize().unwrap();
    assert_eq!(texts(sources(&cwd, &[], &[]), " \n").await.unwrap(), Vec::<String>::new());
    assert_eq!(texts(sources(&cwd, &["  "], &[]), "").await.unwrap(), ["  "]);
    let error = texts(sources(&cwd, &["x"], &["nope.txt"]), "").await.unwrap_err();
    assert_eq!(error, format!("File not found: {}/nope.txt", cwd.display()));
    let error = texts(sources(&cwd, &["x"], &["."]), "").await.unwrap_err();
    assert!(error.starts_with(&format!("cannot read {}: ", cwd.display())), "{error}");
}

#[test]
fn only_an_answer_that_failed_or_was_cut_is_complained_of() {
    let answer = |stop_reason, error: Option<&str>| {
        complaint(&AssistantMessage {
            stop_reason,
            error_message: error.map(str::to_owned),
            ..AssistantMessage::default()
        })
    };
    assert_eq!(answer(StopReason::Stop, None), None);
    assert_eq!(answer(StopReason::ToolUse, Some("x")), None);
    assert_eq!(answer(StopReason::Error, Some("401 no")).as_deref(), Some("401 no"));
    assert!(answer(StopReason::Error, Some("")).is_some());
    assert!(answer(StopReason::Aborted, None).is_some());
    assert!(answer(StopReason::Length, None).is_some_and(|text| text.starts_with("Warning: ")));
}
