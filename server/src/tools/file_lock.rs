//! One change of a file at a time.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

type FileLock = tokio::sync::Mutex<()>;

static LOCKS: LazyLock<Mutex<HashMap<PathBuf, Weak<FileLock>>>> = LazyLock::new(Mutex::default);

/// Waits until nobody else changes the file. Names that lead to one file (links, `..`) share a lock.
pub(super) async fn lock_file(path: &Path) -> OwnedMutexGuard<()> {
    let key = real_path(path);
    let lock = {
        let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        locks.retain(|_, lock| lock.strong_count() > 0);
        match locks.get(&key).and_then(Weak::upgrade) {
            Some(lock) => lock,
            None => {
                let lock = Arc::new(FileLock::default());
                locks.insert(key, Arc::downgrade(&lock));
                lock
            }
        }
    };
    lock.lock_owned().await
}

/// The path without links. Of a file that does not exist yet, its folder's real path and its name.
fn real_path(path: &Path) -> PathBuf {
    let mut missing: Vec<OsString> = Vec::new();
    let mut existing = path;
    loop {
        if let Ok(real) = existing.canonicalize() {
            return missing.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (existing.parent(), existing.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name.to_owned());
                existing = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn two_names_of_one_file_share_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        std::fs::write(&file, "x").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let guard = lock_file(&file).await;
        let mut second = Box::pin(lock_file(&link));
        assert!(futures::poll!(&mut second).is_pending());
        drop(guard);
        second.await;
    }

    #[tokio::test]
    async fn files_that_do_not_exist_yet_lock_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let guard = lock_file(&folder.path().join("new/a")).await;
        lock_file(&folder.path().join("new/b")).await;
        assert!(futures::poll!(Box::pin(lock_file(&folder.path().join("new/a")))).is_pending());
        drop(guard);
    }
}
