use std::time::Instant;

use super::*;

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
    };
    format!("RSS {} MB, peak {} MB", of("VmRSS"), of("VmHWM"))
}

/// Figures on a large session: `BIG_SESSION=file cargo test --release ... -- --ignored --nocapture`.
#[test]
#[ignore = "measures; needs a file that bigsession.py made"]
fn figures_of_a_large_session() {
    let path = PathBuf::from(std::env::var("BIG_SESSION").unwrap());
    println!("start: {}", memory());
    let time = Instant::now();
    let mut session = Session::open_read_only(&path).unwrap();
    println!("open {} entries: {:?}, {}", session.entry_count(), time.elapsed(), memory());
    let time = Instant::now();
    let mut out = std::io::BufWriter::with_capacity(1 << 20, std::fs::File::create("/dev/null").unwrap());
    session.write_entries(None, &mut out).unwrap();
    println!("write_entries: {:?}, {}", time.elapsed(), memory());
    let time = Instant::now();
    session.write_tree(&mut out).unwrap();
    println!("write_tree: {:?}, {}", time.elapsed(), memory());
    let time = Instant::now();
    let points = session.fork_points().len();
    println!("fork_points {points}: {:?}, {}", time.elapsed(), memory());
    let time = Instant::now();
    let messages = session.context().messages.len();
    println!("context {messages}: {:?}, {}", time.elapsed(), memory());
    let time = Instant::now();
    let length = entries_json(&session, None).unwrap().len();
    println!("write_entries {length}: {:?}, {}", time.elapsed(), memory());
    let time = Instant::now();
    let length = tree_json(&session).len();
    println!("write_tree {length}: {:?}, {}", time.elapsed(), memory());
}
