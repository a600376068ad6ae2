//! Reads of one message.

use kanat_model::Timestamp;
use kanat_model::id::MessageId;
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{PgPool, Postgres, Row};

use super::failure::outward;
use super::row::{self, fixed_columns, present_columns};
use super::text::text;
use crate::{Content, Error, Message, Tenant, TraceRecord};

pub(super) const GET: &str = concat!(
    "SELECT ",
    fixed_columns!(),
    ", ",
    present_columns!(),
    " FROM messages AS m JOIN bodies AS b ON b.seq = m.seq
     WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3"
);

pub(super) const CONTENT: &str = "
SELECT b.raw_body, b.payload, b.request FROM messages AS m JOIN bodies AS b ON b.seq = m.seq
WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3";

pub(super) const TRACE: &str = "
SELECT m.received_at, m.trigger_kind, t.trace
FROM messages AS m LEFT JOIN transitions AS t ON t.message = m.seq
WHERE m.id = $1 AND m.account_id = $2 AND m.environment_id = $3 ORDER BY t.seq";

const PING: &str = "SELECT last_value FROM events";

pub(super) async fn get(
    reader: &PgPool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Message>, Error> {
    let row = of(GET, tenant, id)
        .fetch_optional(reader)
        .await
        .map_err(outward)?;
    row.map(|row| row::message(&row))
        .transpose()
        .map_err(outward)
}

pub(super) async fn content(
    reader: &PgPool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Content>, Error> {
    let row = of(CONTENT, tenant, id)
        .fetch_optional(reader)
        .await
        .map_err(outward)?;
    row.map(|row| content_of(&row)).transpose().map_err(outward)
}

/// The records of all its events. The node that runs a message records the arrival; until it does,
/// the log says it.
pub(super) async fn trace(
    reader: &PgPool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Vec<TraceRecord>, Error> {
    let rows = of(TRACE, tenant, id)
        .fetch_all(reader)
        .await
        .map_err(outward)?;
    let mut records: Vec<TraceRecord> = Vec::new();
    for row in &rows {
        if let Some(text) = row.try_get::<Option<&str>, _>("trace").map_err(outward)? {
            let read = serde_json::from_str::<Vec<TraceRecord>>(text);
            records.extend(
                read.map_err(|error| Error::Other(format!("a trace cannot be read: {error}")))?,
            );
        }
    }
    if let Some(row) = rows.first()
        && !records.iter().any(|record| record.stage == "received")
    {
        records.insert(0, received(row).map_err(outward)?);
    }
    Ok(records)
}

/// Whether the database answers.
pub(super) async fn is_empty(reader: &PgPool) -> Result<bool, sqlx::Error> {
    let any = sqlx::query_scalar::<_, bool>("SELECT EXISTS (SELECT 1 FROM messages)");
    Ok(!any.fetch_one(reader).await?)
}

pub(super) async fn ping(reader: &PgPool) -> Result<(), Error> {
    sqlx::query(PING).fetch_one(reader).await.map_err(outward)?;
    Ok(())
}

fn of<'q>(
    statement: &'static str,
    tenant: &'q Tenant,
    id: &'q MessageId,
) -> Query<'q, Postgres, PgArguments> {
    sqlx::query(statement)
        .bind(text(id.as_str()))
        .bind(text(tenant.account_id.as_str()))
        .bind(text(tenant.environment_id.as_str()))
}

fn content_of(row: &PgRow) -> Result<Content, sqlx::Error> {
    Ok(Content {
        raw_body: row::bytes(row, "raw_body")?,
        payload: row::optional_bytes(row, "payload")?,
        request: row::bytes(row, "request")?,
    })
}

fn received(row: &PgRow) -> Result<TraceRecord, sqlx::Error> {
    Ok(TraceRecord {
        at: Timestamp::from_millis(row.try_get("received_at")?),
        stage: "received".to_owned(),
        name: row::trigger(row)?.as_str().to_owned(),
        status: "ok".to_owned(),
        duration_ms: 0,
        request: None,
        response: None,
        error: None,
        attempt: 0,
    })
}
