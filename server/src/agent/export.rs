//! Writing the session as a page.

use sampi_protocol::commands::ExportedHtml;

use super::session_shelf::ShelfMessage;
use super::{Agent, AgentError, Outcome, Ticket};
use crate::export::{self, ExportError, Leaf};

impl Agent {
    /// Writes the session as an HTML file, the active branch first. Without a path, or with an empty one,
    /// the file is named after the session file and goes into the process's working directory.
    ///
    /// What is written is what the session file holds when the writing starts.
    pub fn export_html(&mut self, ticket: Ticket, output: Option<String>) {
        let refusal = match self.session.file() {
            None => AgentError::Invalid("Cannot export in-memory session to HTML".to_owned()),
            Some(_) if !self.session.is_saved() => {
                AgentError::NotFound("Nothing to export yet - start a conversation first".to_owned())
            }
            Some(file) => {
                let output = output.filter(|output| !output.is_empty());
                let target = match output {
                    Some(output) => self.environment.expand_tilde(&output),
                    None => export::default_path(file),
                };
                let (file, leaf) = (file.to_owned(), self.session.leaf().cloned());
                self.on_disk(
                    move || {
                        let leaf = leaf.as_ref().map_or(Leaf::Latest, Leaf::Entry);
                        let exported = export::export_file(&file, leaf, &target).map_err(AgentError::from);
                        ShelfMessage::Exported(
                            ticket,
                            exported.map(|()| ExportedHtml { path: target.to_string_lossy().into_owned() }),
                        )
                    },
                    move |error| ShelfMessage::Exported(ticket, Err(error)),
                );
                return;
            }
        };
        self.done(ticket, Outcome::Exported(Err(refusal)));
    }
}

impl From<ExportError> for AgentError {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Session(error) => Self::Session(error),
            ExportError::OntoItself(_) => Self::Invalid(error.to_string()),
            ExportError::Write { .. } => Self::Io(error.to_string()),
        }
    }
}
