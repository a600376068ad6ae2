//! Inbound HTTP: webhooks, which become messages, and the parts that calls of published APIs share
//! with them.

mod body;
pub(crate) mod receive;
pub(crate) mod verify;
pub(crate) mod webhook;
