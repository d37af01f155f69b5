//! `sampi auth`, and the credentials that it saves.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr};
use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::{Daemon, DaemonCommand, Workspace};
use serde_json::{Value, json};

fn auth(workspace: &Workspace, args: &[&str]) -> Command {
    let daemon = DaemonCommand::of_this_run();
    let mut command = Command::new(daemon.program);
    command
        .args(daemon.args)
        .arg("auth")
        .args(args)
        .current_dir(workspace.cwd())
        .env_clear()
        .env("HOME", workspace.root())
        .env("PI_CODING_AGENT_DIR", workspace.agent_dir());
    command
}

fn run(workspace: &Workspace, args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = auth(workspace, args).stdin(Stdio::null()).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

fn saved(workspace: &Workspace) -> Value {
    serde_json::from_str(&fs::read_to_string(workspace.agent_dir().join("auth.json")).unwrap()).unwrap()
}

struct Typed {
    code: Option<i32>,
    screen: String,
    /// True when the terminal edits and shows lines again.
    is_restored: bool,
}

/// Runs `auth` at a terminal and types each text once its prompt is there.
fn at_terminal(workspace: &Workspace, args: &[&str], steps: &[(&str, &str)]) -> Typed {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let name = ptsname(&controller, Vec::new()).unwrap();
    let open =
        || -> OwnedFd { File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap().into() };
    let kept = open();
    let mut child = auth(workspace, args).stdin(open()).stdout(open()).stderr(open()).spawn().unwrap();
    let mut controller = File::from(controller);
    let mut screen = Vec::new();
    let mut seen = 0;
    for (prompt, answer) in steps {
        while !String::from_utf8_lossy(&screen[seen..]).contains(prompt) {
            let mut bytes = [0; 1024];
            let count = controller.read(&mut bytes).unwrap();
            screen.extend_from_slice(&bytes[..count]);
        }
        seen = screen.len();
        controller.write_all(answer.as_bytes()).unwrap();
    }
    let code = child.wait().unwrap().code();
    let modes = tcgetattr(&kept).unwrap().local_modes;
    drop(kept);
    // All that was written is there; the end is an error on Linux, as nobody has the terminal open any more.
    controller.read_to_end(&mut screen).ok();
    let is_restored = modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
    Typed { code, screen: String::from_utf8(screen).unwrap(), is_restored }
}

#[test]
fn a_key_is_typed_in_without_being_shown_and_the_terminal_is_given_back_as_it_was() {
    let workspace = Workspace::new();
    let typed = at_terminal(&workspace, &["login", "groq"], &[("not shown", "gsk-s3crex\x7ft\r")]);
    assert_eq!((typed.code, typed.is_restored), (Some(0), true), "{}", typed.screen);
    assert!(typed.screen.contains("Saved the API key for Groq") && !typed.screen.contains("s3cre"));
    assert_eq!(saved(&workspace), json!({ "groq": { "type": "api_key", "key": "gsk-s3cret" } }));
    let mode = fs::metadata(workspace.agent_dir().join("auth.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let typed = at_terminal(&workspace, &["login", "groq"], &[("not shown", "other\x03")]);
    assert_eq!((typed.code, typed.is_restored), (Some(1), true), "{}", typed.screen);
    assert!(typed.screen.contains("the login was cancelled; nothing was saved"), "{}", typed.screen);
    assert_eq!(saved(&workspace)["groq"]["key"], "gsk-s3cret");
}

#[test]
fn a_sign_in_waits_for_the_browser_and_for_what_is_pasted() {
    let workspace = Workspace::new();
    let steps = [("Address or code: ", "two words\r"), ("Address or code: ", "\x03")];
    let typed = at_terminal(&workspace, &["login", "openrouter", "--no-browser"], &steps);
    assert_eq!((typed.code, typed.is_restored), (Some(1), true), "{}", typed.screen);
    let screen = &typed.screen;
    assert!(screen.contains("https://openrouter.ai/auth?callback_url=http%3A%2F%2F127.0.0.1%3A"), "{screen}");
    assert!(screen.contains("two words") && screen.contains("expected the code, or the address"), "{screen}");
    assert!(!workspace.agent_dir().join("auth.json").exists());
}

#[test]
fn results_go_to_stdout_complaints_to_stderr_and_exit_codes_are_pis() {
    let workspace = Workspace::new();
    let key = json!({ "groq": { "type": "api_key", "key": "gsk" } });
    fs::write(workspace.agent_dir().join("auth.json"), key.to_string()).unwrap();
    let json = "{\"status\":\"ready\",\"provider\":\"groq\",\"authType\":\"api_key\"}\n";
    for (args, code, stdout, stderr) in [
        (&["check", "--provider", "groq", "--json"][..], 0, json, ""),
        (&["check", "--provider", "cerebras"], 1, "not_ready\n", ""),
        (&["check", "--model", "zork"], 2, "invalid\n", ""),
        (&["check"], 2, "", "Error: auth check requires --provider <provider> or --model <model>\n"),
        (&["print-api-key", "--provider", "groq"], 0, "gsk\n", ""),
        (&["login"], 1, "", "Error: Usage: sampi auth login <provider> [--api-key] [--no-browser]\n"),
    ] {
        let expected = (Some(code), stdout.to_owned(), stderr.to_owned());
        assert_eq!(run(&workspace, args), expected, "{args:?}");
    }
    let (code, stdout, stderr) = run(&workspace, &["login", "groq"]);
    assert!((code, stdout.as_str()) == (Some(1), "") && stderr.contains("needs a terminal"), "{stderr}");
    assert_eq!(run(&workspace, &["logout", "groq"]).0, Some(0));
    assert_eq!(saved(&workspace), json!({}));
}

#[tokio::test]
async fn a_saved_sign_in_authorises_requests_until_it_expires() {
    let llm = FakeLlm::start().await;
    let sign_in = |expires: i64| {
        let entry = json!({ "type": "oauth", "access": "acc-s3cret", "refresh": "r", "expires": expires });
        json!({ "mock": entry }).to_string()
    };
    llm.push(text("Hello."));
    let daemon = Daemon::builder(&llm).agent_file("auth.json", &sign_in(9_999_999_999_999)).spawn().await;
    daemon.run("hi").await;
    assert_eq!(llm.requests()[0].header("authorization"), Some("Bearer acc-s3cret"));
    daemon.finish().await;

    let daemon = Daemon::builder(&llm).agent_file("auth.json", &sign_in(1)).spawn().await;
    let refused = daemon.refused(json!({ "type": "prompt", "message": "hi" })).await;
    refused.assert_code("no_model").assert_says("No API key found for mock.");
    refused.assert_says("the sign-in saved in auth.json expired at 1970-01-01T00:00:00.001Z");
    daemon.finish().await;
    llm.finish();
}
