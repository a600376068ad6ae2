//! Keeps this control plane's lease, by which the others of the same database know that it lives,
//! and what it seals under.

use std::sync::Arc;
use std::time::Duration;

use kanat_auth::Sealer;
use kanat_model::id::BootId;
use kanat_store::{Error, Store, control_plane};
use tokio::time::{MissedTickBehavior, interval};

/// A control plane of which nothing was heard for so long is taken for dead.
const LEASE: Duration = Duration::from_secs(20);
const RENEWAL: Duration = Duration::from_secs(5);

/// Takes the lease: before the control plane answers calls.
pub async fn take(store: &Store, own: &BootId, sealer: &Sealer) -> Result<(), Error> {
    let mut tx = store.begin().await?;
    control_plane::renew(&mut tx, own, &sealer.key_ids()[0], LEASE).await?;
    tx.commit().await
}

/// Renews the lease for ever. A failure waits for the next renewal.
pub async fn run(store: Store, own: BootId, sealer: Arc<Sealer>) {
    let mut renewals = interval(RENEWAL);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        renewals.tick().await;
        if let Err(error) = take(&store, &own, &sealer).await {
            tracing::warn!(%error, "the lease of this control plane cannot be renewed");
        }
    }
}

/// Ends the lease, so that what was cut off here is free at once. It ends by itself otherwise.
pub async fn end(store: &Store, own: &BootId) {
    let ended = async {
        let mut tx = store.begin().await?;
        control_plane::end(&mut tx, own).await?;
        tx.commit().await
    };
    if let Err(error) = ended.await {
        tracing::warn!(%error, "the lease of this control plane ends later");
    }
}
