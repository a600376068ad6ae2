//! An error as a caller sees it: a code, a sentence, and the fields at fault. Causes stay in the
//! log.

use std::borrow::Cow;

use crate::Code;
use crate::id::{AdapterId, FlowId, InstanceId, LookupTableId, PolicyId, PublishedApiId};

/// Characters of a text in an error.
const MAX_TEXT: usize = 1_000;

/// Result of a call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A failed call, in words fit for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub code: Code,
    /// Lower case, no full stop, names the thing.
    pub message: String,
    pub details: Vec<FieldError>,
    /// The resource that is missing, or that has the name already.
    pub resource: Option<ResourceRef>,
}

/// A resource that an error is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRef {
    /// The noun, as in `lookup table`.
    pub kind: &'static str,
    /// Its id or name.
    pub name: String,
}

/// The fault of one field of a request; `field` is a path such as `entries[2].key`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    pub field: String,
    pub message: String,
    /// Further members as JSON, such as `"line":1`; mostly none.
    pub members: String,
}

/// Returns a text of an error at a length that a caller can read: what was sent may be quoted in it
/// whole.
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

impl FieldError {
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            members: String::new(),
        }
    }
}

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Vec::new(),
            resource: None,
        }
    }

    /// The request is wrong in one named field.
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        let detail = FieldError::new(field, message);
        let message = format!("{}: {}", detail.field, detail.message);
        Self::invalid(message, vec![detail])
    }

    /// The request is wrong as `message` says, in the fields of `details`.
    pub fn invalid(message: impl Into<String>, details: Vec<FieldError>) -> Self {
        Self {
            details,
            ..Self::new(Code::InvalidArgument, message)
        }
    }

    /// `kind` is the noun, as in `flow`; the message reads `flow "flw_1" does not exist`. Where the
    /// name is no id, it says how ids begin.
    pub fn not_found(kind: &'static str, name: impl Into<String>) -> Self {
        let name = name.into();
        let hint = id_prefix(kind)
            .filter(|prefix| !is_id(&name, prefix))
            .map(|prefix| format!("; its id is wanted, which begins with {prefix}_"))
            .unwrap_or_default();
        let message = format!("{kind} {name:?} does not exist{hint}");
        Self::new(Code::NotFound, message).with_resource(kind, name)
    }

    /// `kind` is the noun, as in `lookup table`; the message reads
    /// `lookup table "eu" already exists`.
    pub fn already_exists(kind: &'static str, name: impl Into<String>) -> Self {
        let name = name.into();
        let message = format!("{kind} {name:?} already exists");
        Self::new(Code::AlreadyExists, message).with_resource(kind, name)
    }

    /// Names the resource that the error is about.
    pub fn with_resource(self, kind: &'static str, name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            resource: Some(ResourceRef { kind, name }),
            ..self
        }
    }

    /// The resource is not in a state that allows the call.
    pub fn precondition(message: impl Into<String>) -> Self {
        Self::new(Code::FailedPrecondition, message)
    }

    /// Something of ours failed; the caller learns nothing of its inside, the log does.
    pub fn internal() -> Self {
        Self::new(Code::Internal, "internal error")
    }

    /// A part of the service is away for now; the caller may try again.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message)
    }
}

/// Returns the prefix of the ids of a kind that callers know by its name, too.
fn id_prefix(kind: &str) -> Option<&'static str> {
    match kind {
        "flow" => Some(FlowId::PREFIX),
        "adapter" => Some(AdapterId::PREFIX),
        "connector instance" => Some(InstanceId::PREFIX),
        "lookup table" => Some(LookupTableId::PREFIX),
        "policy" => Some(PolicyId::PREFIX),
        "published API" => Some(PublishedApiId::PREFIX),
        _ => None,
    }
}

/// Returns whether a text has the form of an id.
fn is_id(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| rest.starts_with('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_the_place_of_an_id_is_reported() {
        let message = |name: &str| Error::not_found("flow", name).message;
        assert_eq!(
            message("h1"),
            "flow \"h1\" does not exist; its id is wanted, which begins with flw_"
        );
        assert_eq!(message("flw_1"), "flow \"flw_1\" does not exist");
    }
}
