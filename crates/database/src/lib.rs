//! Common parts of the databases of the configuration store and the message log: the servers that a
//! database may be found on, connections to the one that takes writes, and how long their answers
//! are waited for. No statements about rows: those are theirs.

#![warn(missing_docs)]

mod address;
mod listener;
mod patience;
pub mod pool;
mod servers;

use std::io;

pub use address::{AddressError, Addresses};
pub use listener::Listener;
pub use patience::Patience;
pub use pool::Pool;
pub use servers::{Primary, Servers, Session};

/// A database that does not answer.
pub fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(
        io::ErrorKind::TimedOut,
        "the database does not answer",
    ))
}

/// Returns an error with what to do about it, where connections are too few.
pub fn with_advice(error: sqlx::Error) -> sqlx::Error {
    let text = match &error {
        sqlx::Error::PoolTimedOut => {
            "no connection was free in time: all are in use, or the server is away or takes no more"
                .to_owned()
        }
        sqlx::Error::Database(cause) if cause.code().is_some_and(|code| code == "53300") => {
            format!(
                "{}: raise the limit of the server or the role, or lower --store-connections, \
                 --log-readers, --log-workers and --log-writers of the processes",
                cause.message()
            )
        }
        _ => return error,
    };
    sqlx::Error::Io(io::Error::new(io::ErrorKind::WouldBlock, text))
}

/// A database that is on another server now.
pub fn moved() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the database is at another server now",
    ))
}
