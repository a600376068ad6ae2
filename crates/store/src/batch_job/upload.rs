//! Jobs whose records are still coming: there are records under the job's id, and no job yet.

use kanat_model::Timestamp;
use kanat_model::id::BatchJobId;

use super::record;
use crate::row::RowExt;
use crate::{Db, Error};

const BEGIN: &str = "INSERT INTO batch_upload (job_id, touched_at) VALUES ($1, $2)";

/// Records are about to come.
pub async fn begin(db: &mut Db, job: &BatchJobId, now: Timestamp) -> Result<(), Error> {
    sqlx::query(BEGIN)
        .bind(job.as_str())
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const TOUCH: &str = "UPDATE batch_upload SET touched_at = $2 WHERE job_id = $1";

/// More have come. `false` when the upload was given up for dead.
pub async fn touch(db: &mut Db, job: &BatchJobId, now: Timestamp) -> Result<bool, Error> {
    Ok(sqlx::query(TOUCH)
        .bind(job.as_str())
        .bind(now.as_millis())
        .execute(db)
        .await?
        .rows_affected()
        > 0)
}

const END: &str = "DELETE FROM batch_upload WHERE job_id = $1";

/// All have come; the job is to be inserted in the same transaction. `false` when the upload was
/// given up for dead.
pub async fn end(db: &mut Db, job: &BatchJobId) -> Result<bool, Error> {
    Ok(sqlx::query(END)
        .bind(job.as_str())
        .execute(db)
        .await?
        .rows_affected()
        > 0)
}

const SILENT: &str = "SELECT job_id FROM batch_upload WHERE touched_at < $1 ORDER BY job_id";

/// Uploads of which nothing came since `at`: whoever received them died, or was left by its caller.
pub async fn silent_since(db: &mut Db, at: Timestamp) -> Result<Vec<BatchJobId>, Error> {
    let rows = sqlx::query(SILENT)
        .bind(at.as_millis())
        .fetch_all(db)
        .await?;
    rows.iter().map(|row| row.id("job_id")).collect()
}

/// Drops an upload and what came of it; one that has become a job meanwhile stays.
pub async fn discard(db: &mut Db, job: &BatchJobId) -> Result<(), Error> {
    if end(&mut *db, job).await? {
        record::delete(db, job).await?;
    }
    Ok(())
}
