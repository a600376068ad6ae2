//! JSON as text: the one lexer, the one splitter of documents that arrive in pieces, exact decimal
//! numbers, reading without a tree, and writing strings. A slice of a text keeps its digits and the
//! order of its keys.
//!
//! - [`read`] is the strict lexer; [`check`] and [`check_text`] run it for its verdict alone.
//! - [`items`], [`members`], [`skip_value`] and their kin take checked text apart.
//! - [`Splitter`] hands on the values of a document while its bytes arrive.
//! - [`Decimal`] calculates with numbers of any length.
//!
//! There is no type for values: what a slice means is up to the reader.

mod check;
mod decimal;
mod kind;
mod lex;
mod scan;
mod stream;
mod string;

pub use check::{Fault, JsonError, check, check_text, text};
pub use decimal::Decimal;
pub use kind::Kind;
pub use lex::{Scalar, Visitor, is_number, read};
pub use scan::{
    has_key, items, member, members, occurrences, skip_colon, skip_comma, skip_value,
    skip_whitespace,
};
pub use stream::{Part, Position, SplitError, Splitter, Step};
pub use string::{closing_quote, decode, key_is, plain_end, read_string, write_string};

/// Greatest depth to which the lists and objects of a document may nest.
pub const MAX_DEPTH: usize = 128;
