//! Connectors: what can be spoken to (entries, as data files), how an instance of one is configured, checked and shown,
//! and how it turns an endpoint into a URL with its credentials. No network.

#![warn(missing_docs)]

pub mod action;
pub mod check;
pub mod entry;
pub mod instance;
pub mod redact;

mod base_url;

pub use action::{Action, Call, ParamError};
pub use entry::{ConfigField, Entry, FieldKind, entries, entry};
pub use instance::Instance;
pub use redact::MASK;
