//! Batch jobs; their records are in `batch_job/record.rs`, and those that are still coming in
//! `batch_job/upload.rs`.

pub mod record;
pub mod upload;

use kanat_model::Timestamp;
use kanat_model::batch_job::Status;
use kanat_model::id::{AccountId, BatchJobId, EnvironmentId, FlowId};
use kanat_model::page::{ListPage, Page};

use crate::column::Value;
use crate::record::record;
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Result};

record! {
    pub struct BatchJob in "batch_job" {
        pub id: BatchJobId,
        pub account_id: AccountId,
        pub environment_id: EnvironmentId,
        pub flow_id: FlowId,
        pub status: Status,
        pub total: u32,
        pub concurrency: u32,
        pub succeeded: u32,
        pub failed: u32,
        pub retry_of: Option<BatchJobId>,
        pub created_at: Timestamp,
        pub started_at: Option<Timestamp>,
        pub finished_at: Option<Timestamp>,
    }
}

statements! {
    /// Adds a job of which nothing has begun.
    fn insert(..job: &BatchJob);

    fn get(environment: &EnvironmentId, id: &BatchJobId) -> Option<BatchJob> =
        "SELECT {COLUMNS} FROM batch_job WHERE environment_id = $1 AND id = $2";

    /// The jobs of all environments that have records to begin or to wait for, oldest first.
    fn unfinished() -> Vec<BatchJob> =
        "SELECT {COLUMNS} FROM batch_job WHERE finished_at IS NULL ORDER BY id";

    /// Takes the lock of a job; returns whether records of it may begin. No other process begins
    /// one before the transaction ends.
    fn begin(id: &BatchJobId, now: Timestamp) -> bool =
        "UPDATE batch_job SET status = 'running', started_at = COALESCE(started_at, $2) WHERE id \
         = $1 AND status IN ('queued', 'running') AND finished_at IS NULL";

    /// So many more records have ended.
    fn ended(id: &BatchJobId, succeeded: u32, failed: u32) =
        "UPDATE batch_job SET succeeded = succeeded + $2, failed = failed + $3 WHERE id = $1";

    /// Cancels a job; returns whether this call did it.
    fn cancel(id: &BatchJobId) -> bool =
        "UPDATE batch_job SET status = 'cancelled' WHERE id = $1 AND status IN ('queued', \
         'running')";

    /// Jobs of all environments that finished before `at`, the oldest first.
    fn finished_before(at: Timestamp, limit: u32) -> Vec<BatchJobId> =
        "SELECT id FROM batch_job WHERE finished_at < $1 ORDER BY finished_at LIMIT $2";
}

const HOLD: &str = "UPDATE batch_job SET total = total WHERE id = $1";
const RETRY: &str = "SELECT id FROM batch_job WHERE retry_of = $1 ORDER BY id LIMIT 1";

/// The job that retries this one, where there is one. Nobody else makes one before the transaction
/// ends.
pub async fn retry_of(db: &mut Db, id: &BatchJobId) -> Result<Option<BatchJobId>> {
    db.run(HOLD, &[id]).await?;
    db.first(RETRY, &[id]).await
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM batch_job WHERE environment_id = $1 AND ($2 = \
                     '' OR flow_id = $2)";
const LIST: &str = sql!(
    BatchJob,
    "SELECT {COLUMNS} FROM batch_job WHERE environment_id = $1 AND ($2 = '' OR flow_id = $2) \
     ORDER BY id DESC LIMIT $3 OFFSET $4"
);

/// The environment's jobs, newest first; of one flow when it is named.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    flow: Option<&FlowId>,
    page: Page,
) -> Result<ListPage<BatchJob>> {
    let flow = flow.map_or("", FlowId::as_str);
    db.page(COUNT, LIST, &[environment, &flow], page).await
}

const FINISH: &str = "UPDATE batch_job SET finished_at = $2, \
    status = CASE WHEN status = 'cancelled' THEN status WHEN failed > 0 THEN $3 ELSE $4 END \
    WHERE id = $1 AND finished_at IS NULL AND (status = 'cancelled' OR succeeded + failed = total)";

/// Finishes a job whose records have all ended, or a cancelled one none of whose records is under
/// way any more.
pub async fn finish(db: &mut Db, id: &BatchJobId, now: Timestamp) -> Result<bool> {
    let values: [&dyn Value; 4] = [id, &now, &Status::finish(1), &Status::finish(0)];
    db.changes(FINISH, &values).await
}

const DELETE: &str = "DELETE FROM batch_job WHERE id = $1";

/// Drops a job and its records.
pub async fn delete(db: &mut Db, id: &BatchJobId) -> Result<()> {
    record::delete(&mut *db, id).await?;
    db.run(DELETE, &[id]).await
}
