//! State of the nodes in the environments that they serve.

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId, NodeId};

use crate::record::record;
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Result};

record! {
    /// State of a node in one environment.
    pub struct EnvironmentStatus {
        pub environment_id: EnvironmentId,
        /// Epoch, generation and set hash (hexadecimal) of what it applied last; empty, 0 and empty
        /// before that.
        pub epoch: String,
        pub generation: u64,
        pub set_hash: String,
        /// The resources that it refused, and why.
        pub rejected: Vec<(String, String)>,
    }
}

const ALL: &str = sql!(
    EnvironmentStatus,
    "SELECT node_id, {COLUMNS} FROM node_environment ORDER BY node_id, environment_id"
);

/// Returns the states of all nodes, in order of nodes and environments.
pub(super) async fn all(db: &mut Db) -> Result<Vec<(NodeId, EnvironmentStatus)>> {
    db.all(ALL, &[]).await
}

statements! {
    /// Writes down what the node runs of an environment.
    fn upsert(node: &NodeId, ..running: &EnvironmentStatus) =
        "INSERT INTO node_environment ({COLUMNS}, node_id) VALUES ({VALUES}, $6) ON CONFLICT \
         (node_id, environment_id) DO UPDATE SET epoch = excluded.epoch, generation = \
         excluded.generation, set_hash = excluded.set_hash, rejected = excluded.rejected";

    /// Deletes the states of a node in all environments.
    fn delete_of_node(node: &NodeId) = "DELETE FROM node_environment WHERE node_id = $1";

    /// Returns the states of nodes that are connected to other control planes than `own` and were
    /// seen after `since`.
    fn elsewhere(own: &BootId, since: Timestamp) -> Vec<(NodeId, EnvironmentStatus)> =
        "SELECT node_id, environment_id, n.epoch, n.generation, n.set_hash, rejected FROM \
         node_environment n JOIN node ON node.id = n.node_id WHERE node.control_plane <> '' AND \
         node.control_plane <> $1 AND node.last_seen_at > $2 ORDER BY node_id, environment_id";

    /// Forgets the same of nodes that were not seen since `before`.
    fn delete_unseen(before: Timestamp) =
        "DELETE FROM node_environment WHERE node_id IN (SELECT id FROM node WHERE last_seen_at < \
         $1)";
}
