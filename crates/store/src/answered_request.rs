//! Requests that came with an idempotency key: which request it was, and its sealed answer once
//! there is one.

use kanat_model::Timestamp;
use kanat_model::id::{ApiKeyId, BootId};

use crate::record::record;
use crate::sql::sql;
use crate::{Db, Error};

/// A request that was begun under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredRequest {
    /// SHA-256 of all that makes it this request.
    pub request: [u8; 32],
    /// Sealed; absent while it runs.
    pub answer: Option<Vec<u8>>,
    /// The boot of the control plane that runs it, or ran it; empty when that was not written down.
    pub begun_by: BootId,
    pub created_at: Timestamp,
}

record!(AnsweredRequest {
    request,
    answer,
    begun_by,
    created_at
});

const GET: &str = sql!(
    AnsweredRequest,
    "SELECT {COLUMNS} FROM kept_answer WHERE key_id = $1 AND name = $2"
);

/// Returns the request of a credential under the idempotency key `name`.
pub async fn get(
    db: &mut Db,
    credential: &ApiKeyId,
    name: &str,
) -> Result<Option<AnsweredRequest>, Error> {
    db.first(GET, &[credential, &name]).await
}

const BEGIN: &str = "INSERT INTO kept_answer (key_id, name, request, answer, begun_by, created_at) \
    VALUES ($1, $2, $3, NULL, $4, $5) ON CONFLICT (key_id, name) DO UPDATE SET \
    request = excluded.request, answer = NULL, begun_by = excluded.begun_by, \
    created_at = excluded.created_at";

/// Notes that a control plane runs a request; what was known under the key is forgotten.
pub async fn begin(
    db: &mut Db,
    credential: &ApiKeyId,
    name: &str,
    request: &[u8; 32],
    begun_by: &BootId,
    at: Timestamp,
) -> Result<(), Error> {
    db.run(BEGIN, &[credential, &name, request, begun_by, &at])
        .await
}

const ANSWER: &str =
    "UPDATE kept_answer SET request = $3, answer = $4 WHERE key_id = $1 AND name = $2";

/// Keeps the sealed answer, and which request it was, which may not have been known at its begin.
pub async fn answer(
    db: &mut Db,
    credential: &ApiKeyId,
    name: &str,
    request: &[u8; 32],
    sealed: &[u8],
) -> Result<(), Error> {
    db.run(ANSWER, &[credential, &name, request, &sealed]).await
}

const FORGET_UNANSWERED: &str = "DELETE FROM kept_answer WHERE answer IS NULL";

/// Forgets the requests that have no answer, for a process that is alone with the database and has
/// just begun: they died with the one before.
pub async fn forget_unanswered(db: &mut Db) -> Result<(), Error> {
    db.run(FORGET_UNANSWERED, &[]).await
}

const FORGET: &str = "DELETE FROM kept_answer WHERE key_id = $1 AND name = $2";

/// Makes the key free again.
pub async fn forget(db: &mut Db, credential: &ApiKeyId, name: &str) -> Result<(), Error> {
    db.run(FORGET, &[credential, &name]).await
}

const FORGET_OLDER: &str = "DELETE FROM kept_answer WHERE created_at < $1";

/// Forgets what was begun before `at`, of all accounts.
pub async fn forget_older(db: &mut Db, at: Timestamp) -> Result<(), Error> {
    db.run(FORGET_OLDER, &[&at]).await
}
