//! How full the context is.

use sampi_protocol::commands::ContextUsage;

use super::Agent;
use crate::session::compaction::estimate::measured_context_tokens;

impl Agent {
    /// How full the context is: what the last answer measured, plus an estimate of what came after it.
    pub(super) fn context_usage(&mut self) -> Option<ContextUsage> {
        let window = self.model.as_ref()?.context_window;
        if window == 0 {
            return None;
        }
        let context = self.session.context();
        let tokens = measured_context_tokens(&context);
        let percent = tokens.map(|tokens| tokens as f64 / window as f64 * 100.0);
        Some(ContextUsage { tokens, context_window: window, percent })
    }
}
