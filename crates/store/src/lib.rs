//! All SQL for configuration: one text for SQLite and PostgreSQL, one module a noun, one function a
//! statement. What the rows mean is decided elsewhere; secrets come in and go out sealed.

pub mod account;
pub mod adapter;
pub mod announcement;
pub mod answered_request;
pub mod api_key;
pub mod batch_job;
mod changes;
pub mod connector_health;
pub mod connector_instance;
pub mod consumer_key;
pub mod control_plane;
mod db;
mod dialect;
pub mod done_call;
pub mod endpoint_schema;
pub mod environment;
mod error;
pub mod flow;
pub mod flow_use;
pub mod flow_version;
pub mod lookup_table;
pub mod meta;
mod migration;
pub mod names;
pub mod node;
pub mod oauth_start;
pub mod oauth_token;
pub mod periodic_task;
pub mod policy;
pub mod published;
pub mod published_api;
mod row;
pub mod schedule;
pub mod sealed;
mod search;
mod sql;
mod store;
mod transaction;
pub mod webhook_token;

pub use announcement::{Announcement, Listener};
pub use changes::Changes;
pub use db::Db;
pub use error::Error;
pub use store::{Options, Store};
pub use transaction::Tx;
