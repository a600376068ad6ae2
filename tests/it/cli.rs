//! The command line on a whole service: what the binary's own tests, which need no target, do not
//! reach.

mod adapter;
mod api_key;
mod batch;
mod environment;
mod eval;
mod flow;
mod login;
mod lookup;
mod message;
mod oidc;
mod published_api;
mod schedule;
mod search;
mod stranger;
