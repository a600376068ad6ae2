//! What comes in over HTTP: webhooks become messages. What calls of published APIs share with them
//! is here too.

mod body;
pub(crate) mod receive;
pub(crate) mod verify;
pub(crate) mod webhook;
