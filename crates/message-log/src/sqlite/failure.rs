//! Meaning of SQLite's errors for a log.

use std::path::Path;

use rusqlite::ErrorCode;

use crate::Error;

/// Kind of a failure, which decides how a failed transaction is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// The disk is full or failed: SQLITE_FULL and every I/O error. Room can be made only
    /// after the former.
    DiskFault,
    /// The file is locked, or cannot be read or written.
    Unavailable,
    /// One of the operations is at fault.
    Operation,
}

impl FailureKind {
    pub fn from_error(error: &rusqlite::Error) -> Self {
        // An error without a code of SQLite concerns a value of the operation.
        error.sqlite_error().map_or(Self::Operation, |error| {
            Self::from_code(error.extended_code)
        })
    }

    fn from_code(extended: i32) -> Self {
        match extended & 0xff {
            // SQLITE_FULL, SQLITE_IOERR
            13 | 10 => Self::DiskFault,
            // SQLITE_ERROR, SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_MISUSE,
            // SQLITE_RANGE
            1 | 18..=21 | 25 => Self::Operation,
            // Locked, read-only or damaged: no operation is at fault.
            _ => Self::Unavailable,
        }
    }

    fn into_error(self, code: Option<i32>, message: String) -> Error {
        let message = if code.is_some_and(is_damage) {
            damaged(&message)
        } else {
            message
        };
        match self {
            Self::DiskFault | Self::Unavailable => Error::Unavailable(message),
            Self::Operation => Error::Other(message),
        }
    }
}

/// Returns the error for the caller of an operation that was not written. It names `folder`
/// when the disk of that folder is at fault.
pub(super) fn write_error(error: &rusqlite::Error, folder: &Path) -> Error {
    let name = folder.display();
    match error.sqlite_error().map(|error| error.code) {
        Some(ErrorCode::DiskFull) => disk_full(folder),
        Some(ErrorCode::SystemIoFailure) => {
            Error::Disk(format!("the disk of {name} failed: {error}"))
        }
        Some(ErrorCode::ReadOnly) => Error::Disk(format!("{name} can only be read: {error}")),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Disk(damaged(&error.to_string()))
        }
        _ => Error::Unavailable(error.to_string()),
    }
}

/// Returns the error for the caller of an operation that is refused because the disk of `folder` is
/// full.
pub(super) fn disk_full(folder: &Path) -> Error {
    Error::Disk(format!("the disk of {} is full", folder.display()))
}

/// Returns whether a code is SQLITE_CORRUPT or SQLITE_NOTADB.
fn is_damage(extended: i32) -> bool {
    matches!(extended & 0xff, 11 | 26)
}

fn damaged(error: &str) -> String {
    format!(
        "messages.db is damaged ({error}): stop the service, and restore the file from a backup \
         or repair it with sqlite3's .recover"
    )
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map(|error| error.extended_code);
        FailureKind::from_error(&error).into_error(code, error.to_string())
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        let code = error
            .as_database_error()
            .and_then(|error| error.code())
            .and_then(|code| code.parse().ok());
        let kind = match (code, &error) {
            (Some(code), _) => FailureKind::from_code(code),
            (
                None,
                sqlx::Error::Encode(_) | sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. },
            ) => FailureKind::Operation,
            (None, sqlx::Error::RowNotFound) => FailureKind::Operation,
            // No connection is free, or the pool is closed.
            (None, _) => FailureKind::Unavailable,
        };
        kind.into_error(code, error.to_string())
    }
}
