//! State of the nodes in the environments that they serve.

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId, NodeId};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

/// State of a node in one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub environment_id: EnvironmentId,
    /// Epoch, generation and set hash (hexadecimal) of what it applied last; empty, 0 and empty
    /// before that.
    pub epoch: String,
    pub generation: u64,
    pub set_hash: String,
    /// The resources that it refused, and why.
    pub rejected: Vec<(String, String)>,
}

/// Columns that make up a row.
const COLUMNS: &str = "node_id, environment_id, epoch, generation, set_hash, rejected";

fn read(row: &AnyRow) -> Result<(NodeId, Running), Error> {
    let rejected = row.text("rejected")?;
    let running = Running {
        environment_id: row.id("environment_id")?,
        epoch: row.text("epoch")?,
        generation: row.whole("generation")?,
        set_hash: row.text("set_hash")?,
        rejected: serde_json::from_str(&rejected).map_err(|_| Error::Corrupt {
            column: "rejected",
            value: rejected.clone(),
        })?,
    };
    Ok((row.id("node_id")?, running))
}

const UPSERT: &str = sql!(
    "INSERT INTO node_environment ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT \
     (node_id, environment_id) DO UPDATE SET epoch = excluded.epoch, generation = \
     excluded.generation, set_hash = excluded.set_hash, rejected = excluded.rejected"
);

/// Writes down what the node runs of an environment.
pub async fn upsert(db: &mut Db, node: &NodeId, running: &Running) -> Result<(), Error> {
    sqlx::query(UPSERT)
        .bind(node.as_str())
        .bind(running.environment_id.as_str())
        .bind(running.epoch.as_str())
        .bind(i64::try_from(running.generation).unwrap_or(i64::MAX))
        .bind(running.set_hash.as_str())
        .bind(serde_json::json!(running.rejected).to_string())
        .execute(db)
        .await?;
    Ok(())
}

const DELETE: &str = "DELETE FROM node_environment WHERE node_id = $1 AND environment_id = $2";

/// The node no longer serves the environment.
pub async fn delete(db: &mut Db, node: &NodeId, environment: &EnvironmentId) -> Result<(), Error> {
    sqlx::query(DELETE)
        .bind(node.as_str())
        .bind(environment.as_str())
        .execute(db)
        .await?;
    Ok(())
}

const ALL: &str = sql!("SELECT {COLUMNS} FROM node_environment ORDER BY node_id, environment_id");

/// Returns the states of all nodes, in order of nodes and environments.
pub(super) async fn all(db: &mut Db) -> Result<Vec<(NodeId, Running)>, Error> {
    sqlx::query(ALL)
        .fetch_all(db)
        .await?
        .iter()
        .map(read)
        .collect()
}

const ELSEWHERE: &str = "SELECT node_id, environment_id, n.epoch, n.generation, n.set_hash, \
                         rejected FROM node_environment n JOIN node ON node.id = n.node_id WHERE \
                         node.control_plane <> '' AND node.control_plane <> $1 AND \
                         node.last_seen_at > $2 ORDER BY node_id, environment_id";

/// Returns the states of nodes that are connected to other control planes than `own` and were seen
/// after `since`.
pub(super) async fn elsewhere(
    db: &mut Db,
    own: &BootId,
    since: Timestamp,
) -> Result<Vec<(NodeId, Running)>, Error> {
    let rows = sqlx::query(ELSEWHERE)
        .bind(own.as_str())
        .bind(since.as_millis())
        .fetch_all(db)
        .await?;
    rows.iter().map(read).collect()
}

const DELETE_UNSEEN: &str =
    "DELETE FROM node_environment WHERE node_id IN (SELECT id FROM node WHERE last_seen_at < $1)";

/// Forgets the same of nodes that were not seen since `before`.
pub(super) async fn delete_unseen(db: &mut Db, before: Timestamp) -> Result<(), Error> {
    sqlx::query(DELETE_UNSEEN)
        .bind(before.as_millis())
        .execute(db)
        .await?;
    Ok(())
}
