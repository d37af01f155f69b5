//! The binary `sampi`.

fn main() {
    std::process::exit(sampi_server::modes::run(std::env::args_os().collect()));
}
