//! How connector instances do, and every change of it.

use kanat_model::Timestamp;
use kanat_model::id::{HealthChangeId, InstanceId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

/// How an instance does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectorHealth {
    pub instance_id: InstanceId,
    pub status: String,
    /// Observation that the status follows from.
    pub reason: String,
    pub since: Timestamp,
    pub updated_at: Timestamp,
}

/// One change of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthChange {
    pub id: HealthChangeId,
    pub instance_id: InstanceId,
    pub previous: String,
    pub status: String,
    pub reason: String,
    pub at: Timestamp,
}

/// Columns that make up a row.
const COLUMNS: &str = "instance_id, status, reason, since, updated_at";

const PUT: &str = sql!(
    "INSERT INTO connector_health ({COLUMNS}) VALUES ($1, $2, $3, $4, $5) ON CONFLICT \
     (instance_id) DO UPDATE SET status = excluded.status, reason = excluded.reason, since = \
     excluded.since, updated_at = excluded.updated_at"
);

/// Writes how an instance does.
pub async fn put(db: &mut Db, health: &ConnectorHealth) -> Result<(), Error> {
    sqlx::query(PUT)
        .bind(health.instance_id.as_str())
        .bind(health.status.as_str())
        .bind(health.reason.as_str())
        .bind(health.since.as_millis())
        .bind(health.updated_at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str = sql!("SELECT {COLUMNS} FROM connector_health WHERE instance_id = $1");

/// How an instance does; none while nothing is known.
pub async fn get(db: &mut Db, instance: &InstanceId) -> Result<Option<ConnectorHealth>, Error> {
    let row = sqlx::query(GET)
        .bind(instance.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

fn read(row: &AnyRow) -> Result<ConnectorHealth, Error> {
    Ok(ConnectorHealth {
        instance_id: row.id("instance_id")?,
        status: row.text("status")?,
        reason: row.text("reason")?,
        since: row.time("since")?,
        updated_at: row.time("updated_at")?,
    })
}

const INSERT_CHANGE: &str = "INSERT INTO connector_health_change (id, instance_id, previous, \
                             status, reason, at) VALUES ($1, $2, $3, $4, $5, $6)";

/// Adds a change to the history.
pub async fn insert_change(db: &mut Db, change: &HealthChange) -> Result<(), Error> {
    sqlx::query(INSERT_CHANGE)
        .bind(change.id.as_str())
        .bind(change.instance_id.as_str())
        .bind(change.previous.as_str())
        .bind(change.status.as_str())
        .bind(change.reason.as_str())
        .bind(change.at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const COUNT_CHANGES: &str =
    "SELECT COUNT(*) AS total FROM connector_health_change WHERE instance_id = $1";
const LIST_CHANGES: &str = "SELECT id, instance_id, previous, status, reason, at FROM \
                            connector_health_change WHERE instance_id = $1 ORDER BY id DESC LIMIT \
                            $2 OFFSET $3";

/// The changes of an instance, newest first.
pub async fn list_changes(
    db: &mut Db,
    instance: &InstanceId,
    page: Page,
) -> Result<ListPage<HealthChange>, Error> {
    let total = sqlx::query(COUNT_CHANGES)
        .bind(instance.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(LIST_CHANGES)
        .bind(instance.as_str())
        .bind(i64::from(page.limit))
        .bind(i64::from(page.offset))
        .fetch_all(db)
        .await?;
    let items = rows.iter().map(|row| {
        Ok(HealthChange {
            id: row.id("id")?,
            instance_id: row.id("instance_id")?,
            previous: row.text("previous")?,
            status: row.text("status")?,
            reason: row.text("reason")?,
            at: row.time("at")?,
        })
    });
    Ok(ListPage {
        items: items.collect::<Result<_, Error>>()?,
        total,
        page,
    })
}

const KEEP_CHANGES: &str = "DELETE FROM connector_health_change WHERE instance_id = $1 AND id NOT \
                            IN (SELECT id FROM connector_health_change WHERE instance_id = $1 \
                            ORDER BY id DESC LIMIT $2)";

/// Drops all but the newest changes of an instance.
pub async fn keep_changes(db: &mut Db, instance: &InstanceId, newest: u32) -> Result<(), Error> {
    sqlx::query(KEEP_CHANGES)
        .bind(instance.as_str())
        .bind(i64::from(newest))
        .execute(db)
        .await?;
    Ok(())
}
