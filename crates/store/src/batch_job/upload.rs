//! Jobs whose records are still coming: there are records under the job's id, and no job yet.

use kanat_model::Timestamp;
use kanat_model::id::BatchJobId;

use super::record;
use crate::{Db, Error};

const BEGIN: &str = "INSERT INTO batch_upload (job_id, touched_at) VALUES ($1, $2)";

/// Records are about to come.
pub async fn begin(db: &mut Db, job: &BatchJobId, now: Timestamp) -> Result<(), Error> {
    db.run(BEGIN, &[job, &now]).await
}

const TOUCH: &str = "UPDATE batch_upload SET touched_at = $2 WHERE job_id = $1";

/// More have come. `false` when the upload was given up for dead.
pub async fn touch(db: &mut Db, job: &BatchJobId, now: Timestamp) -> Result<bool, Error> {
    db.changes(TOUCH, &[job, &now]).await
}

const END: &str = "DELETE FROM batch_upload WHERE job_id = $1";

/// All have come; the job is to be inserted in the same transaction. `false` when the upload was
/// given up for dead.
pub async fn end(db: &mut Db, job: &BatchJobId) -> Result<bool, Error> {
    db.changes(END, &[job]).await
}

const SILENT: &str = "SELECT job_id FROM batch_upload WHERE touched_at < $1 ORDER BY job_id";

/// Uploads of which nothing came since `at`: whoever received them died, or was left by its caller.
pub async fn silent_since(db: &mut Db, at: Timestamp) -> Result<Vec<BatchJobId>, Error> {
    db.all(SILENT, &[&at]).await
}

/// Drops an upload and what came of it; one that has become a job meanwhile stays.
pub async fn discard(db: &mut Db, job: &BatchJobId) -> Result<(), Error> {
    if end(&mut *db, job).await? {
        record::delete(db, job).await?;
    }
    Ok(())
}
