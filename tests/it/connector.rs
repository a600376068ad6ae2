//! Connectors: the catalog, and instances whose secrets are written and never read.

mod actions;
mod catalog;
mod create;
mod delete;
pub mod every_action;
mod get;
mod health;
mod list;
mod oauth;
mod schemas;
mod test;
mod update;
