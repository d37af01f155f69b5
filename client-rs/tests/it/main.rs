//! The client against scripted and misbehaving peers.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod dialogs;
#[cfg(test)]
mod events;
#[cfg(test)]
mod peer;
#[cfg(test)]
mod process;
#[cfg(test)]
mod real;
#[cfg(test)]
mod runs;
