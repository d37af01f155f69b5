//! Records in and out: lines, bytes, limits.

use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::Daemon;
use serde_json::json;

#[tokio::test]
async fn a_line_that_is_not_json_gets_one_parse_error_and_the_daemon_lives_on() {
    let llm = FakeLlm::start().await;
    llm.push(text("Hello."));
    let daemon = Daemon::builder(&llm).spawn().await;
    daemon.send_raw(b"ls\n").await;
    let response = daemon.wait_for(json!({ "type": "response", "command": "parse", "success": false })).await;
    assert!(response["error"].as_str().unwrap().starts_with("Failed to parse command: "), "{response}");
    assert!(response.get("id").is_none());
    daemon.run("hi").await;
    daemon.finish().await;
    llm.finish();
}
