//! The flow language for editors: one expression at a time, and what the language has.

mod evaluate;
mod get;
