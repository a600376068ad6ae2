//! The last run of a schedule: its message, and how that ended.

use kanat_model::Timestamp;
use kanat_model::id::{MessageId, ScheduleId};
use kanat_model::schedule::RunStatus;
use sqlx::any::AnyRow;

use super::{Schedule, select};
use crate::record::{Field, RowExt};
use crate::statement::statements;
use crate::{Db, Result};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub at: Timestamp,
    pub message_id: MessageId,
    /// As it was written last; while it is `running`, the message knows better.
    pub status: RunStatus,
}

impl Field for Option<Run> {
    fn read(row: &AnyRow, _: &str) -> Result<Self> {
        let at: Option<Timestamp> = row.column("last_run_at")?;
        let message: Option<MessageId> = row.column("last_message_id")?;
        let status: Option<RunStatus> = row.column("last_run_status")?;
        let run = at.zip(message).zip(status);
        Ok(run.map(|((at, message_id), status)| Run {
            at,
            message_id,
            status,
        }))
    }
}

statements! {
    /// Notes a run that has begun, unless a later one was noted, or this one.
    fn record(id: &ScheduleId, at: Timestamp, message: &MessageId) =
        "UPDATE schedule SET last_run_at = $2, last_message_id = $3, last_run_status = 'running' \
         WHERE id = $1 AND (last_run_at IS NULL OR last_run_at <= $2) AND (last_message_id IS NULL \
         OR last_message_id <> $3)";

    /// Notes how a run ended, if it is still the last one.
    fn end(id: &ScheduleId, message: &MessageId, status: RunStatus) =
        "UPDATE schedule SET last_run_status = $3 WHERE id = $1 AND last_message_id = $2";
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
) -> Result<Vec<Schedule>> {
    db.all(RUNNING, &[&after.0, after.1, &limit]).await
}
