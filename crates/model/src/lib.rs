//! The nouns that every part of Kanat shares: ids, states, error codes, pages, time. No I/O but the
//! wall clock.

#[macro_use]
mod texts;

pub mod adapter;
pub mod audit;
pub mod backoff;
pub mod batch_job;
pub mod clock;
pub mod code;
pub mod consumer_key;
mod count;
pub mod csv;
pub mod environment;
pub mod error;
pub mod health;
pub mod id;
pub mod mask;
pub mod media_type;
pub mod member;
pub mod message;
pub mod nearest;
pub mod page;
pub mod policy;
pub mod published_api;
pub mod search;
pub mod secret;
pub mod time;
pub mod trace;

pub mod flow;
pub mod schedule;

pub use code::Code;
pub use count::saturated;
pub use error::{Error, FieldError, ResourceRef, Result};
pub use health::Health;
pub use mask::Mask;
pub use secret::Secret;
pub use time::Timestamp;
