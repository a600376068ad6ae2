//! The records of batch jobs, each by its place in its job.

use kanat_model::id::{BatchJobId, MessageId};
use kanat_model::page::{ListPage, Page};

use crate::column::Value;
use crate::record::record;
use crate::statement::statements;
use crate::{Db, Result};

record! {
    /// A record that has begun and not ended.
    pub struct StartedRecord {
        pub position: i64,
        /// None until its message is in the log.
        pub message_id: Option<MessageId>,
        /// JSON; empty when it has a message.
        pub payload: String,
    }
}

record! {
    /// A record that failed, and why.
    pub struct FailedRecord {
        pub position: i64,
        /// None when there never was one.
        pub message_id: Option<MessageId>,
        pub kind: String,
        pub message: String,
        pub field: Option<String>,
        /// JSON.
        pub payload: String,
    }
}

/// End of a record of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordEnd {
    pub position: i64,
    pub end: End,
    /// Its message was made before the job, of the same idempotency key.
    pub is_repeat: bool,
}

/// How a record ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Its message was delivered.
    Succeeded,
    /// The flow's condition was false for its message; a success, too.
    Filtered,
    Failed {
        kind: String,
        message: String,
        field: Option<String>,
    },
}

const INSERT: &str = "INSERT INTO batch_record (job_id, position, payload, state) VALUES";

/// Adds records, JSON texts, in their order; the first one gets the place `first`.
pub async fn insert(db: &mut Db, job: &BatchJobId, first: u32, payloads: &[String]) -> Result<()> {
    let numbered: Vec<(i64, &String)> = (i64::from(first)..).zip(payloads).collect();
    let mut rows: Vec<[&dyn Value; 4]> = Vec::with_capacity(payloads.len());
    for (position, payload) in &numbered {
        rows.push([job, position, *payload, &"pending"]);
    }
    db.insert_rows(INSERT, &rows, "").await
}

const COPY: &str = "INSERT INTO batch_record (job_id, position, state, payload) \
    SELECT $2, ROW_NUMBER() OVER (ORDER BY position) - 1, 'pending', payload FROM batch_record \
    WHERE job_id = $1 AND (state = 'failed' OR state = $3)";

/// Records of a job that another one takes up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryScope {
    Failed,
    /// Records that failed, and records that never began.
    FailedAndPending,
}

/// Makes such records of one job those of another; says how many.
pub async fn copy(
    db: &mut Db,
    from: &BatchJobId,
    to: &BatchJobId,
    left: RetryScope,
) -> Result<u64> {
    let other = match left {
        RetryScope::Failed => "failed",
        RetryScope::FailedAndPending => "pending",
    };
    db.execute(COPY, &[from, to, &other]).await
}

const NEXT: &str = "SELECT position FROM batch_record WHERE job_id = $1 AND state = 'pending' \
    ORDER BY position LIMIT $2";
const START: &str = "UPDATE batch_record SET state = 'started' \
    WHERE job_id = $1 AND state = 'pending' AND position <= $2";

/// Begins the next records, at most `limit`; says how many.
pub async fn start_next(db: &mut Db, job: &BatchJobId, limit: u32) -> Result<u64> {
    let positions: Vec<i64> = db.all(NEXT, &[job, &limit]).await?;
    let Some(last) = positions.last() else {
        return Ok(0);
    };
    db.execute(START, &[job, last]).await
}

statements! {
    /// Returns the records that have begun and not ended, by position.
    fn started(job: &BatchJobId) -> Vec<StartedRecord> =
        "SELECT position, message_id, CASE WHEN message_id IS NULL THEN payload ELSE '' END AS \
         payload FROM batch_record WHERE job_id = $1 AND state = 'started' ORDER BY position";

    /// Its message is in the log.
    fn set_message(job: &BatchJobId, position: i64, message: &MessageId) =
        "UPDATE batch_record SET message_id = $3 WHERE job_id = $1 AND position = $2";

    /// How many are under way.
    fn count_started(job: &BatchJobId) -> u32 =
        "SELECT COUNT(*) AS total FROM batch_record WHERE job_id = $1 AND state = 'started'";

    /// How many succeeded because the flow's condition was false for them. Records that ended under
    /// an earlier build are not counted.
    fn count_filtered(job: &BatchJobId) -> u32 =
        "SELECT COUNT(*) AS total FROM batch_record WHERE job_id = $1 AND state = 'filtered'";

    /// How many succeeded by the message of an earlier record, of the job or from before it.
    /// Records that ended under an earlier build count only where the earlier record is of the job.
    fn count_repeats(job: &BatchJobId) -> u32 =
        "SELECT COUNT(*) - COUNT(DISTINCT CASE WHEN error_kind IS NULL THEN message_id END) AS \
         total FROM batch_record WHERE job_id = $1 AND state IN ('succeeded', 'filtered')";

    /// Returns the error of the first record that failed in this way.
    fn first_failure(job: &BatchJobId, kind: &str) -> Option<String> =
        "SELECT error_message FROM batch_record WHERE job_id = $1 AND state = 'failed' AND \
         error_kind = $2 ORDER BY position LIMIT 1";

    /// Drops all records of a job.
    fn delete(job: &BatchJobId) = "DELETE FROM batch_record WHERE job_id = $1";
}

const SUCCEEDED: &str = "UPDATE batch_record SET state = $3, payload = '', error_kind = $4 \
    WHERE job_id = $1 AND position = $2 AND state = 'started'";
/// Value of `error_kind` of a record that succeeded by a message from before its job.
const REPEAT: &str = "repeat";
const FAILED: &str = "UPDATE batch_record SET state = 'failed', error_kind = $3, error_message = \
                      $4, error_field = $5 WHERE job_id = $1 AND position = $2 AND state = \
                      'started'";

/// Ends a record; returns whether this call did it.
pub async fn end(db: &mut Db, job: &BatchJobId, ended: &RecordEnd) -> Result<bool> {
    let position = ended.position;
    let note = ended.is_repeat.then(|| REPEAT.to_owned());
    let ended = match &ended.end {
        End::Succeeded => {
            db.execute(SUCCEEDED, &[job, &position, &"succeeded", &note])
                .await?
        }
        End::Filtered => {
            db.execute(SUCCEEDED, &[job, &position, &"filtered", &note])
                .await?
        }
        End::Failed {
            kind,
            message,
            field,
        } => {
            let values: [&dyn Value; 5] = [job, &position, kind, message, field];
            db.execute(FAILED, &values).await?
        }
    };
    Ok(ended > 0)
}

const FAIL_REST: &str = "UPDATE batch_record SET state = 'failed', error_kind = $2, error_message \
                         = $3 WHERE job_id = $1 AND ((state = 'started' AND message_id IS NULL) \
                         OR (state = 'pending' AND EXISTS (SELECT 1 FROM batch_job WHERE id = $1 \
                         AND status <> 'cancelled')))";

/// Fails the records that have no message; says how many. Those that a cancelled job did not begin
/// stay as they are.
pub async fn fail_rest(db: &mut Db, job: &BatchJobId, kind: &str, message: &str) -> Result<u64> {
    db.execute(FAIL_REST, &[job, &kind, &message]).await
}

const PAYLOAD: &str = "SELECT payload FROM batch_record WHERE job_id = $1 AND position = $2";

/// Returns the JSON of a record; empty once it has succeeded.
pub async fn payload(db: &mut Db, job: &BatchJobId, position: i64) -> Result<String> {
    let found: Option<String> = db.first(PAYLOAD, &[job, &position]).await?;
    Ok(found.unwrap_or_default())
}

const COUNT_FAILED: &str =
    "SELECT COUNT(*) AS total FROM batch_record WHERE job_id = $1 AND state = 'failed'";
const LIST_FAILED: &str = "SELECT position, message_id, COALESCE(error_kind, '') AS kind, \
                           COALESCE(error_message, '') AS message, error_field AS field, payload \
                           FROM batch_record WHERE job_id = $1 AND state = 'failed' ORDER BY \
                           position LIMIT $2 OFFSET $3";

/// Returns the records that failed, by position.
pub async fn failed(db: &mut Db, job: &BatchJobId, page: Page) -> Result<ListPage<FailedRecord>> {
    db.page(COUNT_FAILED, LIST_FAILED, &[job], page).await
}
