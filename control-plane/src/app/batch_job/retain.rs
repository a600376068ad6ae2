//! Retention of batch jobs: drops those that finished long ago, and records of which no job came to
//! be.

use std::time::Duration;

use kanat_model::{Result, Timestamp};
use kanat_store::Store;
use kanat_store::batch_job::{self, upload};

/// Jobs that are looked for at one time; each is dropped in a transaction of its own, as it may
/// have many records.
const AT_ONCE: u32 = 100;

/// An upload of which nothing came for so long is dead: no connection is silent for so long and
/// lives.
const SILENT: Duration = Duration::from_secs(60 * 60);

/// Drops jobs that finished before `before`, with their records. Says how many.
pub async fn drop_finished(store: &Store, before: Timestamp) -> Result<usize> {
    let mut dropped = 0;
    loop {
        let jobs = batch_job::finished_before(&mut *store.read().await?, before, AT_ONCE).await?;
        if jobs.is_empty() {
            return Ok(dropped);
        }
        for job in &jobs {
            let mut tx = store.begin().await?;
            batch_job::delete(&mut tx, job).await?;
            tx.commit().await?;
        }
        dropped += jobs.len();
    }
}

/// Drops what came of uploads that nothing was heard of for an hour at `now`. Says how many.
pub async fn drop_silent(store: &Store, now: Timestamp) -> Result<usize> {
    let uploads = upload::silent_since(&mut *store.read().await?, now.before(SILENT)).await?;
    for job in &uploads {
        let mut tx = store.begin().await?;
        upload::discard(&mut tx, job).await?;
        tx.commit().await?;
    }
    Ok(uploads.len())
}
