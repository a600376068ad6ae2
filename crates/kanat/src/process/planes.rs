//! Options of a node, from the settings that several kinds of processes share.

use std::net::SocketAddr;

use anyhow::Result;

use super::folder::Folder;
use super::{backlog, identity};
use crate::settings::{node, process};

/// Returns the options of a node of all environments that listens on this address.
///
/// # Errors
/// The node's id cannot be read or kept, or its backlog has no bounds.
pub fn node_options(
    process: &process::Settings,
    node: &node::Settings,
    folder: &Folder,
    address: SocketAddr,
) -> Result<kanat_data_plane::Options> {
    let node_id = identity::node_id(folder.path())?;
    let mut options = kanat_data_plane::Options::new(node_id, process.data_dir.clone());
    options.address = address.to_string();
    options.body_limit = node.body_limit;
    options.poll_answer = node.poll_answer_limit;
    options.lease = node.lease;
    options.backlog = backlog::limits(node, process)?;
    options.adapters = process.adapters.0.clone();
    env!("CARGO_PKG_VERSION").clone_into(&mut options.build);
    Ok(options)
}
