//! File errors in the words of Node, which Pi's hosts and the models know.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::ToolError;

/// An error of `operation` on `path`.
pub(super) fn fs_error(error: &io::Error, operation: &str, path: &Path) -> ToolError {
    ToolError::new(format!("{}, {operation} '{}'", describe(error), path.display()))
}

/// An error of an operation on an open file, whose path Node does not tell.
pub(super) fn open_file_error(error: &io::Error, operation: &str) -> ToolError {
    ToolError::new(format!("{}, {operation}", describe(error)))
}

/// The error's code, such as `ENOENT`.
pub(super) fn code(error: &io::Error) -> String {
    match known(error) {
        Some((code, _)) => code.to_owned(),
        None => error.to_string(),
    }
}

fn describe(error: &io::Error) -> String {
    match known(error) {
        Some((code, text)) => format!("{code}: {text}"),
        None => error.to_string(),
    }
}

fn known(error: &io::Error) -> Option<(&'static str, &'static str)> {
    Some(match Errno::from_io_error(error)? {
        Errno::NOENT => ("ENOENT", "no such file or directory"),
        Errno::ACCESS => ("EACCES", "permission denied"),
        Errno::ISDIR => ("EISDIR", "illegal operation on a directory"),
        Errno::NOTDIR => ("ENOTDIR", "not a directory"),
        Errno::EXIST => ("EEXIST", "file already exists"),
        Errno::PERM => ("EPERM", "operation not permitted"),
        Errno::ROFS => ("EROFS", "read-only file system"),
        Errno::NOSPC => ("ENOSPC", "no space left on device"),
        Errno::LOOP => ("ELOOP", "too many symbolic links encountered"),
        Errno::NAMETOOLONG => ("ENAMETOOLONG", "name too long"),
        Errno::MFILE => ("EMFILE", "too many open files"),
        Errno::BUSY => ("EBUSY", "resource busy or locked"),
        Errno::TXTBSY => ("ETXTBSY", "text file is busy"),
        Errno::IO => ("EIO", "i/o error"),
        _ => return None,
    })
}
