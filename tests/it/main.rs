//! The end-to-end tests: a daemon, a scripted model, and what a host sees. See `tests/src/lib.rs`.
//!
//! A comment `case N` names the field case that a test stands for.

// These are tests throughout, helper functions included.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod abort;
mod architecture;
mod auth;
mod automatic_compaction;
mod bad_input;
mod bash;
mod client;
mod compaction;
mod crash;
mod damage;
mod embedded;
mod embedded_events;
mod embedded_runtime;
mod export;
mod federation;
mod framing;
mod images;
mod in_place;
mod json_mode;
mod locks;
mod logs;
mod models;
mod network;
mod print_mode;
mod prompting;
mod queues;
mod resources;
mod retries;
mod secrets;
mod session_choice;
mod session_files;
mod session_services;
mod sessions;
mod start_stop;
mod tools;
mod transcripts;
mod tree;
