//! The client against scripted and misbehaving peers.

#![allow(missing_docs)]

mod calls;
mod dialogs;
mod events;
mod peer;
mod process;
mod runs;
