//! The last run of a schedule: its message, and how that ended.

use kanat_model::Timestamp;
use kanat_model::id::{MessageId, ScheduleId};
use kanat_model::schedule::RunStatus;
use sqlx::any::AnyRow;

use super::{Schedule, select};
use crate::row::RowExt;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub at: Timestamp,
    pub message_id: MessageId,
    /// As it was written last; while it is `running`, the message knows better.
    pub status: RunStatus,
}

pub(super) fn read(row: &AnyRow) -> Result<Option<Run>, Error> {
    let at = row.optional_time("last_run_at")?;
    let message = row.optional_text("last_message_id")?;
    let (Some(at), Some(message), Some(status)) =
        (at, message, row.optional_text("last_run_status")?)
    else {
        return Ok(None);
    };
    let status = RunStatus::parse(&status).ok_or(Error::Corrupt {
        column: "last_run_status",
        value: status,
    })?;
    Ok(Some(Run {
        at,
        message_id: message.into(),
        status,
    }))
}

const RECORD: &str = "UPDATE schedule SET last_run_at = $2, last_message_id = $3, last_run_status \
                      = 'running' WHERE id = $1 AND (last_run_at IS NULL OR last_run_at <= $2) \
                      AND (last_message_id IS NULL OR last_message_id <> $3)";

/// Notes a run that has begun, unless a later one was noted, or this one.
pub async fn record(
    db: &mut Db,
    id: &ScheduleId,
    at: Timestamp,
    message: &MessageId,
) -> Result<(), Error> {
    sqlx::query(RECORD)
        .bind(id.as_str())
        .bind(at.as_millis())
        .bind(message.as_str())
        .execute(db)
        .await?;
    Ok(())
}

const RUNNING: &str = select!(
    "WHERE last_run_status = 'running' AND (last_run_at > $1 OR (last_run_at = $1 AND schedule.id \
     > $2)) ORDER BY last_run_at, schedule.id LIMIT $3"
);

/// Schedules whose last run had not ended when it was looked at last, in order, after this place.
pub async fn running(
    db: &mut Db,
    after: (Timestamp, &ScheduleId),
    limit: u32,
) -> Result<Vec<Schedule>, Error> {
    let rows = sqlx::query(RUNNING)
        .bind(after.0.as_millis())
        .bind(after.1.as_str())
        .bind(i64::from(limit))
        .fetch_all(db)
        .await?;
    rows.iter().map(super::read).collect()
}

const END: &str = "UPDATE schedule SET last_run_status = $3 WHERE id = $1 AND last_message_id = $2";

/// Notes how a run ended, if it is still the last one.
pub async fn end(
    db: &mut Db,
    id: &ScheduleId,
    message: &MessageId,
    status: RunStatus,
) -> Result<(), Error> {
    sqlx::query(END)
        .bind(id.as_str())
        .bind(message.as_str())
        .bind(status.as_str())
        .execute(db)
        .await?;
    Ok(())
}
