//! The bound on the size of values.

use crate::EvaluationError;

/// Greatest size of the result of a transform, in bytes.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Text of at most [`MAX_BYTES`].
#[derive(Default)]
pub(crate) struct BoundedText(String);

impl BoundedText {
    pub fn push(&mut self, text: &str) -> Result<(), EvaluationError> {
        if text.len() > MAX_BYTES - self.0.len().min(MAX_BYTES) {
            return Err(too_large());
        }
        self.0.push_str(text);
        Ok(())
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

pub(crate) fn too_large() -> EvaluationError {
    EvaluationError::mapping(format!(
        "the result is larger than {} MiB",
        MAX_BYTES / 1024 / 1024
    ))
}
