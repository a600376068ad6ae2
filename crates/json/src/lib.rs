//! JSON as text: strict checking, reading without a tree, writing strings. What stays a slice keeps
//! its digits and the order of its keys. No values of its own: what a slice means is the reader's.

mod check;
mod piece;
mod scan;
mod string;

pub use check::{Fault, JsonError, check, check_text, text};
pub use piece::PieceScan;
pub use scan::{
    has_key, items, member, members, occurrences, skip_colon, skip_comma, skip_value,
    skip_whitespace,
};
pub use string::{closing_quote, decode, key_is, plain_end, write_string};

/// The deepest nesting that a document may have.
pub const MAX_DEPTH: usize = 128;
