//! The invariants of ARCHITECTURE.md that the sources themselves must keep.

use std::collections::HashMap;

use sampi_protocol::commands::Command;
use sampi_protocol::events::SessionEvent;
use sampi_tests::source::{Source, sources_below, workspace_root};

/// A file has at most so many lines of code, unless its top says why not.
const MOST_LINES: usize = 600;

/// Fails with all that was found, one a line.
fn assert_none(what: &str, found: Vec<String>) {
    assert!(found.is_empty(), "{what}:\n{}", found.join("\n"));
}

/// The places where a file uses one of these paths, or what is below it.
fn uses(source: &Source, forbidden: &[&str]) -> Vec<String> {
    let is_forbidden =
        |path: &String| forbidden.iter().any(|name| path == name || path.starts_with(&format!("{name}::")));
    source.paths().into_iter().filter(is_forbidden).map(|path| format!("{}: {path}", source.path)).collect()
}

#[test]
fn the_protocol_does_no_io_and_has_no_clock_and_no_random_source() {
    let forbidden = [
        "tokio",
        "std::fs",
        "std::process",
        "std::env",
        "std::net",
        "std::thread",
        "std::io::stdin",
        "std::io::stdout",
        "std::time::Instant",
        "std::time::SystemTime",
        "SystemTime",
        "Instant",
        "jiff",
        "uuid",
        "fastrand",
        "rand",
        "getrandom",
        "reqwest",
        "tracing",
    ];
    let sources = sources_below("protocol/src").into_iter().map(Source::without_tests);
    let mut found: Vec<String> = sources.flat_map(|source| uses(&source, &forbidden)).collect();
    let manifest = std::fs::read_to_string(workspace_root().join("protocol/Cargo.toml")).unwrap();
    let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
    for name in ["tokio", "uuid", "jiff", "fastrand", "reqwest", "tracing"] {
        if dependencies.lines().any(|line| line.starts_with(name)) {
            found.push(format!("protocol/Cargo.toml: {name}"));
        }
    }
    assert_none("the protocol crate must stay pure", found);
}

#[test]
fn llm_tools_and_session_do_not_know_each_other_or_the_agent() {
    let parts = ["llm", "tools", "session", "agent"];
    let mut found = Vec::new();
    for part in &parts[..3] {
        let others: Vec<String> = parts
            .iter()
            .filter(|other| *other != part)
            .flat_map(|other| {
                ["crate", "super", "super::super", "sampi_server"].map(|root| format!("{root}::{other}"))
            })
            .collect();
        let others: Vec<&str> = others.iter().map(String::as_str).collect();
        for source in sources_below(&format!("server/src/{part}")) {
            found.extend(uses(&source, &others));
            found.extend(uses(&source, &["crate::modes", "sampi_server::modes"]));
        }
    }
    assert_none("these parts must not know each other", found);
}

#[test]
fn the_agent_does_not_know_who_puts_it_together_and_a_host_program_needs_no_mode() {
    let mut found = Vec::new();
    for (part, others) in [
        ("agent", &["crate::assembly", "crate::embed", "crate::modes", "crate::cli"][..]),
        ("assembly", &["crate::embed", "crate::modes"]),
        ("embed", &["crate::modes"]),
    ] {
        for source in sources_below(&format!("server/src/{part}")) {
            found.extend(uses(&source, others));
        }
    }
    assert_none("dependencies point the wrong way", found);
}

#[test]
fn rpc_envelopes_live_in_the_rpc_mode_alone() {
    let envelopes = [
        "sampi_protocol::response",
        "sampi_protocol::commands::Command",
        "sampi_protocol::commands::RpcCommand",
        "sampi_protocol::commands::Request",
    ];
    let sources = sources_below("server/src").into_iter();
    let outside = sources.filter(|source| !source.path.starts_with("server/src/modes/rpc"));
    assert_none(
        "RPC envelopes outside modes/rpc",
        outside.flat_map(|source| uses(&source, &envelopes)).collect(),
    );
}

#[test]
fn the_server_imports_no_client_and_the_client_no_server() {
    let mut found = Vec::new();
    for source in sources_below("server/src") {
        found.extend(uses(&source, &["sampi_client"]));
    }
    for source in sources_below("client-rs/src") {
        found.extend(uses(&source, &["sampi_server"]));
    }
    for source in sources_below("protocol/src") {
        found.extend(uses(&source, &["sampi_server", "sampi_client"]));
    }
    assert_none("dependencies point the wrong way", found);
}

#[test]
fn nothing_prints_past_the_one_writer_of_stdout() {
    let mut found = Vec::new();
    for directory in ["protocol/src", "server/src", "client-rs/src"] {
        for source in sources_below(directory).into_iter().map(Source::without_tests) {
            let lines = source.code.lines().enumerate();
            let macros = ["println!", "print!", "eprintln!", "eprint!", "dbg!"];
            let bad = lines.filter(|(_, line)| {
                macros.iter().any(|name| line.contains(name)) || line.contains("clippy::print_std")
            });
            found
                .extend(bad.map(|(number, line)| format!("{}:{}: {}", source.path, number + 1, line.trim())));
            let is_writer = ["server/src/modes/", "server/src/main.rs", "server/src/cli"]
                .iter()
                .any(|allowed| source.path.starts_with(allowed));
            if !is_writer {
                found.extend(uses(&source, &["std::io::stdout", "tokio::io::stdout", "io::stdout"]));
            }
        }
    }
    assert_none("stdout belongs to one writer", found);
}

#[test]
fn no_file_is_over_600_lines_of_code_unless_its_top_says_why() {
    let mut found = Vec::new();
    for directory in ["protocol", "server", "client-rs", "tests", "xtask"] {
        for source in sources_below(directory) {
            let lines = source.code_lines();
            let top: String = source.text.lines().take_while(|line| line.starts_with("//")).collect();
            if lines > MOST_LINES && !top.contains("600 lines") {
                found.push(format!("{}: {lines} lines", source.path));
            }
        }
    }
    assert_none("too long; split it, or say at its top why it is over 600 lines", found);
}

#[test]
fn no_module_is_named_after_nothing() {
    let empty_names = ["utils.rs", "util.rs", "common.rs", "helpers.rs", "types.rs", "misc.rs"];
    let mut found = Vec::new();
    for directory in ["protocol/src", "server/src", "client-rs/src", "tests", "xtask"] {
        let sources = sources_below(directory).into_iter().map(|source| source.path);
        found.extend(
            sources.filter(|path| empty_names.iter().any(|name| path.ends_with(&format!("/{name}")))),
        );
    }
    assert_none("a file is named after its concept", found);
}

#[test]
fn every_file_of_the_end_to_end_tests_is_part_of_them() {
    let main = std::fs::read_to_string(workspace_root().join("tests/it/main.rs")).unwrap();
    let mut found = Vec::new();
    for source in sources_below("tests/it") {
        let name = source.path.rsplit('/').next().unwrap().trim_end_matches(".rs").to_owned();
        if name != "main" && !main.contains(&format!("\nmod {name};")) {
            found.push(source.path);
        }
    }
    assert_none("not listed in tests/it/main.rs, so its tests never run", found);
}

/// The field cases that the tests here stand for.
const CASES: &[std::ops::RangeInclusive<u32>] =
    &[1..=24, 28..=28, 30..=32, 35..=35, 37..=41, 43..=44, 48..=48, 52..=54];

#[test]
fn every_field_case_has_a_test() {
    let sources = sources_below("tests/it");
    let has_test = |case: u32| {
        let comment = format!("// case {case}\n");
        sources.iter().any(|source| source.text.contains(&comment))
    };
    let missing = CASES.iter().cloned().flatten().filter(|case| !has_test(*case));
    assert_none("field cases without a test", missing.map(|case| format!("case {case}")).collect());
}

#[test]
fn every_wire_name_is_one_literal() {
    // Names of one word are words of other things too, such as tools.
    let names = Command::NAMES.iter().chain(SessionEvent::KNOWN).filter(|name| name.contains('_'));
    let mut places: HashMap<&str, Vec<String>> = names.map(|name| (*name, Vec::new())).collect();
    for directory in ["protocol/src", "server/src", "client-rs/src"] {
        for source in sources_below(directory).into_iter().map(Source::without_tests) {
            // The vendors' own events are named there, and some have the same names.
            if source.path.starts_with("server/src/llm/") {
                continue;
            }
            for literal in &source.literals {
                if let Some(found) = places.get_mut(literal.as_str()) {
                    found.push(source.path.clone());
                }
            }
        }
    }
    let wrong = places
        .into_iter()
        .filter(|(_, places)| !matches!(places.as_slice(), [only] if only.starts_with("protocol/src/")));
    assert_none(
        "a wire name is written once, in the protocol crate",
        wrong.map(|(name, places)| format!("{name}: {places:?}")).collect(),
    );
}

/// Texts with a name of the program that a fork does not change: where they are, and what they hold.
const FIXED_NAMES: &[(&str, &str)] = &[
    // A constant, not a variable of the environment.
    ("server/src/cli/help.rs", "{PI_VERSION}"),
    // How the crates are called, which is no name that users see.
    ("server/src/modes/logging.rs", "sampi"),
    // The model reads it; the variables have the same names in every fork of Pi.
    ("server/src/tools/bash.rs", "PI_* environment variables"),
];

#[test]
fn the_names_that_a_fork_changes_are_written_in_one_place() {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let has = |text: &str, name: &str, may_go_on: bool| {
        text.match_indices(name).any(|(at, _)| {
            let after = text[at + name.len()..].chars().next();
            !text[..at].chars().next_back().is_some_and(is_word) && (may_go_on || !after.is_some_and(is_word))
        })
    };
    let mut found = Vec::new();
    let sources = sources_below("server/src").into_iter().map(Source::without_tests);
    for source in sources.filter(|source| source.path != "server/src/branding.rs") {
        for literal in &source.literals {
            let is_fixed =
                FIXED_NAMES.iter().any(|(path, text)| source.path == *path && literal.contains(text));
            let names_it = has(literal, ".pi", false)
                || has(literal, "PI_", true)
                || literal.starts_with("pi-")
                || literal.to_lowercase().contains("sampi");
            if names_it && !is_fixed {
                found.push(format!("{}: {literal:?}", source.path));
            }
        }
    }
    assert_none("names of the program belong to server/src/branding.rs", found);
}
