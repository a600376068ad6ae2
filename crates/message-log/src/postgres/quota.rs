//! Limits of keys: one row for each key, locked in the order of the keys while its ledger changes.

use std::collections::HashMap;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::ConsumerKeyId;
use kanat_rate_limit::{Exchange, ExchangeOutcome, Ledger, Requester, ShareGrant, ShareRequest};
use sqlx::{PgConnection, PgPool, Row};

use super::PostgresLog;
use super::claim::database_now;
use super::columns::{bind_each, each};
use super::text::text;
use crate::quota::CONNECTOR_RETENTION;
use crate::quota::read::usage;
use crate::{KeyUsage, QuotaStore, Result};

/// Time for which a repeated exchange is recognised.
const NUMBER_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Statement that stores the number of an exchange, unless the owner has sent it before.
/// `quota_turns` and `turn` are historic names: exchange numbers.
pub(super) const EXCHANGE_NUMBER: &str = concat!(
    "INSERT INTO quota_turns (owner, turn, at) VALUES ($1, $2, ",
    database_now!(),
    ")
     ON CONFLICT (owner) DO UPDATE SET turn = excluded.turn, at = excluded.at WHERE
         quota_turns.turn < excluded.turn"
);

const DROP_EXCHANGE_NUMBERS: &str = "DELETE FROM quota_turns WHERE at < $1";

/// Finds connectors by the prefix of their ids. The backtick is the character after `_`.
pub(super) const DROP_CONNECTORS: &str = "
DELETE FROM quotas WHERE key_id >= 'ci_' AND key_id < 'ci`' AND last_used_at > 0 AND last_used_at
    < $1";

/// Reads the database's clock and the number of nodes. An exchange reads them after the rows are
/// locked, so that ledgers are refilled in the order of the locks and no time counts twice.
const NOW_AND_NODES: &str = concat!(
    "SELECT ",
    database_now!(),
    ", (SELECT count(*) FROM leases WHERE expires_at > ",
    database_now!(),
    ")"
);

/// Inserts missing rows in a transaction of its own, so that no transaction waits for a missing row
/// while it holds others.
const INSERT_MISSING: &str = "
INSERT INTO quotas (key_id, ledger, request_count, last_used_at)
SELECT v.key_id, '', 0, 0 FROM unnest($1::text[]) AS v(key_id) ORDER BY v.key_id
ON CONFLICT (key_id) DO NOTHING";

pub(super) const LEDGERS: &str =
    "SELECT key_id, ledger FROM quotas WHERE key_id = ANY($1) ORDER BY key_id FOR UPDATE";

pub(super) const SAVE: &str = "
UPDATE quotas AS q SET ledger = v.ledger, request_count = q.request_count + v.used,
    last_used_at = greatest(q.last_used_at, v.last_used_at)
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) AS v(key_id, ledger, used,
    last_used_at)
WHERE q.key_id = v.key_id";

#[async_trait::async_trait]
impl QuotaStore for PostgresLog {
    fn is_shared(&self) -> bool {
        true
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<ExchangeOutcome> {
        if exchange.requests.is_empty() {
            return self.ask(read_cluster_state(&self.readers.current())).await;
        }
        self.ask(self::exchange(&self.workers.current(), exchange))
            .await
    }

    async fn key_usage(&self, keys: &[ConsumerKeyId]) -> Result<Vec<KeyUsage>> {
        self.ask(usage(&self.readers.current(), keys)).await
    }
}

pub(super) async fn exchange(
    workers: &PgPool,
    exchange: &Exchange,
) -> sqlx::Result<ExchangeOutcome> {
    let keys = each(&exchange.requests, |request| text(request.key.as_str()));
    let mut tx = workers.begin().await?;
    let mut ledgers = lock(&mut tx, &keys).await?;
    // Runs once, unless a row is dropped between the insert and the lock.
    while ledgers.len() < keys.len() {
        tx.rollback().await?;
        sqlx::query(INSERT_MISSING)
            .bind(&keys)
            .execute(workers)
            .await?;
        tx = workers.begin().await?;
        ledgers = lock(&mut tx, &keys).await?;
    }
    let Exchange {
        node,
        owner,
        owner_age,
        number,
        requests,
    } = exchange;
    let accepted = sqlx::query(EXCHANGE_NUMBER)
        .bind(text(owner.as_str()))
        .bind(number)
        .execute(&mut *tx)
        .await?;
    if accepted.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(ExchangeOutcome::Repeated);
    }
    let (now, nodes) = now_and_nodes(&mut tx).await?;
    let requester = Requester {
        node,
        owner,
        now,
        owner_created_at: now.before(*owner_age),
        nodes,
    };
    let (grants, texts): (Vec<ShareGrant>, Vec<String>) = requests
        .iter()
        .zip(&keys)
        .map(|(request, key)| {
            let kept = ledgers.remove(key.as_ref()).unwrap_or_default();
            let mut ledger = Ledger::from_json(&kept, request.rate, now);
            let grant = ledger.exchange(request, requester);
            (grant, ledger.to_json())
        })
        .unzip();
    save(&mut tx, requests, &keys, &texts).await?;
    tx.commit().await?;
    Ok(ExchangeOutcome::Done { now, nodes, grants })
}

async fn lock(
    conn: &mut PgConnection,
    keys: &[std::borrow::Cow<'_, str>],
) -> sqlx::Result<HashMap<String, String>> {
    let rows = sqlx::query(LEDGERS).bind(keys).fetch_all(conn).await?;
    rows.iter()
        .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
        .collect()
}

async fn save(
    conn: &mut PgConnection,
    requests: &[ShareRequest],
    keys: &[std::borrow::Cow<'_, str>],
    ledgers: &[String],
) -> sqlx::Result<()> {
    let query = sqlx::query(SAVE).bind(keys).bind(ledgers);
    let query = bind_each!(query, requests, |request| [
        i64::try_from(request.used).unwrap_or(i64::MAX),
        request.last_used_at.map_or(0, Timestamp::as_millis),
    ]);
    query.execute(conn).await?;
    Ok(())
}

async fn now_and_nodes(conn: &mut PgConnection) -> sqlx::Result<(Timestamp, u32)> {
    let row = sqlx::query(NOW_AND_NODES).fetch_one(conn).await?;
    let nodes: i64 = row.try_get(1)?;
    Ok((
        Timestamp::from_millis(row.try_get(0)?),
        u32::try_from(nodes).unwrap_or(u32::MAX).max(1),
    ))
}

/// Returns the database's clock and the number of nodes, as an exchange without grants.
pub(super) async fn read_cluster_state(readers: &PgPool) -> sqlx::Result<ExchangeOutcome> {
    let (now, nodes) = now_and_nodes(&mut *readers.acquire().await?).await?;
    Ok(ExchangeOutcome::Done {
        now,
        nodes,
        grants: Vec::new(),
    })
}

/// Deletes exchange numbers whose retention has ended, and limits of connectors that were not used
/// for a long time.
pub(super) async fn purge_expired(workers: &PgPool, now: Timestamp) -> sqlx::Result<()> {
    sqlx::query(DROP_EXCHANGE_NUMBERS)
        .bind(now.before(NUMBER_RETENTION).as_millis())
        .execute(workers)
        .await?;
    sqlx::query(DROP_CONNECTORS)
        .bind(now.before(CONNECTOR_RETENTION).as_millis())
        .execute(workers)
        .await?;
    Ok(())
}
