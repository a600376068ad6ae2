//! Connectors: what can be spoken to (entries, as data files), how an instance of one is
//! configured, checked and shown, and how it turns an endpoint into a URL with its credentials. No
//! network.

#![warn(missing_docs)]

pub mod action;
pub mod check;
pub mod config;
pub mod entry;
pub mod instance;
pub mod oauth2;
mod origin;
pub mod redact;
pub mod shape;

mod auth;
mod base_url;
mod bearer;
mod credential;
mod format;
mod schema;
mod template;
mod values;

pub use action::{Action, Call, ParamError};
pub use auth::ClientAuthentication;
pub use config::{ConfigField, FieldKind};
pub use entry::{Entry, RateLimit, TestCall, entries, entry};
pub use instance::Instance;
pub use redact::MASK;
