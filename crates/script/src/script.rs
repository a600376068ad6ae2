//! An adapter's code, ready to be sent to a worker.

use sha2::{Digest, Sha256};

/// Code, known by its hash: workers compile it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub(crate) hash: [u8; 32],
    pub(crate) code: String,
}

impl Script {
    pub fn new(code: impl Into<String>) -> Self {
        let code = code.into();
        Self {
            hash: Sha256::digest(code.as_bytes()).into(),
            code,
        }
    }

    /// The code as it was given.
    pub fn code(&self) -> &str {
        &self.code
    }
}
