//! The leases of nodes: one row a boot, renewed for all its messages at once, counted by the
//! database's clock.
//!
//! Each renewal adds one to the counter of its row, on condition of the value that the owner wrote
//! last. A lower one, or no row, is of a log that went back to an earlier copy; so is a table that
//! was made anew, and a server on another timeline, by which a copy shows that is younger than the
//! last renewal. Then places, tokens and owners of before may be those of other messages, so that
//! the log gets another epoch, and no lease of a former epoch can be renewed.

use std::time::Duration;

use kanat_model::id::{BootId, EpochId, NodeId};
use sqlx::{PgPool, Row};

use super::claim::database_now;
use super::text::text;
use crate::lease::LeaseState;
use crate::{NodeLease, RenewalOutcome};

/// Longer than any node lives, and short enough to be added to any instant.
const LONGEST_MS: i64 = 1 << 48;

/// The counter of a node goes on with its next boot, which may claim the polls of earlier ones.
pub(super) const OPEN: &str = concat!(
    "WITH former AS (DELETE FROM leases WHERE node_id = $2 AND owner <> $1
        RETURNING owner, renewals),
     released AS (UPDATE polls SET held_until = 0 WHERE owner IN (SELECT owner FROM former))
     INSERT INTO leases (owner, node_id, ttl_ms, expires_at, renewals)
        SELECT $1, $2, $3, ",
    database_now!(),
    " + $3, coalesce(max(former.renewals), 0) + 1 FROM former
     ON CONFLICT (owner) DO UPDATE SET node_id = excluded.node_id, ttl_ms = excluded.ttl_ms,
        expires_at = excluded.expires_at, renewals = leases.renewals + 1
     RETURNING renewals, (SELECT epoch FROM epoch WHERE only_row)"
);

/// The incarnation of the log: the table of leases, and the timeline of the server, which a
/// promotion changes. Not every hosted server reports a timeline.
macro_rules! incarnation {
    () => {
        "'leases'::regclass::oid::text || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8)"
    };
}

pub(super) const INCARNATION: &str = concat!("SELECT ", incarnation!());

pub(super) const RENEW: &str = concat!(
    "UPDATE leases SET expires_at = ",
    database_now!(),
    " + ttl_ms, renewals = $5
     WHERE owner = $1 AND expires_at > 0 AND renewals BETWEEN $2 AND $3
        AND $4 = (SELECT epoch FROM epoch WHERE only_row)"
);

/// Renews a lease on a server that reports the incarnation. Elsewhere the statement must not name
/// the function: the right to call it is checked even in a branch that is not taken.
pub(super) const RENEW_INCARNATION: &str = concat!(
    "UPDATE leases SET expires_at = ",
    database_now!(),
    " + ttl_ms, renewals = $5
     WHERE owner = $1 AND expires_at > 0 AND renewals BETWEEN $2 AND $3
        AND $4 = (SELECT epoch FROM epoch WHERE only_row) AND $6 = ",
    incarnation!()
);

/// Ends a lease. The counter continues, which distinguishes an ended lease from a log of before the
/// lease. An ended lease has the negative instant of its end.
pub(super) const END: &str = concat!(
    "UPDATE leases SET expires_at = -",
    database_now!(),
    ", renewals = renewals + 1 WHERE owner = $1"
);

/// The epoch, and how far the counter of a node has come.
pub(super) const STANDING: &str = "SELECT epoch, (SELECT max(l.renewals) FROM leases AS l WHERE \
                                   l.node_id = $1) FROM epoch WHERE only_row";

pub(super) const EPOCH: &str = "SELECT epoch FROM epoch WHERE only_row";

pub(super) const NEXT_EPOCH: &str = "UPDATE epoch SET epoch = $2 WHERE only_row AND epoch = $1";

/// Leases of nodes that did not come back for a week.
const DROP_GONE: &str = concat!(
    "DELETE FROM leases WHERE abs(expires_at) < ",
    database_now!(),
    " - 604800000"
);

/// A boot begins; it and no earlier one is its node.
pub(super) async fn open(
    workers: &PgPool,
    owner: &BootId,
    node: &NodeId,
    ttl: Duration,
) -> sqlx::Result<NodeLease> {
    let ttl_ms = i64::try_from(ttl.as_millis())
        .unwrap_or(LONGEST_MS)
        .min(LONGEST_MS);
    let query = sqlx::query(OPEN)
        .bind(text(owner.as_str()))
        .bind(text(node.as_str()))
        .bind(ttl_ms);
    let row = query.fetch_one(workers).await?;
    let written = row.try_get(0)?;
    let epoch = Some(EpochId::new(row.try_get::<String, _>(1)?));
    let incarnation = incarnation(workers).await?;
    let known = LeaseState {
        epoch,
        incarnation,
        written,
        asked: written,
    };
    Ok(NodeLease {
        owner: owner.clone(),
        node: node.clone(),
        known,
    })
}

/// Returns the incarnation of the log; empty where the server does not report it.
async fn incarnation(workers: &PgPool) -> sqlx::Result<String> {
    match sqlx::query_scalar(INCARNATION).fetch_one(workers).await {
        Err(sqlx::Error::Database(error)) => {
            tracing::debug!(%error, "the server does not tell its timeline");
            Ok(String::new())
        }
        answered => answered,
    }
}

/// Renews a lease. An expired lease becomes valid again for messages that no node has claimed.
pub(super) async fn renew(workers: &PgPool, lease: &mut NodeLease) -> sqlx::Result<RenewalOutcome> {
    let LeaseState {
        epoch,
        incarnation,
        written,
        asked,
    } = &mut lease.known;
    let epoch = epoch.as_ref().map(EpochId::as_str).unwrap_or_default();
    let statement = if incarnation.is_empty() {
        RENEW
    } else {
        RENEW_INCARNATION
    };
    let query = sqlx::query(statement)
        .bind(text(lease.owner.as_str()))
        .bind(*written)
        .bind(*asked)
        .bind(epoch);
    *asked += 1;
    let query = query.bind(*asked);
    let query = if incarnation.is_empty() {
        query
    } else {
        query.bind(&*incarnation)
    };
    let renewed = query.execute(workers).await?;
    if renewed.rows_affected() > 0 {
        *written = *asked;
        return Ok(RenewalOutcome::Done);
    }
    refused(workers, lease).await
}

/// Finds why a lease cannot be renewed. A log that went back gets an epoch that is later than all
/// that are known.
async fn refused(workers: &PgPool, lease: &NodeLease) -> sqlx::Result<RenewalOutcome> {
    let former = lease
        .known
        .epoch
        .clone()
        .unwrap_or_else(|| EpochId::new(""));
    let is_same = lease.known.incarnation.is_empty()
        || incarnation(workers).await? == lease.known.incarnation;
    loop {
        let row = sqlx::query(STANDING)
            .bind(text(lease.node.as_str()))
            .fetch_one(workers)
            .await?;
        // The end of a lease and each later one count from what this one had come to.
        let present = EpochId::new(row.try_get::<String, _>(0)?);
        let renewals = row.try_get::<Option<i64>, _>(1)?;
        if is_same && present == former && renewals > Some(lease.known.written) {
            return Ok(RenewalOutcome::Ended);
        }
        // Another node, or a person, was first.
        if present > former {
            return Ok(RenewalOutcome::PastChanged { former, present });
        }
        let next = former.successor();
        if replace(workers, &present, &next).await? {
            return Ok(RenewalOutcome::PastChanged {
                former,
                present: next,
            });
        }
    }
}

/// Gives the log a later epoch. Returns the former one and the new one.
pub(super) async fn change_past(workers: &PgPool) -> sqlx::Result<(EpochId, EpochId)> {
    loop {
        let former = EpochId::new(
            sqlx::query_scalar::<_, String>(EPOCH)
                .fetch_one(workers)
                .await?,
        );
        let next = former.successor();
        if replace(workers, &former, &next).await? {
            return Ok((former, next));
        }
    }
}

/// Replaces an epoch by another. `false` when another process has replaced it.
async fn replace(workers: &PgPool, former: &EpochId, next: &EpochId) -> sqlx::Result<bool> {
    let changed = sqlx::query(NEXT_EPOCH)
        .bind(former.as_str())
        .bind(next.as_str())
        .execute(workers)
        .await?;
    Ok(changed.rows_affected() > 0)
}

/// Ends a lease. The messages keep the owner, which protects them no longer; a claim fences it.
pub(super) async fn hand_back(workers: &PgPool, owner: &BootId) -> sqlx::Result<()> {
    sqlx::query(END)
        .bind(text(owner.as_str()))
        .execute(workers)
        .await?;
    Ok(())
}

pub(super) async fn drop_gone(workers: &PgPool) -> sqlx::Result<()> {
    sqlx::query(DROP_GONE).execute(workers).await?;
    Ok(())
}
