//! Results of calls with an idempotency key. A result is written in the transaction that makes it,
//! so that a call that is repeated after a crash finds it, although the first one was never
//! answered.

use kanat_model::Timestamp;

use crate::{Db, Error};

const GET: &str = "SELECT made FROM done_call WHERE call = $1 AND created_at >= $2";

/// Returns the id of what the call has made at `since` or later.
pub async fn made(db: &mut Db, call: &str, since: Timestamp) -> Result<Option<String>, Error> {
    db.first(GET, &[&call, &since]).await
}

const NOTE: &str = "INSERT INTO done_call (call, made, created_at) VALUES ($1, $2, $3) \
    ON CONFLICT (call) DO UPDATE SET made = excluded.made, created_at = excluded.created_at";

/// Notes what the call has made, in the place of what it made before and is gone.
pub async fn note(db: &mut Db, call: &str, made: &str, at: Timestamp) -> Result<(), Error> {
    db.run(NOTE, &[&call, &made, &at]).await
}

const FORGET_OLDER: &str = "DELETE FROM done_call WHERE created_at < $1";

/// Forgets what was made before `at`, of all credentials.
pub async fn forget_older(db: &mut Db, at: Timestamp) -> Result<(), Error> {
    db.run(FORGET_OLDER, &[&at]).await
}
