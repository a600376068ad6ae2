//! Published APIs as a node holds them: their versions, the paths and hosts that lead to them, and
//! the keys of their consumers.

pub(crate) mod api;
mod host;
pub(crate) mod keys;
pub(crate) mod path;
mod response_mapping;
mod routes;

pub(crate) use api::Api;
pub(crate) use host::{Coverage, Hosts, Settings};
pub(crate) use keys::{Key, Keys};
pub(crate) use response_mapping::ResponseMapping;
pub(crate) use routes::Routes;
