//! Damaged session files, one of each kind under `tests/fixtures/sessions`, and files that are damaged
//! while they are open.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use sampi_tests::fake_llm::{FakeLlm, text};
use sampi_tests::harness::{Daemon, Workspace};
use serde_json::{Value, json};

use crate::session_files::{
    as_lines, entries, entry_ids, lines_of, reopen, session_file, texts_of, with_session_file, written_by_pi,
};

/// One damaged file and what must come of it.
struct Damaged {
    fixture: &'static str,
    /// The entries that are reachable, in the order of the file.
    entries: &'static [&'static str],
    /// The user's messages that the model sees.
    seen: &'static [&'static str],
    /// Parts of the notes that the host gets, one for each note.
    told: &'static [&'static str],
}

const ALL: &[&str] = &["m0000001", "t0000001", "u0000001", "a0000001", "u0000002", "a0000002"];
const BOTH: &[&str] = &["earlier", "and then"];

const DAMAGED: &[Damaged] = &[
    Damaged {
        fixture: "torn-last-line",
        entries: &["m0000001", "t0000001", "u0000001", "a0000001", "u0000002"],
        seen: BOTH,
        told: &["cut while being written"],
    },
    Damaged { fixture: "nul-run", entries: ALL, seen: BOTH, told: &["64 NUL bytes", "512 NUL bytes"] },
    Damaged { fixture: "glued-records", entries: ALL, seen: BOTH, told: &["more than one record"] },
    Damaged {
        fixture: "glued-to-a-torn-record",
        entries: &["m0000001", "t0000001", "u0000001", "a0000001", "u0000002"],
        seen: BOTH,
        told: &["no record"],
    },
    Damaged {
        fixture: "lines-that-are-not-json",
        entries: ALL,
        seen: BOTH,
        told: &["15 bytes that are no record", "no record", "no record", "no record"],
    },
    Damaged {
        fixture: "duplicate-ids",
        entries: &["m0000001", "t0000001", "u0000001", "a0000001", "u0000001", "a0000002"],
        seen: &["earlier", "the same id again"],
        told: &["u0000001 was used before"],
    },
    Damaged {
        fixture: "missing-parent",
        entries: ALL,
        seen: &["and then"],
        told: &["u0000002 has a parent that does not exist (gone0000)"],
    },
    Damaged { fixture: "parent-cycle", entries: ALL, seen: BOTH, told: &["u0000001 is its own ancestor"] },
    Damaged { fixture: "unanswered-tool-calls", entries: ALL, seen: BOTH, told: &[] },
    Damaged {
        fixture: "label-on-a-missing-entry",
        entries: &["m0000001", "t0000001", "u0000001", "a0000001", "l0000001", "u0000002", "a0000002"],
        seen: BOTH,
        told: &[],
    },
    // The entries of version 1 have no ids; they get new ones.
    Damaged { fixture: "version-1", entries: &[], seen: BOTH, told: &[] },
    Damaged {
        fixture: "version-2",
        entries: &["m0000001", "t0000001", "u0000001", "a0000001", "h0000001", "u0000002", "a0000002"],
        seen: &["earlier", "from a hook", "and then"],
        told: &[],
    },
    Damaged { fixture: "crlf-and-bom", entries: ALL, seen: BOTH, told: &[] },
    Damaged {
        fixture: "lone-surrogate",
        entries: ALL,
        seen: &["earlier", "and \u{fffd} then"],
        told: &["half of a surrogate pair"],
    },
    Damaged {
        fixture: "bytes-that-are-not-utf8",
        entries: ALL,
        seen: &["earlier", "and \u{fffd} then"],
        told: &["invalid UTF-8"],
    },
    Damaged { fixture: "second-header", entries: ALL, seen: BOTH, told: &["second session header"] },
];

/// A copy of a fixture in the working directory of a daemon that opens it.
async fn open(llm: &FakeLlm, fixture: &str) -> (Daemon, PathBuf, Vec<u8>) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/sessions").join(format!("{fixture}.jsonl"));
    let content = std::fs::read(path).unwrap();
    let workspace = Workspace::new();
    let cwd = workspace.cwd().to_str().unwrap().to_owned();
    let file = workspace.cwd().join("session.jsonl");
    let at = content.windows(5).position(|part| part == b"@CWD@").expect("the header names @CWD@");
    let content = [&content[..at], cwd.as_bytes(), &content[at + 5..]].concat();
    std::fs::write(&file, &content).unwrap();
    let daemon = reopen(llm, workspace, &file).await;
    (daemon, file, content)
}

/// Says why a test proves nothing here.
#[allow(clippy::print_stderr)]
fn skip(why: &str) {
    eprintln!("skipped: {why}");
}

fn told(daemon: &Daemon) -> Vec<String> {
    let events = daemon.all(json!({ "type": "session_diagnostic" }));
    events.iter().map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn of_every_damaged_file_each_whole_entry_is_reachable_and_the_conversation_goes_on() {
    for Damaged { fixture, entries: expected, seen, told: notes } in DAMAGED {
        let llm = FakeLlm::start().await;
        llm.push_all([text("Still here."), text("Here again.")]);
        let (daemon, file, before) = open(&llm, fixture).await;
        let ids = entry_ids(&daemon).await;
        if *fixture == "version-1" {
            assert_eq!(ids.len(), ALL.len(), "{fixture}");
        } else {
            assert_eq!(ids, *expected, "{fixture}");
        }
        daemon.ok(json!({ "type": "get_tree" })).await;
        assert_eq!(std::fs::read(&file).unwrap(), before, "{fixture}: opening changes nothing");

        daemon.run("now").await;
        let texts = llm.request(0).await.user_texts();
        assert_eq!(texts[..texts.len() - 1], **seen, "{fixture}");
        assert_eq!(texts.last().unwrap(), "now", "{fixture}");
        let found = told(&daemon);
        assert_eq!(found.len(), notes.len(), "{fixture}: each is told once: {found:?}");
        for (found, note) in found.iter().zip(*notes) {
            assert!(found.contains(note), "{fixture}: {found:?}");
            let on_stderr = daemon.stderr();
            let lines = on_stderr.lines().filter(|line| line.ends_with(&format!(": {found}")));
            assert_eq!(lines.count(), 1, "{fixture}: {on_stderr}");
        }
        if !fixture.starts_with("version") {
            assert!(std::fs::read(&file).unwrap().starts_with(&before), "{fixture}: what was there stays");
        }

        let all = entries(&daemon, None).await;
        let messages = daemon.messages().await;
        let daemon = reopen(&llm, daemon.finish().await, &file).await;
        assert_eq!(entries(&daemon, None).await, all, "{fixture}: a restart shows everything");
        assert_eq!(daemon.messages().await, messages, "{fixture}");
        daemon.run("and now").await;
        assert_eq!(texts_of(&daemon.messages().await, "user").last().unwrap(), "and now", "{fixture}");
        daemon.finish().await;
        llm.finish();
    }
}

#[tokio::test]
async fn a_migrated_file_leaves_the_original_beside_it() {
    for version in ["1", "2"] {
        let llm = FakeLlm::start().await;
        llm.push(text("Still here."));
        let (daemon, file, before) = open(&llm, &format!("version-{version}")).await;
        daemon.run("now").await;
        let kept = file.with_file_name(format!("session.jsonl.v{version}.bak"));
        assert_eq!(std::fs::read(kept).unwrap(), before);
        assert_eq!(lines_of(&file)[0]["version"], 3);
        daemon.finish().await;
    }
}

/// A daemon on a session with one exchange.
async fn on_a_session(llm: &FakeLlm) -> (Daemon, PathBuf) {
    let (builder, file) = with_session_file(llm, |cwd| as_lines(&written_by_pi(cwd)));
    let daemon = builder.spawn().await;
    daemon.messages().await;
    (daemon, file)
}

#[tokio::test]
async fn a_file_deleted_under_us_is_written_again_and_told() {
    let llm = FakeLlm::start().await;
    llm.push(text("Still here."));
    let (daemon, file) = on_a_session(&llm).await;
    std::fs::remove_file(&file).unwrap();
    daemon.run("now").await;
    assert_eq!(told(&daemon).len(), 1);
    assert!(told(&daemon)[0].contains("deleted"), "{:?}", told(&daemon));
    let messages = daemon.messages().await;
    assert_eq!(texts_of(&messages, "user"), ["earlier", "now"]);
    let daemon = reopen(&llm, daemon.finish().await, &file).await;
    assert_eq!(daemon.messages().await, messages);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_file_cut_under_us_gets_back_what_memory_holds_and_it_is_told() {
    for lines in [0, 1, 4] {
        let llm = FakeLlm::start().await;
        llm.push(text("Still here."));
        let (daemon, file) = on_a_session(&llm).await;
        let content = std::fs::read_to_string(&file).unwrap();
        let length: usize = content.lines().take(lines).map(|line| line.len() + 1).sum();
        std::fs::File::options().write(true).open(&file).unwrap().set_len(length as u64 + 20).unwrap();
        daemon.run("now").await;
        assert!(told(&daemon).iter().any(|note| note.contains("cut")), "{:?}", told(&daemon));
        assert_eq!(texts_of(&daemon.messages().await, "user"), ["earlier", "now"]);
        let file = session_file(&daemon).await;
        let daemon = reopen(&llm, daemon.finish().await, &file).await;
        assert_eq!(texts_of(&daemon.messages().await, "user"), ["earlier", "now"], "cut after {lines} lines");
        assert_eq!(texts_of(&daemon.messages().await, "assistant"), ["Yes.", "Still here."]);
        daemon.finish().await;
        llm.finish();
    }
}

#[tokio::test]
async fn what_another_program_appends_is_kept_and_told() {
    let llm = FakeLlm::start().await;
    llm.push(text("Still here."));
    let (daemon, file) = on_a_session(&llm).await;
    let mut theirs = written_by_pi(Path::new("/"))[3].clone();
    (theirs["id"], theirs["parentId"]) = (json!("bbbbbbb1"), json!("aaaaaaa4"));
    writeln!(std::fs::File::options().append(true).open(&file).unwrap(), "{theirs}").unwrap();
    daemon.run("now").await;
    assert_eq!(told(&daemon).len(), 1);
    assert!(entry_ids(&daemon).await.contains(&"bbbbbbb1".to_owned()));
    let all = entries(&daemon, None).await;
    let daemon = reopen(&llm, daemon.finish().await, &file).await;
    assert_eq!(entries(&daemon, None).await, all);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_refuses_the_prompt_and_the_next_one_works() {
    let llm = FakeLlm::start().await;
    let builder = Daemon::builder(&llm);
    // A file stands where the folder of the sessions would be. Permissions would not stop root.
    let obstacle = builder.workspace().agent_dir().join("sessions");
    std::fs::write(&obstacle, "").unwrap();
    let daemon = builder.spawn().await;
    let refused = daemon.refused(json!({ "type": "prompt", "message": "lost?" })).await;
    refused.assert_code("io").assert_says("sessions");
    assert!(daemon.all(json!({ "type": "agent_start" })).is_empty());
    assert_eq!(texts_of(&daemon.messages().await, "user"), [""; 0]);
    std::fs::remove_file(&obstacle).unwrap();
    llm.push(text("ok"));
    daemon.run("now").await;
    assert_eq!(llm.request(0).await.user_texts(), ["now"]);
    let lines = lines_of(&session_file(&daemon).await);
    assert_eq!(lines.last().unwrap()["message"]["role"], "assistant");
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_folder_that_may_not_be_written_refuses_the_prompt_and_the_next_one_works() {
    use std::os::unix::fs::PermissionsExt as _;
    let llm = FakeLlm::start().await;
    let builder = Daemon::builder(&llm);
    let folder = builder.workspace().agent_dir().join("sessions");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        skip("this user may write to a read-only folder");
        return;
    }
    let daemon = builder.spawn().await;
    daemon.refused(json!({ "type": "prompt", "message": "lost?" })).await.assert_code("io");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    llm.push(text("ok"));
    daemon.run("now").await;
    daemon.finish().await;
    llm.finish();
}

/// A small file system that is unmounted when it is dropped; `None` where that is not allowed.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Option<Self> {
        std::fs::create_dir_all(&at).unwrap();
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(&at);
        let mounted = mount.stderr(std::process::Stdio::null()).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(at))
    }

    /// Leaves this many bytes free, at the precision of the file system.
    fn fill(&self) {
        let mut filler = std::fs::File::create(self.0.join("filler")).unwrap();
        while filler.write_all(&[b'x'; 512]).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.0.join("filler")).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()), "{} stays mounted", self.0.display());
    }
}

/// Session file and daemon on a small disk, with one exchange.
async fn on_a_small_disk(llm: &FakeLlm) -> Option<(Daemon, SmallDisk, PathBuf)> {
    let workspace = Workspace::new();
    let Some(disk) = SmallDisk::mount(workspace.root().join("small")) else {
        skip("this user may not mount a file system");
        return None;
    };
    let file = disk.0.join("session.jsonl");
    std::fs::write(&file, as_lines(&written_by_pi(&workspace.cwd()))).unwrap();
    let daemon = reopen(llm, workspace, &file).await;
    llm.push(text("One."));
    daemon.run("first").await;
    Some((daemon, disk, file))
}

fn users_in(file: &Path) -> Vec<String> {
    let content = String::from_utf8_lossy(&std::fs::read(file).unwrap()).into_owned();
    let lines = content.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let messages: Vec<Value> = lines.map(|line| line["message"].clone()).collect();
    texts_of(&messages, "user")
}

#[tokio::test]
async fn on_a_full_disk_a_prompt_is_refused_and_with_room_again_the_next_one_works() {
    let llm = FakeLlm::start().await;
    let Some((daemon, disk, file)) = on_a_small_disk(&llm).await else { return };
    disk.fill();
    // Longer than what is left of the last block.
    let long = "x".repeat(8192);
    let refused = daemon.refused(json!({ "type": "prompt", "message": long })).await;
    refused.assert_code("io").assert_says("No space left");
    assert_eq!(texts_of(&daemon.messages().await, "user"), ["earlier", "first"]);
    disk.empty();
    llm.push(text("Two."));
    daemon.run("second").await;
    assert_eq!(llm.request(1).await.user_texts(), ["earlier", "first", "second"]);
    assert_eq!(users_in(&file), ["earlier", "first", "second"]);
    let messages = daemon.messages().await;
    let daemon = reopen(&llm, daemon.finish().await, &file).await;
    assert_eq!(daemon.messages().await, messages);
    daemon.finish().await;
    llm.finish();
}

#[tokio::test]
async fn a_disk_that_fills_up_during_a_run_ends_it_with_an_error_that_the_host_hears() {
    let llm = FakeLlm::start().await;
    let Some((daemon, disk, file)) = on_a_small_disk(&llm).await else { return };
    let gate = sampi_tests::fake_llm::Gate::new();
    llm.push(text("begun").wait(&gate).text(&"x".repeat(8192)));
    daemon.prompt("second").await;
    gate.reached().await;
    daemon.ok(json!({ "type": "steer", "message": "queued" })).await;
    disk.fill();
    gate.open();
    daemon.settled().await;
    let end = &daemon.all(json!({ "type": "message_end", "message": { "role": "assistant" } }))[1];
    assert_eq!(end["message"]["stopReason"], "error");
    assert!(end["message"]["errorMessage"].as_str().unwrap().contains("No space left"), "{end}");
    assert_eq!(daemon.all(json!({ "type": "agent_settled" })).len(), 2);
    assert!(told(&daemon).iter().any(|note| note.contains("No space left")), "{:?}", told(&daemon));
    assert_eq!(daemon.state().await["pendingMessageCount"], 1, "what is queued is not lost");
    disk.empty();
    llm.push_all([text("Three."), text("Four.")]);
    daemon.run("third").await;
    assert_eq!(users_in(&file), ["earlier", "first", "second", "third", "queued"]);
    let messages = daemon.messages().await;
    let daemon = reopen(&llm, daemon.finish().await, &file).await;
    assert_eq!(daemon.messages().await, messages);
    daemon.finish().await;
}
