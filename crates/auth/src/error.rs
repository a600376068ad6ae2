//! Errors of keys and seals.

use std::path::PathBuf;

/// Why a key could not be had, or something sealed could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a master key is 32 bytes in base64 or 64 hexadecimal digits")]
    MalformedMasterKey,
    #[error(
        "a master key of one repeated byte is no secret; `openssl rand -base64 32` makes a good one"
    )]
    RepeatedMasterKey,
    #[error(
        "{} holds no master key ({reason}): restore the file from a backup, or give the key that \
         it held by KANAT_MASTER_KEY; no other key opens what is sealed already",
        path.display()
    )]
    BrokenMasterKeyFile { path: PathBuf, reason: String },
    #[error("cannot read or write the master key {}: {source}", path.display())]
    MasterKeyFile {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{} does not hold the keys that are in use: it was changed while the process runs, \
             which reads it at its start", .0.display())]
    ChangedMasterKeyFile(PathBuf),
    #[error("what is sealed is not of this format")]
    Malformed,
    #[error("what is sealed needs the master key {0}, which is not at hand")]
    UnknownKey(String),
    #[error("what is sealed was changed, or belongs elsewhere")]
    Forged,
    #[error(
        "a chosen API key is {prefix:?} and then at least {least} letters, digits, \"-\" or \"_\"; \
         `echo {prefix}$(openssl rand -hex 32)` makes a good one",
        prefix = crate::key::PREFIX,
        least = crate::key::MIN_CHOSEN
    )]
    MalformedApiKey,
}
