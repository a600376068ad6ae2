//! The gateway before real tonic services: what callers send, what services get, and what comes
//! back.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod anything;
mod echo;
mod errors;
mod files;
mod input;
mod output;
mod paths;
mod pieces;
mod reading;
mod stream;
