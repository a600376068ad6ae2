//! Messages: listing, reading, and what a person can do with them.

mod all_flows;
mod dead_letter;
mod list;
mod replay;
mod stream;
