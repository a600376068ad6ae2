//! Jobs whose records are still coming: there are records under the job's id, and no job yet.

use kanat_model::Timestamp;
use kanat_model::id::BatchJobId;

use super::record;
use crate::statement::statements;
use crate::{Db, Error};

statements! {
    /// Records are about to come.
    fn begin(job: &BatchJobId, now: Timestamp) =
        "INSERT INTO batch_upload (job_id, touched_at) VALUES ($1, $2)";

    /// More have come. `false` when the upload was given up for dead.
    fn touch(job: &BatchJobId, now: Timestamp) -> bool =
        "UPDATE batch_upload SET touched_at = $2 WHERE job_id = $1";

    /// All have come; the job is to be inserted in the same transaction. `false` when the upload
    /// was given up for dead.
    fn end(job: &BatchJobId) -> bool = "DELETE FROM batch_upload WHERE job_id = $1";

    /// Uploads of which nothing came since `at`: whoever received them died, or was left by its
    /// caller.
    fn silent_since(at: Timestamp) -> Vec<BatchJobId> =
        "SELECT job_id FROM batch_upload WHERE touched_at < $1 ORDER BY job_id";
}

/// Drops an upload and what came of it; one that has become a job meanwhile stays.
pub async fn discard(db: &mut Db, job: &BatchJobId) -> Result<(), Error> {
    if end(&mut *db, job).await? {
        record::delete(db, job).await?;
    }
    Ok(())
}
