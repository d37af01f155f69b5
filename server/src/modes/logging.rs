//! The log on stderr.
//!
//! It tells what one needs to find a fault: requests, statuses, retries, tool calls, files. Never in it: keys,
//! what messages say, arguments and results of tools.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::branding::BRANDING;

/// How the names of this program's crates start.
const OWN_TARGETS: &str = "sampi";

/// Starts logging: warnings and errors, or what the variable of the log says. Libraries say no more at any level, because
/// nobody knows what they put into it.
pub(super) fn start() {
    let variable = BRANDING.log_variable();
    let wanted = std::env::var(&variable).unwrap_or_default();
    let (level, complaint) = match wanted.trim() {
        "" => (LevelFilter::WARN, None),
        text => match text.parse() {
            Ok(level) => (level, None),
            Err(_) => (LevelFilter::WARN, Some("expected off, error, warn, info, debug or trace")),
        },
    };
    let lines =
        || tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    let layer = match level >= LevelFilter::DEBUG {
        true => lines().with_timer(tracing_subscriber::fmt::time::uptime()).boxed(),
        false => lines().without_time().boxed(),
    };
    let filter = Targets::new().with_default(level.min(LevelFilter::WARN)).with_target(OWN_TARGETS, level);
    tracing_subscriber::registry().with(layer.with_filter(filter)).init();
    if let Some(complaint) = complaint {
        tracing::warn!("{variable}: {complaint}");
    }
}
