//! Reads of one message.

use bytes::Bytes;
use kanat_model::id::MessageId;
use sqlx::{Row, SqlitePool};

use super::row::{self, fixed_columns, present_columns};
use crate::{Content, Error, Message, Tenant, TraceRecord};

pub(super) const GET: &str = concat!(
    "SELECT ",
    fixed_columns!(),
    ", ",
    present_columns!(),
    " FROM messages AS m INDEXED BY messages_id JOIN bodies AS b ON b.seq = m.seq
     WHERE m.id = ? AND m.account_id = ? AND m.environment_id = ?"
);

pub(super) const CONTENT: &str = "
SELECT b.raw_body, b.payload, b.request FROM messages AS m INDEXED BY messages_id JOIN bodies AS b
    ON b.seq = m.seq
WHERE m.id = ? AND m.account_id = ? AND m.environment_id = ?";

pub(super) const TRACE: &str = "
SELECT m.received_at, m.trigger_kind, t.trace
FROM messages AS m INDEXED BY messages_id LEFT JOIN transitions AS t ON t.message = m.seq
WHERE m.id = ? AND m.account_id = ? AND m.environment_id = ? ORDER BY t.seq";

pub(super) async fn get(
    reader: &SqlitePool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Message>, Error> {
    let query = sqlx::query(GET).bind(id.as_str());
    let query = query
        .bind(tenant.account_id.as_str())
        .bind(tenant.environment_id.as_str());
    query
        .fetch_optional(reader)
        .await?
        .map(|row| row::message(&row))
        .transpose()
}

pub(super) async fn content(
    reader: &SqlitePool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Option<Content>, Error> {
    let query = sqlx::query(CONTENT).bind(id.as_str());
    let query = query
        .bind(tenant.account_id.as_str())
        .bind(tenant.environment_id.as_str());
    let Some(row) = query.fetch_optional(reader).await? else {
        return Ok(None);
    };
    let payload = row
        .try_get::<Option<Vec<u8>>, _>("payload")?
        .map(Bytes::from);
    Ok(Some(Content {
        raw_body: row::bytes(&row, "raw_body")?,
        payload,
        request: row::bytes(&row, "request")?,
    }))
}

/// The records of all its events. The node that runs a message records the arrival; until it does,
/// the log says it.
pub(super) async fn trace(
    reader: &SqlitePool,
    tenant: &Tenant,
    id: &MessageId,
) -> Result<Vec<TraceRecord>, Error> {
    let query = sqlx::query(TRACE).bind(id.as_str());
    let query = query
        .bind(tenant.account_id.as_str())
        .bind(tenant.environment_id.as_str());
    let rows = query.fetch_all(reader).await?;
    let mut records: Vec<TraceRecord> = Vec::new();
    for row in &rows {
        if let Some(text) = row.try_get::<Option<&str>, _>("trace")? {
            let read = serde_json::from_str::<Vec<TraceRecord>>(text);
            records.extend(
                read.map_err(|error| Error::Other(format!("a trace cannot be read: {error}")))?,
            );
        }
    }
    if let Some(row) = rows.first()
        && !records.iter().any(|record| record.stage == "received")
    {
        records.insert(0, received(row)?);
    }
    Ok(records)
}

fn received(row: &sqlx::sqlite::SqliteRow) -> Result<TraceRecord, Error> {
    Ok(TraceRecord {
        at: kanat_model::Timestamp::from_millis(row.try_get("received_at")?),
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

/// Whether the file can be read.
pub(super) async fn is_empty(reader: &SqlitePool) -> Result<bool, Error> {
    let any = sqlx::query_scalar::<_, bool>("SELECT EXISTS (SELECT 1 FROM messages)");
    Ok(!any.fetch_one(reader).await?)
}

pub(super) async fn ping(reader: &SqlitePool) -> Result<(), Error> {
    sqlx::query("SELECT 1 FROM counters")
        .fetch_optional(reader)
        .await?;
    Ok(())
}
