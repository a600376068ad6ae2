//! Use-cases of batch jobs: one message for each of many records, so many at a time. How records
//! come in is in `batch_job/receive.rs`, how a job goes on in `batch_job/drive.rs`.

mod csv;
mod drive;
mod receive;
mod retain;

use kanat_model::batch_job::Status;
use kanat_model::flow;
use kanat_model::id::{BatchJobId, FlowId};
use kanat_model::message::{ErrorKind, Failure};
use kanat_model::page::{ListPage, Page};
use kanat_model::{Error, Result, Timestamp, saturated};
use kanat_store::Db;
use kanat_store::batch_job::record::{self, FailedRecord, RetryScope};
use kanat_store::batch_job::{self, BatchJob};
use kanat_store::flow::exists as flow_exists;

use crate::app::{Call, Caller, audit, resource};
pub use drive::drive_all;
pub use receive::{Piece, create};
pub use retain::{drop_finished, drop_silent};

resource!(
    "batch job",
    BatchJobId,
    BatchJob,
    batch_job::get,
    environment_id
);

/// Records at the same time: one look at the log tells of so many.
const MAX_CONCURRENCY: u32 = 500;
const USUAL_CONCURRENCY: u32 = 10;

/// The environment's jobs, newest first; those of one flow when it is named.
pub async fn list(call: &Call, flow: Option<&FlowId>, page: Page) -> Result<ListPage<BatchJob>> {
    let mut tx = call.read().await?;
    let found = batch_job::list(&mut tx, &call.caller.environment_id, flow, page).await?;
    // The jobs of a deleted flow are still there.
    if let Some(id) = flow.filter(|_| found.total == 0) {
        call.existing(&mut tx, id).await?;
    }
    Ok(found)
}

/// A job, and how its records ended.
#[derive(Debug)]
pub struct Details {
    pub job: BatchJob,
    /// Records that succeeded because the flow's condition was false for them.
    pub filtered: u32,
    /// Records that succeeded by the message of an earlier record with their idempotency key.
    pub repeats: u32,
    /// Reason why the job could not go on with its records.
    pub error: Option<Failure>,
}

/// One job and how far it is.
pub async fn get(call: &Call, id: &BatchJobId) -> Result<Details> {
    let mut tx = call.read().await?;
    let job = call.existing(&mut tx, id).await?;
    let kind = ErrorKind::FlowDeleted;
    let error = match job.failed > 0 && !flow_exists(&mut tx, &job.flow_id).await? {
        true => record::first_failure(&mut tx, id, kind.as_str()).await?,
        false => None,
    };
    Ok(Details {
        filtered: record::count_filtered(&mut tx, id).await?,
        repeats: record::count_repeats(&mut tx, id).await?,
        error: error.map(|message| Failure::new(kind, message)),
        job,
    })
}

/// The records that failed, in their order.
pub async fn errors(call: &Call, id: &BatchJobId, page: Page) -> Result<ListPage<FailedRecord>> {
    let mut tx = call.read().await?;
    call.existing(&mut tx, id).await?;
    Ok(record::failed(&mut tx, id, page).await?)
}

/// All of them as CSV.
pub async fn errors_csv(call: &Call, id: &BatchJobId) -> Result<String> {
    let mut tx = call.read().await?;
    call.existing(&mut tx, id).await?;
    let mut rows = csv::Rows::begin()?;
    let mut offset = 0;
    loop {
        let page = Page::new(Some(Page::MAX_LIMIT), Some(offset));
        let found = record::failed(&mut tx, id, page).await?;
        if found.items.is_empty() {
            return rows.end();
        }
        offset += saturated(found.items.len());
        found
            .items
            .iter()
            .try_for_each(|failed| rows.write(failed))?;
    }
}

/// Makes a new job of the records that failed.
pub async fn retry(call: &Call, id: &BatchJobId) -> Result<BatchJob> {
    let mut tx = call.write().await?;
    if let Some(made) = call.made::<BatchJobId>(&mut tx).await? {
        return Ok(made);
    }
    let former = call.existing(&mut tx, id).await?;
    if former.finished_at.is_none() {
        let status = former.status.as_str();
        return Err(Error::precondition(format!(
            "a batch job that is {status} and has not ended cannot be retried"
        )));
    }
    // A second retry of the same records would make second messages of them.
    if let Some(retry) = batch_job::retry_of(&mut tx, id).await? {
        let message = format!("the batch job was retried already, by {retry}: retry that one");
        return Err(Error::precondition(message));
    }
    check_flow(call, &mut tx, &former.flow_id).await?;
    // Nobody else goes on with what a cancelled retry did not begin.
    let left = match former.status {
        Status::Cancelled if former.retry_of.is_some() => RetryScope::FailedAndPending,
        Status::Queued
        | Status::Running
        | Status::Completed
        | Status::CompletedWithErrors
        | Status::Cancelled => RetryScope::Failed,
    };
    let job = job(
        &call.caller,
        former.flow_id,
        former.failed,
        former.concurrency,
        Some(former.id),
    );
    let total = saturated(record::copy(&mut tx, id, &job.id, left).await?);
    if total == 0 {
        return Err(Error::precondition(
            "no record of the batch job failed: there is nothing to retry (records that it did not \
             begin go into a new job)",
        ));
    }
    let job = BatchJob { total, ..job };
    batch_job::insert(&mut tx, &job).await?;
    call.caller
        .record_idempotent_result(&mut tx, &job.id)
        .await?;
    audit::created(call, &mut tx, &job).await?;
    tx.commit().await?;
    call.app.batch_jobs.notify_one();
    Ok(job)
}

/// Begins no more records of the job.
pub async fn cancel(call: &Call, id: &BatchJobId) -> Result<BatchJob> {
    let mut tx = call.write().await?;
    let found = call.existing(&mut tx, id).await?;
    let status = found.status.cancel()?;
    if !batch_job::cancel(&mut tx, id).await? {
        return Err(call
            .existing(&mut tx, id)
            .await?
            .status
            .cancel()
            .err()
            .unwrap_or_else(Error::internal));
    }
    let cancelled = BatchJob {
        status,
        ..found.clone()
    };
    audit::updated(call, &mut tx, &found, &cancelled).await?;
    tx.commit().await?;
    Ok(cancelled)
}

fn job(
    caller: &Caller,
    flow_id: FlowId,
    total: u32,
    concurrency: u32,
    retry_of: Option<BatchJobId>,
) -> BatchJob {
    BatchJob {
        id: BatchJobId::generate(),
        account_id: caller.account_id.clone(),
        environment_id: caller.environment_id.clone(),
        flow_id,
        status: Status::Queued,
        total,
        concurrency,
        succeeded: 0,
        failed: 0,
        retry_of,
        created_at: Timestamp::now(),
        started_at: None,
        finished_at: None,
    }
}

fn concurrency(asked: Option<u32>) -> Result<u32> {
    match asked {
        None => Ok(USUAL_CONCURRENCY),
        Some(number @ 1..=MAX_CONCURRENCY) => Ok(number),
        Some(number) => Err(Error::field(
            "concurrency",
            format!("is {number}, and must be 1 to {MAX_CONCURRENCY}"),
        )),
    }
}

async fn check_flow(call: &Call, db: &mut Db, id: &FlowId) -> Result<()> {
    match call.existing(db, id).await?.status {
        flow::Status::Draft => Err(Error::precondition(
            "a flow that is draft cannot be run: deploy it first",
        )),
        flow::Status::Active | flow::Status::Paused => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, stream};
    use kanat_auth::Role;

    use super::*;
    use crate::app::testing;

    #[test]
    fn concurrency_has_bounds() {
        assert_eq!(
            [concurrency(None).unwrap(), concurrency(Some(500)).unwrap()],
            [10, 500]
        );
        assert!(concurrency(Some(0)).is_err() && concurrency(Some(501)).is_err());
    }

    /// Else a new job would begin with the next look at the store.
    #[tokio::test]
    async fn a_new_job_wakes_the_driver() {
        let folder = tempfile::tempdir().unwrap();
        let app = testing::in_folder(folder.path()).await;
        let call = testing::call(&app, Role::Editor).await;
        let flow = testing::flow(&app, "orders").await;
        let is_notified = || app.batch_jobs.notified().now_or_never().is_some();
        let piece = |records| {
            stream::iter([Ok(Piece {
                flow_id: flow.id.to_string(),
                records,
                concurrency: None,
            })])
        };
        create(&call, piece(Vec::new())).await.unwrap_err();
        assert!(!is_notified());
        let job = create(&call, piece(vec!["{}".to_owned()])).await.unwrap();
        assert!(is_notified() && !is_notified());

        retry(&call, &job.id).await.unwrap_err();
        assert!(!is_notified());
        let mut tx = app.store.begin().await.unwrap();
        let end = record::End::Failed {
            kind: "status".to_owned(),
            message: "refused".to_owned(),
            field: None,
        };
        let ended = record::RecordEnd {
            position: 0,
            end,
            is_repeat: false,
        };
        record::start_next(&mut tx, &job.id, 1).await.unwrap();
        assert!(record::end(&mut tx, &job.id, &ended).await.unwrap());
        batch_job::ended(&mut tx, &job.id, 0, 1).await.unwrap();
        assert!(
            batch_job::finish(&mut tx, &job.id, Timestamp::now())
                .await
                .unwrap()
        );
        tx.commit().await.unwrap();
        retry(&call, &job.id).await.unwrap();
        assert!(is_notified() && !is_notified());
        app.log.close().await;
    }
}
