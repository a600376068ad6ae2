//! Webhook tokens that were rotated out and are accepted for a while.

use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use crate::record::record;
use crate::{Db, Error};

/// A token by its hash, and the instant from which it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    pub sha256: [u8; 32],
    pub expires_at: Timestamp,
}

record!(Former { sha256, expires_at });

const INSERT: &str =
    "INSERT INTO former_webhook_token (flow_id, sha256, expires_at) VALUES ($1, $2, $3)";

pub async fn insert(db: &mut Db, flow: &FlowId, token: &Former) -> Result<(), Error> {
    db.run(INSERT, &[flow, &token.sha256, &token.expires_at])
        .await
}

const LIST: &str = "SELECT sha256, expires_at FROM former_webhook_token WHERE flow_id = $1 AND \
                    expires_at > $2 ORDER BY expires_at, sha256";

/// Returns the former tokens that are still accepted at `now`.
pub async fn list(db: &mut Db, flow: &FlowId, now: Timestamp) -> Result<Vec<Former>, Error> {
    db.all(LIST, &[flow, &now]).await
}

const DELETE_EXPIRED: &str =
    "DELETE FROM former_webhook_token WHERE flow_id = $1 AND expires_at <= $2";

pub async fn delete_expired(db: &mut Db, flow: &FlowId, now: Timestamp) -> Result<(), Error> {
    db.run(DELETE_EXPIRED, &[flow, &now]).await
}

const DELETE_ALL: &str = "DELETE FROM former_webhook_token WHERE flow_id = $1";

/// Ends every grace period of the flow.
pub async fn delete_all(db: &mut Db, flow: &FlowId) -> Result<(), Error> {
    db.run(DELETE_ALL, &[flow]).await
}
