//! JSON over HTTP to gRPC and back, driven by the descriptor set alone: it knows no resource by
//! name. A method's `google.api.http` and `kanat.v1.rest` options define its REST form; this
//! crate turns a request into one gRPC call on a service in the same process, and the answer into
//! JSON, a file, a text or server-sent events.
//!
//! Guarantees to callers:
//!
//! - Every answer that is an error has the body
//!   `{error, code, details: [{field, message}], requestId}`.
//! - A field is taken by its JSON name, in camelCase or in snake_case; an unknown, doubled or
//!   wrongly typed one is refused by its path, such as `entries[2].key`.
//! - `kanat.v1.Json` stands in place, in both directions, with its digits and the order of its
//!   keys.

mod annotation;
mod answer;
mod call;
mod decode;
mod encode;
mod error;
mod field;
mod gateway;
mod header;
mod input;
mod json;
mod percent;
mod route;
mod sse;

pub use gateway::{Error, Gateway, Options, PathVariables, RouteInfo};
