//! What comes in over HTTP: webhooks become messages. What calls of published APIs share with them is here too.

mod admission;
mod body;
pub(crate) mod payload;
pub(crate) mod receive;
pub(crate) mod trigger;
mod verify;
pub(crate) mod webhook;

pub(crate) use admission::Admission;
pub(crate) use payload::payload;
pub(crate) use trigger::{MASK, is_sensitive};
