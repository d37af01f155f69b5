//! The end-to-end tests: a daemon, a scripted model, and what a host sees. See `tests/src/lib.rs`.

mod framing;
