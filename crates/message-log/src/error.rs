//! Why the log could not do what it was asked to.

use kanat_model::Code;

/// Result of a call to the log.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call to the log. It had no effect, unless the commit itself failed: see
/// [`MessageLog`](crate::MessageLog).
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// The queue of the log is full; accept nothing, and try again later.
    #[error("the message log is full")]
    Full,
    /// The disk of the log is full or failed; accept nothing, and try again later.
    #[error("the message log cannot write: {0}")]
    Disk(String),
    /// The log cannot be written or read just now; try again.
    #[error("the message log is not available: {0}")]
    Unavailable(String),
    #[error("message {0:?} does not exist")]
    NotFound(String),
    /// The message is not in a state that allows the call.
    #[error("{0}")]
    State(kanat_model::Error),
    /// The file was written by a newer build.
    #[error(
        "the message log has schema version {found}, this build knows up to {known}: start a \
         newer build"
    )]
    NewerSchema { found: i64, known: i64 },
    /// The journal beside the file was written by another build.
    #[error(
        "{0} was written by another build, which alone can read it: start that build, and stop it \
         again"
    )]
    UnknownJournal(String),
    /// A failure that waiting does not cure.
    #[error("the message log failed: {0}")]
    Other(String),
}

impl From<Error> for kanat_model::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Full | Error::Disk(_) => {
                Self::unavailable("the message log is full, try again later")
            }
            Error::Unavailable(_) => {
                Self::unavailable("the message log is not available, try again later")
            }
            Error::NotFound(id) => Self::not_found("message", id),
            Error::State(error) => error,
            Error::NewerSchema { .. } | Error::UnknownJournal(_) | Error::Other(_) => {
                Self::new(Code::Internal, "internal error")
            }
        }
    }
}
