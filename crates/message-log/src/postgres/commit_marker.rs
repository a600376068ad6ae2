//! Commit markers: a row of a transaction that no other transaction could have written. It tells
//! whether the transaction was committed.
//!
//! The number of the transaction alone does not tell. After a crash the database gives out again
//! the numbers of transactions that had not reached its disk, and so the numbers of events: another
//! transaction may have been committed under the number of one that was lost.

use kanat_model::Timestamp;
use kanat_model::id::MessageId;
use sqlx::PgPool;

pub(super) const MESSAGE: &str =
    "SELECT EXISTS (SELECT 1 FROM messages AS m WHERE m.seq = $1 AND m.id = $2)";

pub(super) const EVENT: &str = "SELECT EXISTS (SELECT 1 FROM transitions AS t WHERE t.message = \
                                $1 AND t.seq = $2 AND t.at = $3)";

pub(super) const STEP: &str =
    "SELECT EXISTS (SELECT 1 FROM steps AS s WHERE s.message = $1 AND s.name = $2)";

/// A row that the transaction wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommitMarker {
    Message {
        seq: i64,
        id: MessageId,
    },
    /// The time is from before the crash that would give its number to another event.
    Event {
        message: i64,
        seq: i64,
        at: Timestamp,
    },
    /// Only the holder of a message writes its steps, so a row of another transaction serves as
    /// well.
    Step {
        message: i64,
        name: String,
    },
}

impl CommitMarker {
    /// Returns whether the row exists. `false` means nothing before the transaction has ended.
    pub async fn exists(&self, pool: &PgPool) -> sqlx::Result<bool> {
        let query = match self {
            Self::Message { seq, id } => sqlx::query_scalar(MESSAGE).bind(seq).bind(id.as_str()),
            Self::Event { message, seq, at } => sqlx::query_scalar(EVENT)
                .bind(message)
                .bind(seq)
                .bind(at.as_millis()),
            Self::Step { message, name } => sqlx::query_scalar(STEP).bind(message).bind(name),
        };
        query.fetch_one(pool).await
    }
}
