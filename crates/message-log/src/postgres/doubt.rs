//! What became of a transaction whose connection broke at the commit. The database is asked once it
//! is back, so that what it wrote is acknowledged and nothing that it did not; callers are not kept
//! waiting for longer than they may.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{PgPool, Row};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::operation::{Answer, Effect, Reply};
use super::pool::Pool;
use super::shared::Change;
use super::transaction::Trail;
use super::writer::Context;
use crate::Error;

/// Callers learn of an answer for so long; then that it is unknown.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

const STATUS: &str = "SELECT pg_xact_status($1::text::xid8)";

/// Writes something into the write-ahead log, behind everything that is in it.
const WRITE_BEHIND: &str = "SELECT pg_logical_emit_message(true, 'kanat', '')";

/// One transaction in doubt.
pub(super) struct Doubt {
    trail: Trail,
    since: Instant,
    outcomes: Vec<Outcome>,
}

/// What one operation of it did, if it was written.
pub(super) struct Outcome {
    pub reply: Option<Reply>,
    pub effect: Effect,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Written,
    Undone,
    NotYetKnown,
}

impl Doubt {
    pub fn new(trail: Trail, outcomes: Vec<Outcome>) -> Self {
        Self {
            trail,
            since: Instant::now(),
            outcomes,
        }
    }

    fn answer(self, context: &Context, fate: &Fate) {
        if let Fate::Written = fate {
            context
                .shared
                .committed(self.outcomes.iter().map(|outcome| &outcome.effect));
        }
        for Outcome { reply, effect } in self.outcomes {
            let result = match fate {
                Fate::Written => Ok(effect),
                Fate::Undone | Fate::NotYetKnown => Err(unknown()),
            };
            // Where nobody waits any more, the answer gives back the leases in it.
            let answer = Answer::new(result, context.abandoned.clone());
            if let Some(reply) = reply {
                let _ = reply.send(answer);
            }
        }
    }

    /// Lets go of those who waited long enough; what they held is given back if it turns out that
    /// they hold it.
    fn give_up_waiting(&mut self, context: &Context) {
        if self.since.elapsed() < ANSWER_WITHIN {
            return;
        }
        for reply in self
            .outcomes
            .iter_mut()
            .filter_map(|outcome| outcome.reply.take())
        {
            let _ = reply.send(Answer::new(Err(unknown()), context.abandoned.clone()));
        }
    }
}

/// Answers doubts until the log is closed.
pub(super) async fn run(
    mut doubts: mpsc::UnboundedReceiver<Doubt>,
    pool: Pool,
    context: Arc<Context>,
) {
    let mut open: Vec<Doubt> = Vec::new();
    loop {
        let pause = if open.is_empty() {
            Duration::MAX
        } else {
            PAUSE
        };
        tokio::select! {
            Some(doubt) = doubts.recv() => open.push(doubt),
            () = tokio::time::sleep(pause) => {}
            () = context.closing.cancelled() => break,
        }
        let mut left = Vec::new();
        for mut doubt in open {
            match timeout(ANSWER_WITHIN, fate(&pool.current(), &doubt.trail))
                .await
                .unwrap_or(Fate::NotYetKnown)
            {
                Fate::NotYetKnown => {
                    doubt.give_up_waiting(&context);
                    left.push(doubt);
                }
                fate => {
                    doubt.answer(&context, &fate);
                    context.shared.happened(Change::Claimable);
                }
            }
        }
        open = left;
    }
    while let Ok(doubt) = doubts.try_recv() {
        open.push(doubt);
    }
    for doubt in open {
        doubt.answer(&context, &Fate::NotYetKnown);
    }
}

/// That it is over is said by its number, and how it ended by what it wrote: its number may be
/// another's by now.
async fn fate(pool: &PgPool, trail: &Trail) -> Fate {
    // What it answers was read from what others had committed.
    let Some(witness) = &trail.witness else {
        return Fate::Written;
    };
    let row = match sqlx::query(STATUS)
        .bind(&trail.transaction)
        .fetch_one(pool)
        .await
    {
        Ok(row) => row,
        // A crash took it, or another database has taken over that never saw it.
        Err(sqlx::Error::Database(cause)) if cause.code().as_deref() == Some("22023") => {
            return Fate::Undone;
        }
        Err(_) => return Fate::NotYetKnown,
    };
    match row.try_get::<Option<&str>, _>(0) {
        Ok(Some("in progress")) | Err(_) => Fate::NotYetKnown,
        Ok(_) => match witness.is_there(pool).await {
            Ok(true) => replicated(pool).await,
            Ok(false) => Fate::Undone,
            Err(_) => Fate::NotYetKnown,
        },
    }
}

/// What is there may be on this server's disk alone: a session that ends while its commit waits for
/// a synchronous standby leaves the commit behind, and so does a crash. A commit behind it waits
/// for the standby to have both.
async fn replicated(pool: &PgPool) -> Fate {
    match sqlx::query(WRITE_BEHIND).execute(pool).await {
        Ok(_) => Fate::Written,
        Err(_) => Fate::NotYetKnown,
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
    use super::super::options::Connecting;
    use super::super::witness::Witness;
    use super::*;
    use crate::{MessageLog, contract};

    #[tokio::test]
    async fn takes_no_other_transaction_for_the_one_that_was_lost_although_it_has_its_number() {
        let database = Database::fresh();
        let log = PostgresLog::open(database.url(), Options::default())
            .await
            .unwrap();
        let connecting = Connecting::new(database.url(), &Options::default()).unwrap();
        let mut conn = connecting.session().await.unwrap().connection;
        // After a crash the database gave the number to this one, and has committed it.
        let query = sqlx::query_scalar("SELECT pg_current_xact_id()::text");
        let transaction: String = query.fetch_one(&mut conn).await.unwrap();
        let pool = connecting.pool(1);
        let lost = [
            Witness::Message {
                seq: 1,
                id: MessageId::generate(),
            },
            Witness::Event {
                message: 1,
                seq: 2,
                at: Timestamp::now(),
            },
            Witness::Step {
                message: 1,
                name: "one".to_owned(),
            },
        ];
        for witness in lost {
            let trail = Trail {
                transaction: transaction.clone(),
                witness: Some(witness),
            };
            assert_eq!(fate(&pool, &trail).await, Fate::Undone);
        }
        let message = contract::message(&kanat_model::id::FlowId::generate());
        let id = message.id.clone();
        log.append(message).await.unwrap();
        let seq = log.last_event().await.unwrap();
        let trail = Trail {
            transaction,
            witness: Some(Witness::Message { seq, id }),
        };
        assert_eq!(fate(&pool, &trail).await, Fate::Written);
        pool.close().await;
        log.close().await;
    }
}
