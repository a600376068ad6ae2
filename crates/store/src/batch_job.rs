//! Batch jobs; their records are in `batch_job/record.rs`, and those that are still coming in
//! `batch_job/upload.rs`.

pub mod record;
pub mod upload;

use kanat_model::Timestamp;
use kanat_model::batch_job::Status;
use kanat_model::id::{AccountId, BatchJobId, EnvironmentId, FlowId};
use kanat_model::page::{ListPage, Page};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchJob {
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

fn read(row: &AnyRow) -> Result<BatchJob, Error> {
    let status = row.text("status")?;
    Ok(BatchJob {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        flow_id: row.id("flow_id")?,
        status: Status::parse(&status).ok_or(Error::Corrupt {
            column: "status",
            value: status,
        })?,
        total: row.whole("total")?,
        concurrency: row.whole("concurrency")?,
        succeeded: row.whole("succeeded")?,
        failed: row.whole("failed")?,
        retry_of: row.optional_text("retry_of")?.map(BatchJobId::from),
        created_at: row.time("created_at")?,
        started_at: row.optional_time("started_at")?,
        finished_at: row.optional_time("finished_at")?,
    })
}

/// A statement that reads jobs.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, account_id, environment_id, flow_id, status, total, concurrency, \
             succeeded, failed, retry_of, created_at, started_at, finished_at FROM batch_job ",
            $rest
        )
    };
}

const INSERT: &str = "INSERT INTO batch_job (id, account_id, environment_id, flow_id, status, \
                      total, concurrency, succeeded, failed, retry_of, created_at) VALUES ($1, \
                      $2, $3, $4, $5, $6, $7, 0, 0, $8, $9)";

/// Adds a job of which nothing has begun.
pub async fn insert(db: &mut Db, job: &BatchJob) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(job.id.as_str())
        .bind(job.account_id.as_str())
        .bind(job.environment_id.as_str())
        .bind(job.flow_id.as_str())
        .bind(job.status.as_str())
        .bind(i64::from(job.total))
        .bind(i64::from(job.concurrency))
        .bind(job.retry_of.as_ref().map(BatchJobId::as_str))
        .bind(job.created_at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const GET: &str = select!("WHERE environment_id = $1 AND id = $2");

pub async fn get(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &BatchJobId,
) -> Result<Option<BatchJob>, Error> {
    let row = sqlx::query(GET)
        .bind(environment.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const HOLD: &str = "UPDATE batch_job SET total = total WHERE id = $1";
const RETRY: &str = "SELECT id FROM batch_job WHERE retry_of = $1 ORDER BY id LIMIT 1";

/// The job that retries this one, where there is one. Nobody else makes one before the transaction
/// ends.
pub async fn retry_of(db: &mut Db, id: &BatchJobId) -> Result<Option<BatchJobId>, Error> {
    sqlx::query(HOLD)
        .bind(id.as_str())
        .execute(&mut *db)
        .await?;
    sqlx::query(RETRY)
        .bind(id.as_str())
        .fetch_optional(db)
        .await?
        .map(|row| row.id("id"))
        .transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM batch_job WHERE environment_id = $1 AND ($2 = \
                     '' OR flow_id = $2)";
const LIST: &str = select!(
    "WHERE environment_id = $1 AND ($2 = '' OR flow_id = $2) ORDER BY id DESC LIMIT $3 OFFSET $4"
);

/// The environment's jobs, newest first; of one flow when it is named.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    flow: Option<&FlowId>,
    page: Page,
) -> Result<ListPage<BatchJob>, Error> {
    let flow = flow.map_or("", FlowId::as_str);
    let total = sqlx::query(COUNT)
        .bind(environment.as_str())
        .bind(flow)
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(LIST)
        .bind(environment.as_str())
        .bind(flow)
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

const UNFINISHED: &str = select!("WHERE finished_at IS NULL ORDER BY id");

/// The jobs of all environments that have records to begin or to wait for, oldest first.
pub async fn unfinished(db: &mut Db) -> Result<Vec<BatchJob>, Error> {
    sqlx::query(UNFINISHED)
        .fetch_all(db)
        .await?
        .iter()
        .map(read)
        .collect()
}

const BEGIN: &str = "UPDATE batch_job SET status = 'running', started_at = COALESCE(started_at, \
                     $2) WHERE id = $1 AND status IN ('queued', 'running') AND finished_at IS NULL";

/// Takes the lock of a job; returns whether records of it may begin. No other process begins one
/// before the transaction ends.
pub async fn begin(db: &mut Db, id: &BatchJobId, now: Timestamp) -> Result<bool, Error> {
    Ok(sqlx::query(BEGIN)
        .bind(id.as_str())
        .bind(now.as_millis())
        .execute(db)
        .await?
        .rows_affected()
        > 0)
}

const ENDED: &str =
    "UPDATE batch_job SET succeeded = succeeded + $2, failed = failed + $3 WHERE id = $1";

/// So many more records have ended.
pub async fn ended(db: &mut Db, id: &BatchJobId, succeeded: u32, failed: u32) -> Result<(), Error> {
    sqlx::query(ENDED)
        .bind(id.as_str())
        .bind(i64::from(succeeded))
        .bind(i64::from(failed))
        .execute(db)
        .await?;
    Ok(())
}

const FINISH: &str = "UPDATE batch_job SET finished_at = $2, \
    status = CASE WHEN status = 'cancelled' THEN status WHEN failed > 0 THEN $3 ELSE $4 END \
    WHERE id = $1 AND finished_at IS NULL AND (status = 'cancelled' OR succeeded + failed = total)";

/// Finishes a job whose records have all ended, or a cancelled one none of whose records is under
/// way any more.
pub async fn finish(db: &mut Db, id: &BatchJobId, now: Timestamp) -> Result<bool, Error> {
    let query = sqlx::query(FINISH).bind(id.as_str()).bind(now.as_millis());
    let query = query
        .bind(Status::finish(1).as_str())
        .bind(Status::finish(0).as_str());
    Ok(query.execute(db).await?.rows_affected() > 0)
}

const CANCEL: &str =
    "UPDATE batch_job SET status = 'cancelled' WHERE id = $1 AND status IN ('queued', 'running')";

/// Cancels a job; returns whether this call did it.
pub async fn cancel(db: &mut Db, id: &BatchJobId) -> Result<bool, Error> {
    Ok(sqlx::query(CANCEL)
        .bind(id.as_str())
        .execute(db)
        .await?
        .rows_affected()
        > 0)
}

const FINISHED_BEFORE: &str =
    "SELECT id FROM batch_job WHERE finished_at < $1 ORDER BY finished_at LIMIT $2";

/// Jobs of all environments that finished before `at`, the oldest first.
pub async fn finished_before(
    db: &mut Db,
    at: Timestamp,
    limit: u32,
) -> Result<Vec<BatchJobId>, Error> {
    let rows = sqlx::query(FINISHED_BEFORE)
        .bind(at.as_millis())
        .bind(i64::from(limit))
        .fetch_all(db)
        .await?;
    rows.iter().map(|row| row.id("id")).collect()
}

const DELETE: &str = "DELETE FROM batch_job WHERE id = $1";

/// Drops a job and its records.
pub async fn delete(db: &mut Db, id: &BatchJobId) -> Result<(), Error> {
    record::delete(&mut *db, id).await?;
    sqlx::query(DELETE).bind(id.as_str()).execute(db).await?;
    Ok(())
}
