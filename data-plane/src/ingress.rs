//! What comes in over HTTP: webhooks become messages.

mod admission;
mod body;
mod payload;
mod trigger;
mod verify;
pub(crate) mod webhook;

pub(crate) use admission::Admission;
pub(crate) use payload::payload;
pub(crate) use trigger::{MASK, is_sensitive};
