//! API keys: shown once, bounded by role, environment and expiry.

mod create;
mod delete;
mod list;
