//! How the daemon is linked.

// Cargo is told what to do on stdout.
#![allow(clippy::print_stdout)]

use std::env;
use std::process::Command;

/// Set where the program will run on other machines too.
const PORTABLE: &str = "SAMPI_BUILD_PORTABLE";

/// The first release of glibc that reads packed relocations.
const PACKED_SINCE: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed={PORTABLE}");
    // Half a megabyte less to map and to work through at the start. A program built so asks for that glibc or a
    // later one, so this is done only where the program runs that is built here.
    if env::var_os(PORTABLE).is_none()
        && is_built_for_here()
        && glibc().is_some_and(|version| version >= PACKED_SINCE)
    {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// True for the plain build, without another target or linker.
fn is_built_for_here() -> bool {
    let target = env::var("TARGET").unwrap_or_default();
    env::var("HOST").is_ok_and(|host| host == target)
        && target.ends_with("-linux-gnu")
        && env::var_os("RUSTC_LINKER").is_none()
}

fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
