//! JSON Schemas of published APIs: compiled once, asked by many requests. Knows JSON texts, not
//! requests.
//!
//! A document is read once, into a flat list of slices of its text (`document`), and run through
//! the compiled schema (`check`): no tree, and numbers are judged by their digits. What could make
//! a check take long is refused when the schema is compiled (`compile`, `pattern`); what is left
//! has a budget.

mod budget;
mod check;
mod compile;
mod document;
mod draft;
mod equality;
mod format;
mod node;
mod number;
mod parameters;
mod pattern;
mod resources;
mod schema;
mod violation;

pub use schema::{Error, Schema};
pub use violation::Violation;

/// The longest text that a schema may have, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// As many violations of one document are told.
pub const MAX_VIOLATIONS: usize = 100;
