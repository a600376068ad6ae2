//! Schemas of the answers of connector instances' endpoints, derived from the answers received.

use kanat_model::Timestamp;
use kanat_model::id::InstanceId;
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSchema {
    pub instance_id: InstanceId,
    /// Method and path.
    pub endpoint: String,
    /// JSON of what the last check accepted; absent before the first.
    pub accepted: Option<String>,
    /// JSON of what was seen since then.
    pub seen: String,
    /// How many answers it was told from.
    pub samples: u64,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub checked_at: Option<Timestamp>,
}

/// Columns that make up a row.
const COLUMNS: &str = "instance_id, endpoint, accepted, seen, samples, first_seen_at, \
                       last_seen_at, checked_at";

fn read(row: &AnyRow) -> Result<EndpointSchema, Error> {
    Ok(EndpointSchema {
        instance_id: row.id("instance_id")?,
        endpoint: row.text("endpoint")?,
        accepted: row.optional_text("accepted")?,
        seen: row.text("seen")?,
        samples: row.whole("samples")?,
        first_seen_at: row.time("first_seen_at")?,
        last_seen_at: row.time("last_seen_at")?,
        checked_at: row.optional_time("checked_at")?,
    })
}

const PUT: &str = sql!(
    "INSERT INTO endpoint_schema ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON \
     CONFLICT (instance_id, endpoint) DO UPDATE SET accepted = excluded.accepted, seen = \
     excluded.seen, samples = excluded.samples, last_seen_at = excluded.last_seen_at, \
     checked_at = excluded.checked_at"
);

/// Writes what is known of an endpoint.
pub async fn put(db: &mut Db, schema: &EndpointSchema) -> Result<(), Error> {
    sqlx::query(PUT)
        .bind(schema.instance_id.as_str())
        .bind(schema.endpoint.as_str())
        .bind(schema.accepted.as_deref())
        .bind(schema.seen.as_str())
        .bind(i64::try_from(schema.samples).unwrap_or(i64::MAX))
        .bind(schema.first_seen_at.as_millis())
        .bind(schema.last_seen_at.as_millis())
        .bind(schema.checked_at.map(Timestamp::as_millis))
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str =
    sql!("SELECT {COLUMNS} FROM endpoint_schema WHERE instance_id = $1 AND endpoint = $2");

/// Returns the schema of one endpoint.
pub async fn get(
    db: &mut Db,
    instance: &InstanceId,
    endpoint: &str,
) -> Result<Option<EndpointSchema>, Error> {
    let row = sqlx::query(GET)
        .bind(instance.as_str())
        .bind(endpoint)
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM endpoint_schema WHERE instance_id = $1";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM endpoint_schema WHERE instance_id = $1 ORDER BY endpoint LIMIT $2 \
     OFFSET $3"
);

/// The endpoints of an instance by name.
pub async fn list(
    db: &mut Db,
    instance: &InstanceId,
    page: Page,
) -> Result<ListPage<EndpointSchema>, Error> {
    let total = sqlx::query(COUNT)
        .bind(instance.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(LIST)
        .bind(instance.as_str())
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
