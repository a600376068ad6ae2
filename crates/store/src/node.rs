//! Data-plane nodes as they were last seen: so that one that is away is still listed, and so that
//! one control plane knows of the nodes of the others.

pub mod environment;

use std::collections::HashMap;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, NodeId};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};
pub use environment::Running;

#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// State of each environment that the node serves, in order of their ids.
    pub environments: Vec<Running>,
    /// It serves all environments, those too that it does not run yet.
    pub serves_all: bool,
    pub last_seen_at: Timestamp,
}

/// Columns that make up a row.
const COLUMNS: &str = "id, boot_id, address, build, control_plane, status, in_flight, \
                       environments, last_seen_at";

fn read(row: &AnyRow) -> Result<Node, Error> {
    Ok(Node {
        id: row.id("id")?,
        boot_id: row.id("boot_id")?,
        address: row.text("address")?,
        build: row.text("build")?,
        control_plane: row.id("control_plane")?,
        status: row.text("status")?,
        in_flight: row.whole("in_flight")?,
        environments: Vec::new(),
        serves_all: row.text("environments")? == ALL_ENVIRONMENTS,
        last_seen_at: row.time("last_seen_at")?,
    })
}

/// Value of the column `environments` for a node that serves all of them.
const ALL_ENVIRONMENTS: &str = "all";
/// Value of the column `environments` for a node that named those that it serves, which have rows
/// of their own.
const NAMED_ENVIRONMENTS: &str = "[]";

// The columns `epoch`, `generation` and `set_hash` are those of builds that wrote no
// `node_environment`.
const UPSERT: &str = "INSERT INTO node (id, boot_id, address, build, control_plane, status, \
                      in_flight, environments, epoch, generation, set_hash, first_seen_at, \
                      last_seen_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $9, '', 0, '', $8, $8) ON \
                      CONFLICT (id) DO UPDATE SET boot_id = excluded.boot_id, address = \
                      excluded.address, build = excluded.build, control_plane = \
                      excluded.control_plane, status = excluded.status, in_flight = \
                      excluded.in_flight, environments = excluded.environments, last_seen_at = \
                      excluded.last_seen_at WHERE node.last_seen_at <= excluded.last_seen_at";

/// Writes down how the node was last seen, without its environments; `false` when somebody has seen
/// it later, whose word stands.
pub async fn upsert(db: &mut Db, node: &Node) -> Result<bool, Error> {
    let written = sqlx::query(UPSERT)
        .bind(node.id.as_str())
        .bind(node.boot_id.as_str())
        .bind(node.address.as_str())
        .bind(node.build.as_str())
        .bind(node.control_plane.as_str())
        .bind(node.status.as_str())
        .bind(i64::from(node.in_flight))
        .bind(node.last_seen_at.as_millis())
        .bind(if node.serves_all {
            ALL_ENVIRONMENTS
        } else {
            NAMED_ENVIRONMENTS
        })
        .execute(db)
        .await?;
    Ok(written.rows_affected() > 0)
}

const ALL: &str = sql!("SELECT {COLUMNS} FROM node ORDER BY last_seen_at DESC, id");

/// All nodes, those seen last first.
pub async fn all(db: &mut Db) -> Result<Vec<Node>, Error> {
    let rows = sqlx::query(ALL).fetch_all(&mut *db).await?;
    with_environments(rows, environment::all(db).await?)
}

const ELSEWHERE: &str = sql!(
    "SELECT {COLUMNS} FROM node WHERE control_plane <> '' AND control_plane <> $1 AND \
     last_seen_at > $2 ORDER BY id"
);

/// Nodes connected to other control planes than `own`, seen after `since`.
pub async fn elsewhere(db: &mut Db, own: &BootId, since: Timestamp) -> Result<Vec<Node>, Error> {
    let rows = sqlx::query(ELSEWHERE)
        .bind(own.as_str())
        .bind(since.as_millis())
        .fetch_all(&mut *db)
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    with_environments(rows, environment::elsewhere(db, own, since).await?)
}

const DELETE_UNSEEN: &str = "DELETE FROM node WHERE last_seen_at < $1";

/// Forgets nodes that were not seen since `before`, and says how many.
pub async fn delete_unseen(db: &mut Db, before: Timestamp) -> Result<u64, Error> {
    environment::delete_unseen(db, before).await?;
    Ok(sqlx::query(DELETE_UNSEEN)
        .bind(before.as_millis())
        .execute(db)
        .await?
        .rows_affected())
}

fn with_environments(
    rows: Vec<AnyRow>,
    environments: Vec<(NodeId, Running)>,
) -> Result<Vec<Node>, Error> {
    let mut by_node: HashMap<NodeId, Vec<Running>> = HashMap::new();
    for (node, running) in environments {
        by_node.entry(node).or_default().push(running);
    }
    let nodes = rows.iter().map(|row| {
        let mut node = read(row)?;
        node.environments = by_node.remove(&node.id).unwrap_or_default();
        Ok(node)
    });
    nodes.collect()
}
