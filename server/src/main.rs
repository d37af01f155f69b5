//! The binary `sampi`.

fn main() {}
