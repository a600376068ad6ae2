//! In-doubt transactions: their connection broke at the commit. Once the database answers again, it
//! is asked whether they were committed, so that callers learn of committed writes and of no
//! others. Callers do not wait for longer than a bound.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{PgPool, Row};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::operation::{Effect, ReplyGuard, ReplySender};
use super::pool::Pool;
use super::shared::{LogState, Notification};
use super::transaction::TransactionRef;
use crate::Error;
use crate::change::Change;

/// Longest time for which a caller waits; then it learns that the outcome is unknown.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause between two rounds of questions.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

const STATUS: &str = "SELECT pg_xact_status($1::text::xid8)";

/// Appends a record to the write-ahead log, after all that it has.
const APPEND_TO_WAL: &str = "SELECT pg_logical_emit_message(true, 'kanat', '')";

/// A transaction whose outcome is not known.
pub(super) struct InDoubtTransaction {
    transaction: TransactionRef,
    since: Instant,
    operations: Vec<InDoubtOperation>,
}

/// An operation of an in-doubt transaction, with its effect if the transaction was committed.
pub(super) struct InDoubtOperation {
    pub reply: Option<ReplySender>,
    pub effect: Effect,
}

/// Asks the database for the outcomes of in-doubt transactions, and answers their callers.
pub(super) struct Resolver {
    pub transactions: mpsc::UnboundedReceiver<InDoubtTransaction>,
    pub pool: Pool,
    pub shared: Arc<LogState>,
    pub releases: mpsc::UnboundedSender<Change>,
    pub closing: CancellationToken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommitStatus {
    Committed,
    Aborted,
    Unknown,
}

impl InDoubtTransaction {
    pub fn new(transaction: TransactionRef, operations: Vec<InDoubtOperation>) -> Self {
        Self {
            transaction,
            since: Instant::now(),
            operations,
        }
    }
}

impl Resolver {
    /// Resolves transactions until the log is closed.
    pub async fn run(mut self) {
        let mut open: Vec<InDoubtTransaction> = Vec::new();
        loop {
            let pause = if open.is_empty() {
                Duration::MAX
            } else {
                RETRY_INTERVAL
            };
            tokio::select! {
                Some(transaction) = self.transactions.recv() => open.push(transaction),
                () = tokio::time::sleep(pause) => {}
                () = self.closing.cancelled() => break,
            }
            let mut unresolved = Vec::new();
            for mut in_doubt in open {
                let pool = self.pool.current();
                let status = commit_status(&pool, &in_doubt.transaction);
                match timeout(ANSWER_TIMEOUT, status)
                    .await
                    .unwrap_or(CommitStatus::Unknown)
                {
                    CommitStatus::Unknown => {
                        self.answer_late_callers(&mut in_doubt);
                        unresolved.push(in_doubt);
                    }
                    status @ (CommitStatus::Committed | CommitStatus::Aborted) => {
                        self.answer(in_doubt, status);
                        self.shared.publish(Notification::Claimable);
                    }
                }
            }
            open = unresolved;
        }
        while let Ok(transaction) = self.transactions.try_recv() {
            open.push(transaction);
        }
        for in_doubt in open {
            self.answer(in_doubt, CommitStatus::Unknown);
        }
    }

    fn answer(&self, in_doubt: InDoubtTransaction, status: CommitStatus) {
        if status == CommitStatus::Committed {
            let effects = in_doubt.operations.iter();
            self.shared
                .progress
                .count_commit(effects.map(|operation| &operation.effect));
        }
        for InDoubtOperation { reply, effect } in in_doubt.operations {
            let result = match status {
                CommitStatus::Committed => Ok(effect),
                CommitStatus::Aborted | CommitStatus::Unknown => Err(unknown()),
            };
            // Without a caller the answer releases the leases in it.
            let answer = ReplyGuard::new(result, self.releases.clone());
            if let Some(reply) = reply {
                let _ = reply.send(answer);
            }
        }
    }

    /// Answers callers that have waited for [`ANSWER_TIMEOUT`]. Leases that the transaction granted
    /// are released if it turns out to be committed.
    fn answer_late_callers(&self, in_doubt: &mut InDoubtTransaction) {
        if in_doubt.since.elapsed() < ANSWER_TIMEOUT {
            return;
        }
        let operations = in_doubt.operations.iter_mut();
        for reply in operations.filter_map(|operation| operation.reply.take()) {
            let _ = reply.send(ReplyGuard::new(Err(unknown()), self.releases.clone()));
        }
    }
}

/// Returns the outcome of a transaction. Its number says whether it has ended, and its commit
/// marker how: after a crash the database may give the number to another transaction.
async fn commit_status(pool: &PgPool, transaction: &TransactionRef) -> CommitStatus {
    // Its effects were read from commits of others.
    let Some(marker) = &transaction.marker else {
        return CommitStatus::Committed;
    };
    let row = match sqlx::query(STATUS)
        .bind(&transaction.id)
        .fetch_one(pool)
        .await
    {
        Ok(row) => row,
        // A crash undid it, or another server has taken over that never had it.
        Err(sqlx::Error::Database(cause)) if cause.code().as_deref() == Some("22023") => {
            return CommitStatus::Aborted;
        }
        Err(_) => return CommitStatus::Unknown,
    };
    match row.try_get::<Option<&str>, _>(0) {
        Ok(Some("in progress")) | Err(_) => CommitStatus::Unknown,
        Ok(_) => match marker.exists(pool).await {
            Ok(true) => replicated(pool).await,
            Ok(false) => CommitStatus::Aborted,
            Err(_) => CommitStatus::Unknown,
        },
    }
}

/// Waits until a commit that is found on this server is on its synchronous standby too: a session
/// that ends while its commit waits for the standby leaves the commit on this server alone, and so
/// does a crash. A later commit waits until the standby has both.
async fn replicated(pool: &PgPool) -> CommitStatus {
    match sqlx::query(APPEND_TO_WAL).execute(pool).await {
        Ok(_) => CommitStatus::Committed,
        Err(_) => CommitStatus::Unknown,
    }
}

fn unknown() -> Error {
    Error::Unavailable("the connection broke, and nothing is known to be written".to_owned())
}

#[cfg(test)]
mod tests {
    use kanat_model::Timestamp;
    use kanat_model::id::MessageId;
    use kanat_testing_postgres::Database;

    use super::super::Options;
    use super::super::PostgresLog;
    use super::super::commit_marker::CommitMarker;
    use super::super::options::Connections;
    use super::*;
    use crate::contract;
    use crate::prelude::*;

    #[tokio::test]
    async fn takes_no_other_transaction_for_the_one_that_was_lost_although_it_has_its_number() {
        let database = Database::fresh();
        let log = PostgresLog::open(database.url(), Options::default())
            .await
            .unwrap();
        let connecting = Connections::new(database.url(), &Options::default()).unwrap();
        let mut conn = connecting.session().await.unwrap().connection;
        // After a crash the database gave the number to this one, and has committed it.
        let query = sqlx::query_scalar("SELECT pg_current_xact_id()::text");
        let transaction: String = query.fetch_one(&mut conn).await.unwrap();
        let pool = connecting.pool(1);
        let lost = [
            CommitMarker::Message {
                seq: 1,
                id: MessageId::generate(),
            },
            CommitMarker::Event {
                message: 1,
                seq: 2,
                at: Timestamp::now(),
            },
            CommitMarker::Step {
                message: 1,
                name: "one".to_owned(),
            },
        ];
        for marker in lost {
            let lost = TransactionRef {
                id: transaction.clone(),
                marker: Some(marker),
            };
            assert_eq!(commit_status(&pool, &lost).await, CommitStatus::Aborted);
        }
        let message = contract::message(&kanat_model::id::FlowId::generate());
        let id = message.id.clone();
        log.append(message).await.unwrap();
        let seq = log.last_event().await.unwrap();
        let lost = TransactionRef {
            id: transaction,
            marker: Some(CommitMarker::Message { seq, id }),
        };
        assert_eq!(commit_status(&pool, &lost).await, CommitStatus::Committed);
        pool.close().await;
        log.close().await;
    }
}
