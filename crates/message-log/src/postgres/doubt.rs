//! What became of a transaction whose connection broke at the commit. The database is asked once it is back, so that
//! what it wrote is acknowledged and nothing that it did not; callers are not kept waiting for longer than they may.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{PgPool, Row};
use tokio::sync::mpsc;

use super::operation::{Answer, Effect, Reply};
use super::shared::Change;
use super::writer::Context;
use crate::Error;

/// Callers learn of an answer for so long; then that it is unknown.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);

const STATUS: &str = "SELECT pg_xact_status($1::text::xid8)";

/// One transaction in doubt.
pub(super) struct Doubt {
    transaction: String,
    since: Instant,
    outcomes: Vec<Outcome>,
}

/// What one operation of it did, if it was written.
pub(super) struct Outcome {
    pub reply: Option<Reply>,
    pub effect: Effect,
}

enum Fate {
    Written,
    Undone,
    NotYetKnown,
}

impl Doubt {
    pub fn new(transaction: String, outcomes: Vec<Outcome>) -> Self {
        Self { transaction, since: Instant::now(), outcomes }
    }

    fn answer(self, context: &Context, fate: &Fate) {
        if let Fate::Written = fate {
            context.shared.committed(self.outcomes.iter().map(|outcome| &outcome.effect));
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

    /// Lets go of those who waited long enough; what they held is given back if it turns out that they hold it.
    fn give_up_waiting(&mut self, context: &Context) {
        if self.since.elapsed() < ANSWER_WITHIN {
            return;
        }
        for reply in self.outcomes.iter_mut().filter_map(|outcome| outcome.reply.take()) {
            let _ = reply.send(Answer::new(Err(unknown()), context.abandoned.clone()));
        }
    }
}

/// Answers doubts until the log is closed.
pub(super) async fn run(mut doubts: mpsc::UnboundedReceiver<Doubt>, pool: PgPool, context: Arc<Context>) {
    let mut open: Vec<Doubt> = Vec::new();
    loop {
        let pause = if open.is_empty() { Duration::MAX } else { PAUSE };
        tokio::select! {
            Some(doubt) = doubts.recv() => open.push(doubt),
            () = tokio::time::sleep(pause) => {}
            () = context.closing.cancelled() => break,
        }
        let mut left = Vec::new();
        for mut doubt in open {
            match fate(&pool, &doubt.transaction).await {
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

async fn fate(pool: &PgPool, transaction: &str) -> Fate {
    let row = match sqlx::query(STATUS).bind(transaction).fetch_one(pool).await {
        Ok(row) => row,
        // Another database has taken over that never saw it.
        Err(sqlx::Error::Database(cause)) if cause.code().as_deref() == Some("22023") => return Fate::Undone,
        Err(_) => return Fate::NotYetKnown,
    };
    match row.try_get::<Option<&str>, _>(0) {
        Ok(Some("committed")) => Fate::Written,
        Ok(Some("in progress")) | Err(_) => Fate::NotYetKnown,
        // Aborted, or so long ago that the database has forgotten it.
        Ok(_) => Fate::Undone,
    }
}

fn unknown() -> Error {
    Error::Unavailable("the connection broke, and nothing is known to be written".to_owned())
}
