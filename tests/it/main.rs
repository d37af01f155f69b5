//! The end-to-end tests: a daemon, a scripted model, and what a host sees. See `tests/src/lib.rs`.
//!
//! A comment `case N` names the field case that a test stands for.

// These are tests throughout, helper functions included.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod abort;
mod architecture;
mod bad_input;
mod bash;
mod client;
mod export;
mod framing;
mod images;
mod models;
mod prompting;
mod queues;
mod resources;
mod secrets;
mod sessions;
mod start_stop;
mod tools;
mod transcripts;
