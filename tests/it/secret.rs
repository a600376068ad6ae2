//! Secrets are sealed at rest under the master key.

mod canaries;
mod rotate;
