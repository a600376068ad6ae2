//! Data-plane nodes as they were last seen: so that one that is away is still listed, and so that
//! one control plane knows of the nodes of the others.

pub mod environment;

use std::collections::HashMap;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::{Db, Result};
pub use environment::EnvironmentStatus;

record! {
    pub struct Node {
        pub id: NodeId,
        pub boot_id: BootId,
        /// Address that operators reach it at; may be empty.
        pub address: String,
        /// Version of the build.
        pub build: String,
        /// The boot of the control plane that it is connected to; empty when to none.
        pub control_plane: BootId,
        /// In the words of the API.
        pub status: String,
        /// Messages that it works on.
        pub in_flight: u32,
        pub last_seen_at: Timestamp,
    } read {
        /// It serves all environments, those too that it does not run yet.
        pub serves_all: bool,
    } default {
        /// State of each environment that the node serves, in order of their ids.
        pub environments: Vec<EnvironmentStatus>,
    }
}

/// Value of the column `environments` for a node that serves all of them.
const ALL_ENVIRONMENTS: &str = "all";
/// Value of the column `environments` for a node that named those that it serves, which have rows
/// of their own.
const NAMED_ENVIRONMENTS: &str = "[]";

// The columns `epoch`, `generation` and `set_hash` are those of builds that wrote no
// `node_environment`.
const UPSERT: &str = sql!(
    Node,
    "INSERT INTO node ({COLUMNS}, environments, epoch, generation, set_hash, first_seen_at) \
     VALUES ({VALUES}, $9, '', 0, '', {last_seen_at}) ON CONFLICT (id) DO UPDATE SET boot_id = \
     excluded.boot_id, address = excluded.address, build = excluded.build, control_plane = \
     excluded.control_plane, status = excluded.status, in_flight = excluded.in_flight, \
     environments = excluded.environments, last_seen_at = excluded.last_seen_at WHERE \
     node.last_seen_at <= excluded.last_seen_at"
);

/// Writes the node's state without its environments. Returns `false` if another control plane has
/// seen the node later: its record stays.
pub async fn upsert(db: &mut Db, node: &Node) -> Result<bool> {
    let environments = if node.serves_all {
        ALL_ENVIRONMENTS
    } else {
        NAMED_ENVIRONMENTS
    };
    db.changes(UPSERT, &node.values_and(&[&environments])).await
}

/// A statement that reads nodes without their environments.
macro_rules! select {
    ($rest:literal) => {
        sql!(
            Node,
            concat!(
                "SELECT {COLUMNS}, CASE environments WHEN 'all' THEN CAST(1 AS BIGINT) ELSE \
                 CAST(0 AS BIGINT) END AS serves_all FROM node ",
                $rest
            )
        )
    };
}

const ALL: &str = select!("ORDER BY last_seen_at DESC, id");

/// All nodes, those seen last first.
pub async fn all(db: &mut Db) -> Result<Vec<Node>> {
    let nodes = db.all(ALL, &[]).await?;
    with_environments(nodes, environment::all(db).await?)
}

const ELSEWHERE: &str =
    select!("WHERE control_plane <> '' AND control_plane <> $1 AND last_seen_at > $2 ORDER BY id");

/// Nodes connected to other control planes than `own`, seen after `since`.
pub async fn elsewhere(db: &mut Db, own: &BootId, since: Timestamp) -> Result<Vec<Node>> {
    let nodes: Vec<Node> = db.all(ELSEWHERE, &[own, &since]).await?;
    if nodes.is_empty() {
        return Ok(nodes);
    }
    with_environments(nodes, environment::elsewhere(db, own, since).await?)
}

const DELETE_UNSEEN: &str = "DELETE FROM node WHERE last_seen_at < $1";

/// Forgets nodes that were not seen since `before`, and says how many.
pub async fn delete_unseen(db: &mut Db, before: Timestamp) -> Result<u64> {
    environment::delete_unseen(db, before).await?;
    db.execute(DELETE_UNSEEN, &[&before]).await
}

fn with_environments(
    mut nodes: Vec<Node>,
    environments: Vec<(NodeId, EnvironmentStatus)>,
) -> Result<Vec<Node>> {
    let mut by_node: HashMap<NodeId, Vec<EnvironmentStatus>> = HashMap::new();
    for (node, running) in environments {
        by_node.entry(node).or_default().push(running);
    }
    for node in &mut nodes {
        node.environments = by_node.remove(&node.id).unwrap_or_default();
    }
    Ok(nodes)
}
