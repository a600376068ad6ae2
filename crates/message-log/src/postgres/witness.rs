//! What a transaction leaves behind that no other could have written: by it one knows whether it
//! was committed.
//!
//! The transaction's number alone does not tell. After a crash the database gives out again the
//! numbers of which nothing had reached its disk, so that another transaction may have been
//! committed under the number of one that was lost; the same goes for the numbers of events.

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
pub(super) enum Witness {
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
    /// Only the holder of a message writes its steps, so a row from another transaction says the
    /// same.
    Step {
        message: i64,
        name: String,
    },
}

impl Witness {
    /// Whether the row is there. Asked before the transaction has ended, `false` says nothing.
    pub async fn is_there(&self, pool: &PgPool) -> Result<bool, sqlx::Error> {
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
