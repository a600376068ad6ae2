//! What the configuration store and the message log have in common of their databases: connections that are given up when
//! they fall silent. No statements: those are theirs.

#![warn(missing_docs)]

pub mod pool;

use std::io;
use std::time::Duration;

pub use pool::Pool;
use tokio::time::timeout;

/// The outcome of `call`, or that it took longer than it may.
///
/// # Errors
/// Those of `call`; [`silent`] when it has none within `patience`.
pub async fn answered<T>(
    patience: Duration,
    call: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    timeout(patience, call).await.unwrap_or_else(|_| Err(silent()))
}

/// A database that does not answer.
pub fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "the database does not answer"))
}
