//! The live stream: arrivals and changes of state, merged by their places in the log.

use sqlx::{PgPool, Postgres, Row};

use super::options::LockSpace;
use super::sequence::{self, Horizon};
use crate::event::page;
use crate::row::fixed_columns;
use crate::{EventPage, EventQuery};

/// Places looked at in one read, so that a rare flow does not hold a connection for long.
const MAX_SEQS_PER_READ: i64 = 20_000;

/// Sequence numbers and sizes of arrivals, without reading large values.
pub(super) const ARRIVAL_SIZES: &str = "
SELECT m.seq AS seq, CAST(octet_length(coalesce(b.payload, b.raw_body)) AS BIGINT) AS bytes
     FROM messages AS m JOIN bodies AS b ON b.seq = m.seq WHERE m.seq > ";

/// Places and bytes of changes of state.
pub(super) const TRANSITION_SIZES: &str = "
SELECT t.seq AS seq, CAST(octet_length(coalesce(b.payload, b.raw_body)) + coalesce((SELECT
    octet_length(e.output) FROM transitions AS e
     WHERE e.message = t.message AND e.seq <= t.seq AND e.output IS NOT NULL ORDER BY e.seq DESC
         LIMIT 1), 0) AS BIGINT) AS bytes
     FROM transitions AS t JOIN messages AS m ON m.seq = t.message JOIN bodies AS b ON b.seq
         = t.message WHERE t.seq > ";

/// A message as it arrived: nothing has become of it yet.
pub(super) const ARRIVALS: &str = concat!(
    "SELECT m.seq AS seq, ",
    fixed_columns!(),
    ", m.accepted_as AS status, 0::bigint AS attempts, NULL::bigint AS due_at, NULL::bigint
     AS completed_at, NULL::text AS error_kind, NULL::text AS error_message, NULL::text
     AS error_field, NULL::text AS error_expression, NULL::bytea AS output
     FROM messages AS m JOIN bodies AS b ON b.seq = m.seq WHERE m.seq > "
);

/// A message as it stood after a change of state.
pub(super) const TRANSITIONS: &str = concat!(
    "SELECT t.seq AS seq, ",
    fixed_columns!(),
    ", t.status, t.attempts, t.due_at,
     CASE WHEN t.status IN ('delivered', 'filtered', 'dead_letter', 'discarded') THEN t.at END
         AS completed_at,
     t.error_kind, t.error_message, t.error_field, t.error_expression,
     (SELECT e.output FROM transitions AS e WHERE e.message = t.message AND e.seq <= t.seq
         AND e.output IS NOT NULL
        ORDER BY e.seq DESC LIMIT 1) AS output
     FROM transitions AS t JOIN messages AS m ON m.seq = t.message JOIN bodies AS b ON b.seq
         = t.message
     WHERE t.seq > "
);

/// Finds the first event after a sequence number. The numbers jump ahead at midnight, so a stretch
/// begins there.
pub(super) const NEXT: &str = "
SELECT least(
    (SELECT m.seq FROM messages AS m WHERE m.seq > $1 ORDER BY m.seq LIMIT 1),
    (SELECT t.seq FROM transitions AS t WHERE t.seq > $1 ORDER BY t.seq LIMIT 1))";

pub(super) async fn events(
    reader: &PgPool,
    space: LockSpace,
    asked: &EventQuery,
) -> sqlx::Result<EventPage> {
    let Horizon {
        given,
        readable: last,
    } = sequence::horizon(reader, space).await?;
    let next: Option<i64> = if last > asked.after {
        sqlx::query(NEXT)
            .bind(asked.after)
            .fetch_one(reader)
            .await?
            .try_get(0)?
    } else {
        None
    };
    let Some(next) = next.filter(|next| *next <= last) else {
        // A log that has not reached the number is an earlier copy, in which the reader continues
        // with new events.
        let next_after = if given < asked.after {
            last
        } else {
            last.max(asked.after)
        };
        return Ok(EventPage {
            events: Vec::new(),
            next_after,
            more: false,
        });
    };
    let until = last.min(next.saturating_add(MAX_SEQS_PER_READ));
    let mut conn = reader.acquire().await?;
    page::page::<Postgres>(&mut conn, asked, until, last).await
}
