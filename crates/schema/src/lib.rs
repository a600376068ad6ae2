//! JSON Schemas of published APIs: compiled once, asked by many requests. Knows JSON texts, not requests.

mod schema;
mod violation;

pub use schema::{Error, Schema};
pub use violation::Violation;

/// The longest text that a schema may have, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// As many violations of one document are told.
pub const MAX_VIOLATIONS: usize = 100;
