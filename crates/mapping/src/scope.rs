//! The scope of an expression: the roots of its paths, the present instant, lookup tables,
//! adapters, and the effort that it is charged to.

use std::collections::HashMap;

use kanat_model::adapter::Kind;
use kanat_model::message::{ErrorKind, Failure};
use kanat_model::{Mask, Timestamp};

use crate::Effort;

/// Scope of an evaluation. Each document is JSON that has passed [`crate::json::check`]; an empty
/// slice makes its root undefined.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    /// The payload; also `trigger.body` and `trigger.payload`.
    pub source: &'s [u8],
    /// An object with `headers` (lower-case names), `query`, `method`, `path_params`,
    /// `received_at`.
    pub trigger: &'s [u8],
    /// An object of `{output, status}` by step name.
    pub steps: &'s [u8],
    /// An object with `response`, after delivery.
    pub target: &'s [u8],
    /// An object of `{status, headers, body}`: the answer that a condition judges, or that of the
    /// target after delivery.
    pub response: &'s [u8],
    /// The config of the connector in whose place the expression stands. Its values are never shown
    /// in errors.
    pub instance: &'s [u8],
    /// The state of a poll: its cursor, and the time of its last success.
    pub state: &'s [u8],
    /// The variables of the environment, an object of texts.
    pub variables: &'s [u8],
    /// The item of a list, outside of any list.
    pub item: &'s [u8],
    /// Place of that item in its list.
    pub index: Option<usize>,
    pub now: Timestamp,
    pub tables: &'s dyn Tables,
    pub adapters: &'s dyn Adapters,
    /// Hides secrets in the values that errors show.
    pub mask: &'s Mask,
    /// Work that may still be done for the message.
    pub effort: &'s Effort,
}

impl<'s> Scope<'s> {
    /// A scope with a payload and nothing else.
    pub fn new(source: &'s [u8], now: Timestamp, effort: &'s Effort) -> Self {
        Self {
            source,
            trigger: b"",
            steps: b"",
            target: b"",
            response: b"",
            instance: b"",
            state: b"",
            variables: b"",
            item: b"",
            index: None,
            now,
            tables: &NoTables,
            adapters: &NoAdapters,
            mask: Mask::none(),
            effort,
        }
    }
}

/// The lookup tables of an environment.
pub trait Tables: Sync {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t>;
}

/// Result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup<'t> {
    NoTable,
    NoKey,
    Value(&'t str),
}

/// An environment without tables.
pub struct NoTables;

impl Tables for NoTables {
    fn lookup<'t>(&'t self, _table: &str, _key: &str) -> Lookup<'t> {
        Lookup::NoTable
    }
}

/// Entries by key by table name.
impl Tables for HashMap<String, HashMap<String, String>> {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t> {
        match self.get(table) {
            None => Lookup::NoTable,
            Some(entries) => entries
                .get(key)
                .map_or(Lookup::NoKey, |value| Lookup::Value(value)),
        }
    }
}

/// The adapters of an environment.
pub trait Adapters: Sync {
    /// Returns the kind of an adapter; `None` when there is none of that name or id.
    fn kind(&self, adapter: AdapterRef<'_>) -> Option<Kind>;

    /// Runs an adapter on JSON text. Returns JSON text, or `None` for undefined.
    fn call(&self, adapter: AdapterRef<'_>, input: &str) -> Result<Option<String>, AdapterError>;
}

/// Reference to an adapter: by its name in expressions, by its id in plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdapterRef<'a> {
    Name(&'a str),
    Id(&'a str),
}

/// Failure of an adapter, with a sentence on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdapterError {
    /// There is none of that name or id.
    Missing(String),
    /// It failed, and would again.
    Failed(String),
    /// It could not be run just now.
    Unavailable(String),
}

impl AdapterError {
    /// Creates the error of an adapter that does not exist.
    pub fn missing(adapter: AdapterRef<'_>) -> Self {
        let (AdapterRef::Name(text) | AdapterRef::Id(text)) = adapter;
        Self::Missing(format!("there is no adapter named {text:?}"))
    }
}

impl From<AdapterError> for Failure {
    fn from(error: AdapterError) -> Self {
        let (kind, message) = match error {
            AdapterError::Missing(message) => (ErrorKind::Configuration, message),
            AdapterError::Failed(message) => (ErrorKind::Adapter, message),
            // It is tried again, as after a time-out of a target.
            AdapterError::Unavailable(message) => (ErrorKind::Timeout, message),
        };
        Self {
            kind,
            message,
            field: None,
            expression: None,
        }
    }
}

/// An environment without adapters.
pub struct NoAdapters;

impl Adapters for NoAdapters {
    fn kind(&self, _adapter: AdapterRef<'_>) -> Option<Kind> {
        None
    }

    fn call(&self, adapter: AdapterRef<'_>, _input: &str) -> Result<Option<String>, AdapterError> {
        Err(AdapterError::missing(adapter))
    }
}
