//! The leases of nodes: one row a boot, renewed for all its messages at once, counted by the database's clock.

use std::time::Duration;

use kanat_model::id::{BootId, NodeId};
use sqlx::PgPool;

use super::claim::database_now;
use super::text::text;
use crate::Settled;

/// Longer than any node lives, and short enough to be added to any instant.
const LONGEST_MS: i64 = 1 << 48;

pub(super) const OPEN: &str = concat!(
    "WITH ended AS (DELETE FROM leases WHERE node_id = $2 AND owner <> $1)
     INSERT INTO leases (owner, node_id, ttl_ms, expires_at) VALUES ($1, $2, $3, ",
    database_now!(),
    " + $3)
     ON CONFLICT (owner) DO UPDATE SET node_id = excluded.node_id, ttl_ms = excluded.ttl_ms,
        expires_at = excluded.expires_at"
);

pub(super) const RENEW: &str =
    concat!("UPDATE leases SET expires_at = ", database_now!(), " + ttl_ms WHERE owner = $1");

pub(super) const END: &str = "DELETE FROM leases WHERE owner = $1";

/// A boot begins; it and no earlier one is its node.
pub(super) async fn open(workers: &PgPool, owner: &BootId, node: &NodeId, ttl: Duration) -> Result<(), sqlx::Error> {
    let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(LONGEST_MS).min(LONGEST_MS);
    sqlx::query(OPEN).bind(text(owner.as_str())).bind(text(node.as_str())).bind(ttl_ms).execute(workers).await?;
    Ok(())
}

/// A lease that ran out meanwhile is good again, for the messages that nobody has claimed.
pub(super) async fn renew(workers: &PgPool, owner: &BootId) -> Result<Settled, sqlx::Error> {
    let renewed = sqlx::query(RENEW).bind(text(owner.as_str())).execute(workers).await?;
    Ok(if renewed.rows_affected() > 0 { Settled::Done } else { Settled::Fenced })
}

/// The messages keep their owner's name: without a lease it protects them no more, and whoever claims one fences it.
pub(super) async fn hand_back(workers: &PgPool, owner: &BootId) -> Result<(), sqlx::Error> {
    sqlx::query(END).bind(text(owner.as_str())).execute(workers).await?;
    Ok(())
}
