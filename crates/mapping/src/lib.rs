//! The expression and template language: mappings, conditions, `{{ }}` templates, evaluated on
//! slices of JSON. No I/O.
//!
//! - A text is parsed once ([`Expression`], [`Template`], [`JsonTemplate`]); a [`Mapping`] is made
//!   of those. All of them are evaluated on a [`Scope`]: documents as bytes that have passed
//!   [`json::check`], an instant, tables and adapters, and how much work may be done.
//! - No tree is built of a payload. A [`Value`] is mostly a slice of the document that it came
//!   from, so numbers keep their digits and objects the order of their keys. A mapping finds all
//!   that it reads in one pass and writes its output as it goes; the module `plan` describes how.
//! - Of equal keys in an object the last counts, as in JavaScript, Python, Go and serde: wherever a
//!   path is followed and wherever members are listed. A document that is copied whole keeps them
//!   all.
//! - `and`, `or`, `not` and comparisons give booleans. An argument of `default`, `concat` and the
//!   default of `lookup` that is a literal, a path or a bare word is read as one; everything else
//!   there is an expression.
//! - Everything is bounded: expressions in length (64 KiB) and nesting (64), paths in steps (64),
//!   values and outputs in size (16 MiB), lists in elements, one evaluation in what it does, reads
//!   and holds, and the work for one attempt of a message in all ([`Effort`]).
//!   Nothing recurses deeper than those bounds, nothing panics.
//! - Errors never show what a connector is configured with, nor what the scope masks.
//!
//! To add a transform: a row in `transform/table/`, a variant and an arm in `transform.rs`, its
//! work in the file of its kind, and examples in `tests/language/`.

mod effort;
mod environment;
mod error;
mod evaluate;
mod expression;
pub use kanat_json as json;
mod json_template;
pub mod language;
mod mapping;
mod mismatch;
mod node;
mod parse;
mod partial;
mod path;
mod plan;
mod references;
mod scope;
mod template;
mod transform;
mod value;

pub use effort::Effort;
pub use error::{EvaluationError, ParseError};
pub use expression::Expression;
pub use json_template::JsonTemplate;
pub use mapping::{Conflict, FieldValue, Mapping};
pub use parse::Lists;
pub use references::{InstanceValue, ItemReference, Reference, References, Root, ValueForm};
pub use scope::{AdapterError, AdapterRef, Adapters, Lookup, NoAdapters, NoTables, Scope, Tables};
pub use template::{Escape, Template};
pub use value::{Text, Value};
