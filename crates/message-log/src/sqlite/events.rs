//! Live stream of events: arrivals and changes of state, in the order of their sequence numbers.

use sqlx::{Row, Sqlite, SqlitePool};

use super::schema::MAX_SEQ_IN_TABLES;
use crate::event::page;
use crate::row::fixed_columns;
use crate::{Error, EventPage, EventQuery};

/// Number of sequence numbers that one read covers, so that it does not keep a snapshot for long.
const MAX_SEQS_PER_READ: i64 = 20_000;

/// Sequence numbers and sizes of arrivals. SQLite finds the size of a large value without reading
/// it.
pub(super) const ARRIVAL_SIZES: &str = "
SELECT m.seq AS seq, length(CAST(coalesce(b.payload, b.raw_body) AS BLOB)) AS bytes
     FROM messages AS m CROSS JOIN bodies AS b ON b.seq = m.seq WHERE m.seq > ";

/// Sequence numbers and sizes of changes of state.
pub(super) const TRANSITION_SIZES: &str = "
SELECT t.seq AS seq, length(CAST(coalesce(b.payload, b.raw_body) AS BLOB)) + coalesce((SELECT
    length(CAST(e.output AS BLOB)) FROM transitions AS e
     WHERE e.message = t.message AND e.seq <= t.seq AND e.output IS NOT NULL ORDER BY e.seq DESC
         LIMIT 1), 0) AS bytes
     FROM transitions AS t CROSS JOIN messages AS m ON m.seq = t.message CROSS JOIN bodies AS b
         ON b.seq = m.seq WHERE t.seq > ";

/// Messages in the state of their arrival.
pub(super) const ARRIVALS: &str = concat!(
    "SELECT m.seq AS seq, ",
    fixed_columns!(),
    ", m.accepted_as AS status, 0 AS attempts, NULL AS due_at, NULL AS completed_at, NULL
     AS error_kind, NULL AS error_message, NULL AS error_field, NULL AS error_expression, NULL
     AS output
     FROM messages AS m CROSS JOIN bodies AS b ON b.seq = m.seq WHERE m.seq > "
);

/// Messages in the state after a change.
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
     FROM transitions AS t CROSS JOIN messages AS m ON m.seq = t.message CROSS JOIN bodies AS b
         ON b.seq = m.seq
     WHERE t.seq > "
);

pub(super) async fn events(reader: &SqlitePool, asked: &EventQuery) -> Result<EventPage, Error> {
    let mut tx = reader.begin().await?;
    let last: i64 = sqlx::query(MAX_SEQ_IN_TABLES)
        .fetch_one(&mut *tx)
        .await?
        .try_get(0)?;
    let until = last.min(asked.after.saturating_add(MAX_SEQS_PER_READ));
    if until <= asked.after {
        return Ok(EventPage {
            events: Vec::new(),
            next_after: asked.after,
            more: false,
        });
    }
    let page = page::page::<Sqlite>(&mut tx, asked, until, last).await?;
    tx.commit().await?;
    Ok(page)
}
