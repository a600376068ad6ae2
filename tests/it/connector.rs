//! Connectors: the catalog, and instances whose secrets are written and never read.

mod catalog;
mod create;
mod delete;
mod get;
mod list;
mod test;
mod update;
