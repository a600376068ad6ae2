//! Classes of PostgreSQL's errors, and the errors that callers of the log get.

use std::io;

pub(super) use kanat_database::silent;
use kanat_database::with_advice;

use crate::Error;

/// Class of an error, by the handling of the failed transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureKind {
    /// No room on the database's disk.
    NoRoom,
    /// Others were in the way; the same again may work.
    Contended,
    /// The database cannot do it just now.
    Away,
    /// The connection is of no more use.
    Broken,
    /// One of the operations is at fault.
    Operation,
}

impl FailureKind {
    pub fn from_error(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(cause) => cause
                .code()
                .map_or(Self::Operation, |code| Self::from_state(&code)),
            sqlx::Error::Encode(_)
            | sqlx::Error::Decode(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::RowNotFound => Self::Operation,
            _ => Self::Broken,
        }
    }

    /// By the SQLSTATE.
    fn from_state(code: &str) -> Self {
        match code {
            // Disk full.
            "53100" => Self::NoRoom,
            // Serialization failure, deadlock, a lock not to be had in time.
            "40001" | "40P01" | "55P03" => Self::Contended,
            // Ended by an administrator, a crash, a start, a time limit on standing still; a
            // standby that took over the address and cannot be written.
            "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25006" => Self::Broken,
            _ => match code.get(..2) {
                // Connections.
                Some("08") => Self::Broken,
                // Too few resources, cancelled, the system around it, errors inside of it.
                Some("53" | "57" | "58" | "XX" | "F0") => Self::Away,
                _ => Self::Operation,
            },
        }
    }
}

/// Returns whether the database did not answer for as long as it may.
pub(super) fn is_silence(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(cause) if cause.kind() == io::ErrorKind::TimedOut)
}

/// Error of a call to the log, in the form for its caller.
pub(super) struct CallError(pub Error);

impl From<sqlx::Error> for CallError {
    fn from(error: sqlx::Error) -> Self {
        Self(outward(error))
    }
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

/// Returns the error for a caller of the log.
pub(super) fn outward(error: sqlx::Error) -> Error {
    let error = with_advice(error);
    match FailureKind::from_error(&error) {
        // Everybody may read why the service is not ready; where the file is, the log says.
        FailureKind::NoRoom => Error::Disk("the disk of PostgreSQL is full".to_owned()),
        FailureKind::Contended | FailureKind::Away | FailureKind::Broken => {
            Error::Unavailable(error.to_string())
        }
        FailureKind::Operation => Error::Other(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separates_transient_errors_from_lasting_ones() {
        let cases = [
            ("53100", FailureKind::NoRoom),
            ("53300", FailureKind::Away),
            ("40P01", FailureKind::Contended),
            ("57P01", FailureKind::Broken),
            ("57014", FailureKind::Away),
            ("08006", FailureKind::Broken),
            ("23505", FailureKind::Operation),
            ("22021", FailureKind::Operation),
        ];
        for (code, kind) in cases {
            assert_eq!(FailureKind::from_state(code), kind, "{code}");
        }
        assert!(matches!(
            outward(sqlx::Error::PoolTimedOut),
            Error::Unavailable(_)
        ));
        assert!(matches!(outward(silent()), Error::Unavailable(_)));
    }
}
