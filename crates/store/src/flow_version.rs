//! Deployed versions of flows. They are written once.

use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowVersion {
    pub flow_id: FlowId,
    /// From 1.
    pub version: u32,
    /// Its secrets masked.
    pub yaml_config: String,
    /// As it was written, sealed; `None` when that is `yaml_config`.
    pub sealed_config: Option<Vec<u8>>,
    pub change_summary: String,
    pub created_at: Timestamp,
    /// Name of the key that deployed it.
    pub created_by: String,
}

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "flow_id, version, yaml_config, sealed_config, change_summary, \
                       created_at, created_by";

fn read(row: &AnyRow) -> Result<FlowVersion, Error> {
    Ok(FlowVersion {
        flow_id: row.id("flow_id")?,
        version: row.whole("version")?,
        yaml_config: row.text("yaml_config")?,
        sealed_config: row.optional_bytes("sealed_config")?,
        change_summary: row.text("change_summary")?,
        created_at: row.time("created_at")?,
        created_by: row.text("created_by")?,
    })
}

const INSERT: &str =
    sql!("INSERT INTO flow_version ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)");

pub async fn insert(db: &mut Db, version: &FlowVersion) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(version.flow_id.as_str())
        .bind(i64::from(version.version))
        .bind(version.yaml_config.as_str())
        .bind(version.sealed_config.clone())
        .bind(version.change_summary.as_str())
        .bind(version.created_at.as_millis())
        .bind(version.created_by.as_str())
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str = sql!("SELECT {COLUMNS} FROM flow_version WHERE flow_id = $1 AND version = $2");

pub async fn get(db: &mut Db, flow: &FlowId, version: u32) -> Result<Option<FlowVersion>, Error> {
    let row = sqlx::query(GET)
        .bind(flow.as_str())
        .bind(i64::from(version))
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

/// A version that is deployed, with what its flow says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    pub version: FlowVersion,
    pub environment_id: EnvironmentId,
    pub flow_name: String,
}

const RUNNING: &str = "SELECT v.flow_id, v.version, v.yaml_config, v.sealed_config, \
                       v.change_summary, v.created_at, v.created_by, flow.environment_id AS \
                       environment_id, flow.name AS name FROM flow JOIN flow_version v ON \
                       v.flow_id = flow.id AND v.version = flow.version WHERE flow.deleted_at IS \
                       NULL AND flow.id > $1 AND v.yaml_config LIKE $2 ORDER BY flow.id LIMIT $3";

/// Returns deployed versions of all environments whose definition has `word` in it, in order of
/// their flows' ids, after the flow `after`.
pub async fn running(
    db: &mut Db,
    word: &str,
    after: &FlowId,
    limit: u32,
) -> Result<Vec<Running>, Error> {
    let rows = sqlx::query(RUNNING)
        .bind(after.as_str())
        .bind(format!("%{word}%"))
        .bind(i64::from(limit))
        .fetch_all(db)
        .await?;
    let running = |row: &AnyRow| {
        Ok(Running {
            version: read(row)?,
            environment_id: row.id("environment_id")?,
            flow_name: row.text("name")?,
        })
    };
    rows.iter().map(running).collect()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM flow_version WHERE flow_id = $1";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM flow_version WHERE flow_id = $1 ORDER BY version DESC LIMIT $2 OFFSET $3"
);

/// The flow's versions, newest first.
pub async fn list(db: &mut Db, flow: &FlowId, page: Page) -> Result<ListPage<FlowVersion>, Error> {
    let total = sqlx::query(COUNT)
        .bind(flow.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(LIST)
        .bind(flow.as_str())
        .bind(i64::from(page.limit))
        .bind(i64::from(page.offset))
        .fetch_all(db)
        .await?;
    Ok(ListPage {
        items: rows.iter().map(read).collect::<Result<_, _>>()?,
        total,
        page,
    })
}
