//! What the end-to-end tests stand on: a scripted model server and a harness around the daemon.
//!
//! [`fake_llm`] plays the model: it answers from a script, can be held at a [`fake_llm::Gate`] so that a
//! test proves an order without sleeping, and checks every request it gets. [`harness`] starts the
//! daemon in a directory of its own and keeps every record it writes.
//!
//! The tests themselves are in `tests/it`, the golden transcripts in `tests/golden`, and what is
//! deliberately different from Pi in `tests/DEVIATIONS.md`.

// Test support speaks through panics, like an assertion; see clippy.toml for the tests themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod fake_llm;
pub mod harness;
pub mod source;

/// The examples of the README are compiled with the tests of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
