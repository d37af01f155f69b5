//! A scratch folder with a configuration of its own, so that a task touches nothing of the user's.

use std::path::{Path, PathBuf};

use anyhow::Context;
use sampi_client::RpcClientBuilder;
use tempfile::TempDir;

/// A folder to work in and a folder of configuration.
pub(crate) struct Scratch {
    folder: TempDir,
}

impl Scratch {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = TempDir::with_prefix("sampi-").context("could not make a scratch folder")?;
        let scratch = Self { folder };
        for path in [scratch.work(), scratch.config()] {
            std::fs::create_dir(&path).with_context(|| format!("could not make {}", path.display()))?;
        }
        Ok(scratch)
    }

    /// The agent's working directory.
    pub(crate) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The agent's configuration folder.
    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    pub(crate) fn write(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        std::fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
    }

    /// Makes an agent work in here and look for its configuration only here.
    pub(crate) fn place(&self, builder: RpcClientBuilder) -> RpcClientBuilder {
        builder
            .cwd(self.work())
            .env("HOME", self.folder.path())
            .env("PI_CODING_AGENT_DIR", self.config())
            .env("PI_OFFLINE", "1")
            .env("PI_TELEMETRY", "0")
            .env_remove("PI_CODING_AGENT_SESSION_DIR")
    }

    /// Leaves the folder where it is.
    pub(crate) fn keep(self) -> PathBuf {
        self.folder.keep()
    }
}
