//! What comes in over HTTP: webhooks become messages. What calls of published APIs share with them
//! is here too.

mod admission;
mod body;
pub(crate) mod credentials;
pub(crate) mod payload;
pub(crate) mod receive;
mod refused;
mod shares;
pub(crate) mod verify;
pub(crate) mod webhook;

pub(crate) use admission::{Admission, Room};
pub(crate) use payload::payload;
pub(crate) use refused::Refused;
