//! Why there is no PostgreSQL to test with.

use std::path::PathBuf;

/// An error in words for the person who runs the tests.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "PostgreSQL is not installed here (no initdb in /usr/lib/postgresql/*/bin or the PATH): \
         on Debian run `apt-get install postgresql`, or set DATABASE_URL to a server where \
         databases may be made"
    )]
    NotInstalled,
    #[error("PostgreSQL refuses to run as root, and there is no user named postgres to run it as")]
    NoUser,
    #[error("only root may mount a disk for a test")]
    NoMount,
    #[error("{program} cannot be run: {cause}")]
    Run {
        program: String,
        cause: std::io::Error,
    },
    #[error("{program} failed: {output}")]
    Failed { program: String, output: String },
    #[error("{path:?} cannot be used: {cause}")]
    Folder {
        path: PathBuf,
        cause: std::io::Error,
    },
    #[error("DATABASE_URL is no address of a PostgreSQL server")]
    Address,
}
