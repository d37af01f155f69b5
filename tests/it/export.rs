//! The session as an HTML file.

use std::path::Path;

use sampi_tests::fake_llm::{FakeLlm, Reply, text, tool_call};
use sampi_tests::harness::{Daemon, text_of_content, within_timeout};
use serde_json::{Value, json};

async fn export(daemon: &Daemon, output: Option<&str>) -> String {
    let mut command = json!({ "type": "export_html" });
    if let Some(output) = output {
        command["outputPath"] = json!(output);
    }
    let data = daemon.ok(command).await;
    data["path"].as_str().expect("the path of the page").to_owned()
}

#[tokio::test]
async fn a_conversation_is_written_where_the_host_says_or_beside_it_under_the_name_of_the_session_file() {
    let llm = FakeLlm::start().await;
    llm.push(text("The **answer**."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("the question").await;
    let state = daemon.state().await;
    let file = Path::new(state["sessionFile"].as_str().unwrap()).file_stem().unwrap();
    let (cwd, home) = (daemon.workspace().cwd(), daemon.workspace().root());
    let default = format!("pi-session-{}.html", file.to_str().unwrap());
    let elsewhere = home.join("elsewhere.html");
    for (output, path, real) in [
        (None, default.as_str(), cwd.join(&default)),
        (Some(""), default.as_str(), cwd.join(&default)),
        (Some("page.html"), "page.html", cwd.join("page.html")),
        (Some(elsewhere.to_str().unwrap()), elsewhere.to_str().unwrap(), elsewhere.clone()),
        (Some("~/of home.html"), home.join("of home.html").to_str().unwrap(), home.join("of home.html")),
    ] {
        assert_eq!(export(&daemon, output).await, path);
        let page = std::fs::read_to_string(&real).unwrap();
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
        assert!(page.contains("the question") && page.contains("<strong>answer</strong>"), "{page}");
    }
    daemon.finish().await;
    llm.finish();
}

// case 11
#[tokio::test]
async fn a_session_without_a_file_cannot_be_exported_and_the_failure_has_the_id() {
    let llm = FakeLlm::start().await;
    let daemon = Daemon::builder(&llm).spawn().await;
    let failure = daemon.refused(json!({ "type": "export_html", "id": "mine" })).await;
    assert_eq!(failure.error, "Nothing to export yet - start a conversation first");
    failure.assert_code("not_found");
    assert_eq!(failure.response["id"], "mine");
    daemon.finish().await;
    llm.push(text("Yes."));
    let daemon = Daemon::builder(&llm).args(["--no-session"]).spawn().await;
    daemon.run("kept in memory").await;
    let failure = daemon.refused(json!({ "type": "export_html" })).await;
    assert_eq!(failure.error, "Cannot export in-memory session to HTML");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_page_that_cannot_be_written_is_a_failure_and_the_session_goes_on() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("One."), text("Two.")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("first").await;
    let failure = daemon.refused(json!({ "type": "export_html", "outputPath": "no/such/folder.html" })).await;
    failure.assert_code("io").assert_says("cannot write no/such/folder.html: ");
    assert!(!failure.error.contains(".export-"), "{}", failure.error);
    let file = daemon.state().await["sessionFile"].clone();
    let failure = daemon.refused(json!({ "type": "export_html", "outputPath": file })).await;
    failure.assert_code("invalid_params").assert_says("session file itself");
    daemon.run("second").await;
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn during_a_run_what_is_kept_so_far_is_written() {
    let llm = FakeLlm::start().await;
    llm.push(Reply::silence());
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.prompt("still running").await;
    let path = export(&daemon, Some("during.html")).await;
    let page = std::fs::read_to_string(daemon.workspace().cwd().join(path)).unwrap();
    assert!(page.contains("still running"), "{page}");
    daemon.ok(json!({ "type": "abort" })).await;
    daemon.finish().await;
}

#[tokio::test]
async fn the_branch_that_the_user_is_at_is_the_one_that_is_shown() {
    let llm = FakeLlm::start().await;
    llm.push_all([text("First answer."), text("Second answer.")]);
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run("first prompt").await;
    daemon.run("second prompt").await;
    let data = daemon.ok(json!({ "type": "get_entries" })).await;
    let entries: &Vec<Value> = data["entries"].as_array().unwrap();
    let place_of = |words: &str| {
        entries.iter().position(|entry| text_of_content(&entry["message"]["content"]) == words).unwrap()
    };
    let target = entries[place_of("First answer.")]["id"].clone();
    daemon.ok(json!({ "type": "navigate_tree", "targetId": target })).await;
    let path = export(&daemon, None).await;
    let page = std::fs::read_to_string(daemon.workspace().cwd().join(path)).unwrap();
    let article =
        |words: &str, class: &str| format!("<article id=\"e{}\" class=\"{class}\">", place_of(words));
    for (words, class) in [
        ("first prompt", "user"),
        ("First answer.", "answer"),
        ("second prompt", "user off"),
        ("Second answer.", "answer off"),
    ] {
        assert!(page.contains(&article(words, class)), "{words} {class} in {page}");
    }
    daemon.finish().await;
    llm.finish();
}

/// Names the browser that is asked to run what must not run.
const BROWSER_VARIABLE: &str = "SAMPI_TEST_BROWSER";

/// The page's elements once a browser has run what it would run.
async fn in_browser(browser: &str, page: &Path) -> String {
    let profile = tempfile::tempdir().unwrap();
    let mut command = tokio::process::Command::new(browser);
    command
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=3000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .process_group(0)
        .kill_on_drop(true);
    let output = within_timeout("the browser", command.output()).await.expect("the browser starts");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[tokio::test]
#[allow(clippy::print_stderr)]
async fn in_a_browser_nothing_of_a_hostile_session_runs() {
    let Ok(browser) = std::env::var(BROWSER_VARIABLE) else {
        eprintln!("skipped: {BROWSER_VARIABLE} names no browser (such as chromium)");
        return;
    };
    let run = "document.documentElement.dataset.ran=1";
    let hostile = format!(
        "</script></style></title></pre><script>{run}</script><img src=x onerror={run}> \" onmouseover={run} \
         <svg onload={run}></svg> [x](javascript:{run}) <details open ontoggle={run}>"
    );
    let llm = FakeLlm::start().await;
    llm.push(
        tool_call("c1", "bash", json!({ "command": format!("echo '{hostile}'") }))
            .text(&hostile)
            .thinking(&hostile),
    );
    llm.push(text(&format!("```{hostile}\n{hostile}\n```\n\n<div>{hostile}</div>\n")));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.run(&hostile).await;
    daemon.ok(json!({ "type": "set_session_name", "name": hostile })).await;
    let page = daemon.workspace().cwd().join(export(&daemon, Some("hostile.html")).await);
    let control = daemon.workspace().cwd().join("control.html");
    std::fs::write(&control, &hostile).unwrap();
    assert!(in_browser(&browser, &control).await.contains("data-ran=\"1\""), "the browser would run it");
    let elements = in_browser(&browser, &page).await;
    assert!(elements.contains("<article id=\"e"), "{elements}");
    assert!(!elements.contains(" UTC</time>"), "the page's own script runs");
    assert!(!elements.contains("data-ran"), "{elements}");
    daemon.finish().await;
    llm.finish();
}
