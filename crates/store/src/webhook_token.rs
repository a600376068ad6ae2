//! Webhook tokens that were rotated out and are accepted for a while.

use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use crate::record::record;
use crate::statement::statements;
use crate::{Db, Error};

record! {
    /// A token by its hash, and the instant from which it is refused.
    pub struct Former {
        pub sha256: [u8; 32],
        pub expires_at: Timestamp,
    }
}

const INSERT: &str =
    "INSERT INTO former_webhook_token (flow_id, sha256, expires_at) VALUES ($1, $2, $3)";

pub async fn insert(db: &mut Db, flow: &FlowId, token: &Former) -> Result<(), Error> {
    db.run(INSERT, &[flow, &token.sha256, &token.expires_at])
        .await
}

statements! {
    /// Returns the former tokens that are still accepted at `now`.
    fn list(flow: &FlowId, now: Timestamp) -> Vec<Former> =
        "SELECT sha256, expires_at FROM former_webhook_token WHERE flow_id = $1 AND expires_at > \
         $2 ORDER BY expires_at, sha256";

    fn delete_expired(flow: &FlowId, now: Timestamp) =
        "DELETE FROM former_webhook_token WHERE flow_id = $1 AND expires_at <= $2";

    /// Ends every grace period of the flow.
    fn delete_all(flow: &FlowId) = "DELETE FROM former_webhook_token WHERE flow_id = $1";
}
