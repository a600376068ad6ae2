//! Limits of keys: one row for each key.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::ConsumerKeyId;
use kanat_rate_limit::{Exchange, ExchangeOutcome, Ledger, Requester, ShareGrant, ShareRequest};
use rusqlite::{OptionalExtension, params};
use sqlx::{Row, SqlitePool};

use super::SqliteLog;
use super::operation::{Effect, Task};
use super::transaction::Transaction;
use crate::quota::CONNECTOR_RETENTION;
use crate::quota::read::usage;
use crate::{KeyUsage, QuotaStore, Result};

/// Time for which a repeated exchange is recognised.
const NUMBER_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);

/// Statement that stores the number of an exchange, unless the owner has sent it before.
/// `quota_turns` and `turn` are historic names: exchange numbers.
const EXCHANGE_NUMBER: &str = "
INSERT INTO quota_turns (owner, turn, at) VALUES (?1, ?2, ?3)
ON CONFLICT (owner) DO UPDATE SET turn = excluded.turn, at = excluded.at WHERE quota_turns.turn
    < excluded.turn";

const DROP_EXCHANGE_NUMBERS: &str = "DELETE FROM quota_turns WHERE at < ?";

/// Deletes limits of connectors, by the prefix of their ids. The backtick is the character after
/// `_`.
pub(super) const DROP_CONNECTORS: &str = "
DELETE FROM quotas WHERE key_id >= 'ci_' AND key_id < 'ci`' AND last_used_at > 0 AND last_used_at
    < ?";

const NODES: &str = "SELECT count(*) FROM leases WHERE expires_at > ?";

pub(super) const LEDGER: &str = "SELECT ledger FROM quotas WHERE key_id = ?";

pub(super) const SAVE: &str = "
INSERT INTO quotas (key_id, ledger, request_count, last_used_at) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (key_id) DO UPDATE SET ledger = excluded.ledger,
    request_count = quotas.request_count + excluded.request_count,
    last_used_at = max(quotas.last_used_at, excluded.last_used_at)";

#[async_trait::async_trait]
impl QuotaStore for SqliteLog {
    /// Returns `false`: one process at a time has the file open.
    fn is_shared(&self) -> bool {
        false
    }

    async fn exchange(&self, exchange: &Exchange) -> Result<ExchangeOutcome> {
        if exchange.requests.is_empty() {
            return read_cluster_state(&self.reader).await;
        }
        let exchange = exchange.clone();
        let exchange = Task::new(move |tx| self::exchange(tx, &exchange));
        match self.writer.submit(exchange).await? {
            Effect::Exchanged(exchanged) => Ok(exchanged),
            other => Err(other.unexpected()),
        }
    }

    async fn key_usage(&self, keys: &[ConsumerKeyId]) -> Result<Vec<KeyUsage>> {
        Ok(usage(&self.reader, keys).await?)
    }
}

pub(super) fn exchange(tx: &Transaction<'_, '_>, exchange: &Exchange) -> rusqlite::Result<Effect> {
    let Exchange {
        node,
        owner,
        owner_age,
        number,
        requests,
    } = exchange;
    if tx.execute(
        EXCHANGE_NUMBER,
        params![owner.as_str(), number, tx.now.as_millis()],
    )? == 0
    {
        return Ok(Effect::Exchanged(ExchangeOutcome::Repeated));
    }
    let nodes: u32 = tx
        .conn
        .prepare_cached(NODES)?
        .query_row([tx.steady.as_millis()], |row| row.get(0))?;
    let requester = Requester {
        node,
        owner,
        now: tx.now,
        owner_created_at: tx.now.before(*owner_age),
        nodes: nodes.max(1),
    };
    let grants = requests
        .iter()
        .map(|request| exchange_key(tx, request, requester))
        .collect::<rusqlite::Result<_>>()?;
    Ok(Effect::Exchanged(ExchangeOutcome::Done {
        now: tx.now,
        nodes: requester.nodes,
        grants,
    }))
}

fn exchange_key(
    tx: &Transaction<'_, '_>,
    request: &ShareRequest,
    requester: Requester<'_>,
) -> rusqlite::Result<ShareGrant> {
    let key = request.key.as_str();
    let kept: Option<String> = tx
        .conn
        .prepare_cached(LEDGER)?
        .query_row([key], |row| row.get(0))
        .optional()?;
    let mut ledger = Ledger::from_json(&kept.unwrap_or_default(), request.rate, requester.now);
    let grant = ledger.exchange(request, requester);
    let used = i64::try_from(request.used).unwrap_or(i64::MAX);
    let last_used_at = request.last_used_at.map_or(0, Timestamp::as_millis);
    tx.execute(SAVE, params![key, ledger.to_json(), used, last_used_at])?;
    Ok(grant)
}

/// Returns the clock of this process and the number of nodes, as an exchange without grants.
pub(super) async fn read_cluster_state(reader: &SqlitePool) -> Result<ExchangeOutcome> {
    let now = Timestamp::now();
    let nodes: i64 = sqlx::query(NODES)
        .bind(Timestamp::steady().as_millis())
        .fetch_one(reader)
        .await?
        .try_get(0)?;
    Ok(ExchangeOutcome::Done {
        now,
        nodes: u32::try_from(nodes).unwrap_or(u32::MAX).max(1),
        grants: Vec::new(),
    })
}

/// Deletes exchange numbers whose retention has ended, and limits of connectors that were not used
/// for a long time.
pub(super) fn purge_expired(tx: &Transaction<'_, '_>) -> rusqlite::Result<Effect> {
    let numbers = tx.execute(
        DROP_EXCHANGE_NUMBERS,
        params![tx.now.before(NUMBER_RETENTION).as_millis()],
    )?;
    let connectors = tx.execute(
        DROP_CONNECTORS,
        params![tx.now.before(CONNECTOR_RETENTION).as_millis()],
    )?;
    Ok(Effect::Affected((numbers + connectors) as u64))
}
