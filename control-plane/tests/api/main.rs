//! The control plane through its own gRPC clients, in process: real stores on disk, no node.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so where it stands"
)]

mod bounds;
mod flow;
mod lookup_table;
mod plane;
