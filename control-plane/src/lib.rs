//! The control plane: owns configuration, compiles it into plans, and pushes these to nodes. It
//! runs no message.
//!
//! A call goes [`authentication`] -> `idempotency` -> [`grpc`] (one thin method) -> [`app`] (the
//! use-case: check, read, decide, write in one transaction, publish the change) -> the store; what
//! was published reaches the nodes through [`push`]. REST calls take the same way: the gateway
//! turns them into gRPC calls in process.

mod admission;
pub mod app;
pub mod authentication;
mod carry;
mod control_plane;
mod cors;
mod deadline;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod grpc;
mod idempotency;
mod identity;
mod jobs;
mod master_key;
mod middleware;
mod monitor;
mod public_url;
pub mod push;
mod request;
mod retention;
mod service;
mod tasks;
mod validation;

pub use control_plane::{ControlPlane, Error, Options};
pub use identity::Issuer;
pub use monitor::Monitor;
pub use public_url::PublicUrl;
pub use push::remote::{BoundCredential, BoundNode, NodeAuthenticator};
pub use retention::Retention;
pub use service::PublicService;
