//! Changing a configuration file that another program may be changing at the same time.
//!
//! Pi guards `settings.json` and `auth.json` with the npm package proper-lockfile: whoever changes
//! `FILE` holds the folder `FILE.lock`, whose making is atomic; a folder that has not been touched for
//! ten seconds belongs to a program that died. The file itself is replaced, never written in place.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};

use super::jsonc;

/// Age of a lock whose holder died.
const STALE_AFTER: Duration = Duration::from_secs(10);

/// How long to wait for a lock that another program holds for a short change.
pub const WAIT_AT_MOST: Duration = Duration::from_secs(5);

/// How often a lock that is held for longer is touched.
pub const TOUCH_EVERY: Duration = Duration::from_secs(3);

/// How long to wait between two tries.
const TRY_EVERY: Duration = Duration::from_millis(20);

/// Mode of a new file: its owner's alone.
const NEW_FILE_MODE: u32 = 0o600;

/// Holds the lock of a file; gives it back when dropped.
#[derive(Debug)]
struct FileLock(PathBuf);

impl FileLock {
    fn take(path: &Path, wait: Duration) -> io::Result<Self> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = PathBuf::from(name);
        let started = SystemTime::now();
        loop {
            match fs::create_dir(&lock) {
                Ok(()) => return Ok(Self(lock)),
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Err(_) => {}
            }
            if is_stale(&lock) && is_gone(fs::remove_dir(&lock)) {
                continue;
            }
            if started.elapsed().unwrap_or(wait) >= wait {
                let text = format!("{} is held by another program", lock.display());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            std::thread::sleep(TRY_EVERY);
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.0) {
            tracing::warn!(%error, lock = %self.0.display(), "a lock could not be given back");
        }
    }
}

fn is_gone(removed: io::Result<()>) -> bool {
    match removed {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn is_stale(lock: &Path) -> bool {
    let touched = fs::metadata(lock).and_then(|metadata| metadata.modified());
    touched.is_ok_and(|touched| touched.elapsed().is_ok_and(|age| age > STALE_AFTER))
}

/// The object in a JSON file, held under the file's lock. Comments in the file are lost when it is saved, as
/// they are when Pi writes it.
#[derive(Debug)]
pub struct SharedObject {
    /// What the file has, and what it gets.
    pub object: Map<String, Value>,
    path: PathBuf,
    lock: FileLock,
}

impl SharedObject {
    /// Takes the lock and reads the file. One that is not there counts as empty; one that cannot be read as
    /// an object is left alone. Blocks while another program holds the lock, for at most `wait`.
    pub fn open(path: &Path, wait: Duration) -> io::Result<Self> {
        let folder = path.parent().ok_or_else(|| io::Error::other("the file has no folder"))?;
        fs::create_dir_all(folder)?;
        // Behind a link the file itself is changed, as Pi does.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let lock = FileLock::take(&path, wait)?;
        let object = jsonc::read_object(&path).map_err(io::Error::other)?.unwrap_or_default();
        Ok(Self { object, path, lock })
    }

    /// Tells other programs that the lock is still held. Whoever holds it for longer must do so every
    /// [`TOUCH_EVERY`].
    pub fn touch(&self) -> io::Result<()> {
        fs::File::open(&self.lock.0)?.set_modified(SystemTime::now())
    }

    /// Replaces the file, which keeps its mode, and gives the lock back.
    pub fn save(self) -> io::Result<()> {
        let mode = fs::metadata(&self.path).map_or(NEW_FILE_MODE, |metadata| metadata.permissions().mode());
        self.save_with_mode(mode)
    }

    /// As [`Self::save`], for a file with secrets: nobody but its owner may read it.
    pub fn save_private(self) -> io::Result<()> {
        self.save_with_mode(NEW_FILE_MODE)
    }

    fn save_with_mode(self, mode: u32) -> io::Result<()> {
        let folder = self.path.parent().ok_or_else(|| io::Error::other("the file has no folder"))?;
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut text = serde_json::to_vec_pretty(&self.object)?;
        text.push(b'\n');
        file.write_all(&text)?;
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        file.as_file().sync_data()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Changes the object in a JSON file under its lock, which is waited for at most five seconds.
pub fn update_object(path: &Path, change: impl FnOnce(&mut Map<String, Value>)) -> io::Result<()> {
    let mut shared = SharedObject::open(path, WAIT_AT_MOST)?;
    change(&mut shared.object);
    shared.save()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_keeps_what_it_does_not_know_and_the_files_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/settings.json");
        update_object(&path, |object| drop(object.insert("x".into(), json!(1)))).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        update_object(&path, |object| drop(object.insert("y".into(), json!([2])))).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"x\": 1,\n  \"y\": [\n    2\n  ]\n}\n");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(!folder.path().join("a/settings.json.lock").exists());
    }

    #[test]
    fn a_file_that_is_no_object_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        fs::write(&path, "{oops").unwrap();
        assert!(update_object(&path, |_| {}).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "{oops");
        assert!(!folder.path().join("settings.json.lock").exists());
    }

    #[test]
    fn a_lock_of_a_program_that_died_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        let lock = folder.path().join("settings.json.lock");
        fs::create_dir(&lock).unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        fs::File::open(&lock).unwrap().set_modified(long_ago).unwrap();
        update_object(&path, |object| drop(object.insert("x".into(), json!(true)))).unwrap();
        assert!(!lock.exists() && path.exists());
    }

    #[test]
    fn a_lock_that_cannot_be_taken_over_ends_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        let lock = folder.path().join("settings.json.lock");
        fs::create_dir(&lock).unwrap();
        fs::write(lock.join("x"), "").unwrap();
        let long_ago = SystemTime::now() - Duration::from_secs(60);
        fs::File::open(&lock).unwrap().set_modified(long_ago).unwrap();
        let error = update_object(&path, |_| {}).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(!path.exists());
    }

    #[test]
    fn changes_made_side_by_side_all_arrive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("settings.json");
        std::thread::scope(|scope| {
            for n in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    update_object(path, |object| drop(object.insert(format!("k{n}"), json!(n)))).unwrap();
                });
            }
        });
        let object = jsonc::read_object(&path).unwrap().unwrap();
        assert_eq!(object.len(), 8);
    }
}
