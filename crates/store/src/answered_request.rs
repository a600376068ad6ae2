//! Requests that came with an idempotency key: which request it was, and its sealed answer once
//! there is one.

use kanat_model::Timestamp;
use kanat_model::id::{ApiKeyId, BootId};

use crate::row::RowExt;
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

const GET: &str =
    "SELECT request, answer, begun_by, created_at FROM kept_answer WHERE key_id = $1 AND name = $2";

/// Returns the request of a credential under the idempotency key `name`.
pub async fn get(
    db: &mut Db,
    credential: &ApiKeyId,
    name: &str,
) -> Result<Option<AnsweredRequest>, Error> {
    let row = sqlx::query(GET)
        .bind(credential.as_str())
        .bind(name)
        .fetch_optional(db)
        .await?;
    let read = |row: &sqlx::any::AnyRow| {
        Ok(AnsweredRequest {
            request: row.hash("request")?,
            answer: row.optional_bytes("answer")?,
            begun_by: row.id("begun_by")?,
            created_at: row.time("created_at")?,
        })
    };
    row.as_ref().map(read).transpose()
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
    sqlx::query(BEGIN)
        .bind(credential.as_str())
        .bind(name)
        .bind(request.as_slice())
        .bind(begun_by.as_str())
        .bind(at.as_millis())
        .execute(db)
        .await?;
    Ok(())
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
    let query = sqlx::query(ANSWER).bind(credential.as_str()).bind(name);
    query
        .bind(request.as_slice())
        .bind(sealed)
        .execute(db)
        .await?;
    Ok(())
}

const FORGET_UNANSWERED: &str = "DELETE FROM kept_answer WHERE answer IS NULL";

/// Forgets the requests that have no answer, for a process that is alone with the database and has
/// just begun: they died with the one before.
pub async fn forget_unanswered(db: &mut Db) -> Result<(), Error> {
    sqlx::query(FORGET_UNANSWERED).execute(db).await?;
    Ok(())
}

const FORGET: &str = "DELETE FROM kept_answer WHERE key_id = $1 AND name = $2";

/// Makes the key free again.
pub async fn forget(db: &mut Db, credential: &ApiKeyId, name: &str) -> Result<(), Error> {
    sqlx::query(FORGET)
        .bind(credential.as_str())
        .bind(name)
        .execute(db)
        .await?;
    Ok(())
}

const FORGET_OLDER: &str = "DELETE FROM kept_answer WHERE created_at < $1";

/// Forgets what was begun before `at`, of all accounts.
pub async fn forget_older(db: &mut Db, at: Timestamp) -> Result<(), Error> {
    sqlx::query(FORGET_OLDER)
        .bind(at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}
