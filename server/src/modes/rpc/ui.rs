//! The extension UI sub-protocol's host side.

use std::collections::HashMap;

use sampi_protocol::ui::UiResponse;
use tokio::sync::oneshot;

/// Dialogs that wait for the host's answer. No extension opens one yet, so an answer has nowhere to go.
#[derive(Default)]
pub(super) struct Dialogs {
    open: HashMap<String, oneshot::Sender<UiResponse>>,
}

impl Dialogs {
    /// Hands an answer to the dialog that waits for it; one with an unknown id is ignored.
    pub(super) fn answer(&mut self, response: UiResponse) {
        if let Some(dialog) = self.open.remove(&response.id) {
            // A dialog that has timed out no longer waits.
            dialog.send(response).ok();
        } else {
            tracing::debug!(id = response.id, "an answer to no open dialog was ignored");
        }
    }
}
