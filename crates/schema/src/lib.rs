//! JSON Schemas of published APIs: compiled once, and run on many requests. Knows JSON texts, not
//! requests.
//!
//! A document is read once, into a flat list of slices of its text (`document`), and run through
//! the compiled schema (`check`): no tree, and numbers are compared by their digits. A
//! schema that could make a check take long is refused by the compiler (`compile`, `pattern`); the
//! check itself has a budget.

mod budget;
mod check;
mod compile;
mod document;
mod draft;
mod equality;
mod format;
mod members;
mod node;
mod number;
mod parameters;
mod pattern;
mod resources;
mod schema;
mod strings;
mod violation;

pub use schema::{Error, Schema};
pub use violation::Violation;

/// Greatest length of the text of a schema, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Greatest number of violations of one document that are reported.
pub const MAX_VIOLATIONS: usize = 100;
