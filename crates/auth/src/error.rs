//! What can go wrong with keys and seals.

use std::path::PathBuf;

/// Why a key could not be had, or something sealed could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a master key is 32 bytes in base64 or 64 hexadecimal digits")]
    MalformedMasterKey,
    #[error("cannot read or write the master key {}: {source}", path.display())]
    MasterKeyFile { path: PathBuf, source: std::io::Error },
    #[error("what is sealed is not of this format")]
    Malformed,
    #[error("what is sealed needs the master key {0}, which is not at hand")]
    UnknownKey(String),
    #[error("what is sealed was changed, or belongs elsewhere")]
    Forged,
    #[error("an API key begins with {prefix:?} and goes on", prefix = crate::key::PREFIX)]
    MalformedApiKey,
}
