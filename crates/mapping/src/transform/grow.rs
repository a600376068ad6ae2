//! The bound on the size of values.

use crate::effort::Held;
use crate::{Effort, EvaluationError, Value};

/// Greatest size of the result of a transform, in bytes.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Greatest number of bytes that are reserved before they are needed.
const MAX_ROOM: usize = 16 * 1024;

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

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

/// List of at most [`MAX_BYTES`] and a million elements, as JSON that grows.
pub(crate) struct BoundedList<'e> {
    json: Vec<u8>,
    count: usize,
    held: Held<'e>,
    effort: &'e Effort,
}

impl<'e> BoundedList<'e> {
    pub fn new(effort: &'e Effort) -> Self {
        Self::with_room_for(0, effort)
    }

    /// Creates a list that takes so many bytes without growing, unless they are many.
    pub fn with_room_for(bytes: usize, effort: &'e Effort) -> Self {
        let mut json = Vec::with_capacity((bytes + 2).min(MAX_ROOM));
        json.push(b'[');
        Self {
            json,
            count: 0,
            held: effort.hold_nothing(),
            effort,
        }
    }

    /// Appends a value; undefined is left out.
    pub fn push(&mut self, value: &Value) -> Result<(), EvaluationError> {
        if *value == Value::Undefined {
            return Ok(());
        }
        self.push_with(|json| value.write_json(json))
    }

    /// Appends an element as it stands.
    pub fn push_json(&mut self, element: &str) -> Result<(), EvaluationError> {
        self.push_with(|json| json.extend_from_slice(element.as_bytes()))
    }

    /// Appends the element that a function writes.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), EvaluationError> {
        let before = self.json.len();
        if self.count > 0 {
            self.json.push(b',');
        }
        write(&mut self.json);
        self.count += 1;
        self.held.add(self.json.len() - before)?;
        self.effort.check_count(self.count)?;
        if self.json.len() > MAX_BYTES {
            return Err(too_large());
        }
        Ok(())
    }

    pub fn into_value<'s>(mut self) -> Value<'s> {
        self.json.push(b']');
        String::from_utf8(self.json).map_or(Value::Undefined, Value::from_owned_json)
    }
}

pub(crate) fn too_large() -> EvaluationError {
    EvaluationError::mapping(format!(
        "the result is larger than {} MiB",
        MAX_BYTES / 1024 / 1024
    ))
}
