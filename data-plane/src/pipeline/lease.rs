//! Lease of the node on the messages that it processes: one for all of them, renewed while the node
//! lives. A node that loses its lease aborts the work under it.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::{DeliveryStore, NodeLease, RenewalOutcome};
use kanat_model::id::{BootId, EpochId, NodeId};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

/// Delay before a failed request to the log is repeated.
pub(super) const RETRY: Duration = Duration::from_millis(500);

/// Current lease of the node.
pub(crate) struct Leases {
    node: NodeId,
    ttl: Duration,
    current: watch::Sender<Option<Arc<ActiveLease>>>,
    /// Woken when the log has gone back to an earlier copy.
    past_changed: Notify,
}

/// One lease, from its opening to its end.
#[derive(Debug)]
pub(crate) struct ActiveLease {
    owner: BootId,
    lost: CancellationToken,
    valid_until: watch::Sender<Instant>,
}

/// Reason why a lease ended.
enum End {
    Lost,
    /// The log was restored from an earlier copy.
    PastChanged {
        former: EpochId,
        present: EpochId,
    },
}

impl ActiveLease {
    fn new(owner: BootId, valid_until: Instant) -> Arc<Self> {
        Arc::new(Self {
            owner,
            lost: CancellationToken::new(),
            valid_until: watch::Sender::new(valid_until),
        })
    }

    pub fn owner(&self) -> &BootId {
        &self.owner
    }

    /// Cancelled once the messages belong to another node.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    pub fn is_valid(&self) -> bool {
        !self.lost.is_cancelled() && Instant::now() < *self.valid_until.borrow()
    }

    /// Waits until work may start under this lease. Returns `false` when it never may again.
    pub async fn wait_until_valid(&self) -> bool {
        let mut renewed = self.valid_until.subscribe();
        loop {
            if self.is_valid() {
                return true;
            }
            tokio::select! {
                biased;
                () = self.lost.cancelled() => return false,
                changed = renewed.changed() => if changed.is_err() { return false },
            }
        }
    }
}

impl Leases {
    pub fn new(node: NodeId, ttl: Duration) -> Self {
        Self {
            node,
            ttl,
            current: watch::Sender::new(None),
            past_changed: Notify::new(),
        }
    }

    /// Returns when the log has gone back to an earlier copy since the last call.
    pub async fn past_changed(&self) {
        self.past_changed.notified().await;
    }

    /// Returns the lease to accept messages under; `None` when there is none, or when it may have
    /// expired.
    pub fn current(&self) -> Option<Arc<ActiveLease>> {
        self.latest().filter(|active| active.is_valid())
    }

    /// Waits until a lease is open, and returns its owner. What the log has under the owner passes
    /// to a later boot of the node at once.
    pub async fn owner(&self) -> BootId {
        let mut current = self.current.subscribe();
        loop {
            if let Some(active) = current.borrow_and_update().as_ref() {
                return active.owner().clone();
            }
            if current.changed().await.is_err() {
                // Not while `self` has the sender.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Opens a lease and keeps it until `stop`, opening another whenever it is lost.
    pub async fn keep(&self, log: &dyn DeliveryStore, stop: &CancellationToken) {
        let keeping = async {
            loop {
                let (lease, active) = self.open(log).await;
                self.set(Some(Arc::clone(&active)));
                match self.renew(log, lease, &active).await {
                    End::Lost => {
                        tracing::warn!(
                            node.id = %self.node,
                            "the lease on messages was lost: what ran under it is stopped",
                        );
                    }
                    End::PastChanged { former, present } => {
                        tracing::warn!(
                            node.id = %self.node,
                            former.epoch = %former,
                            present.epoch = %present,
                            "the message log went back to an earlier state: what this node held \
                             of before is dropped",
                        );
                        self.past_changed.notify_one();
                    }
                }
                active.lost.cancel();
                self.set(None);
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            never = keeping => never,
        }
    }

    /// Gives all messages of the lease back, for any node to claim at once.
    pub async fn hand_back(&self, log: &dyn DeliveryStore) {
        let Some(active) = self.latest() else { return };
        active.lost.cancel();
        self.set(None);
        if let Err(error) = log.hand_back(active.owner()).await {
            tracing::warn!(
                %error,
                "messages could not be handed back: others claim them when the lease runs out",
            );
        }
    }

    async fn open(&self, log: &dyn DeliveryStore) -> (NodeLease, Arc<ActiveLease>) {
        loop {
            let owner = BootId::generate();
            let asked = Instant::now();
            match log.open_lease(&owner, &self.node, self.ttl).await {
                Ok(lease) => return (lease, ActiveLease::new(owner, asked + self.ttl)),
                Err(error) => tracing::warn!(%error, "no lease on messages can be opened"),
            }
            sleep(RETRY).await;
        }
    }

    /// Returns when the lease has ended.
    async fn renew(
        &self,
        log: &dyn DeliveryStore,
        mut lease: NodeLease,
        active: &ActiveLease,
    ) -> End {
        let mut pause = self.ttl / 6;
        loop {
            sleep(pause).await;
            let asked = Instant::now();
            pause = match log.renew_lease(&mut lease).await {
                Ok(RenewalOutcome::Done) => {
                    active.valid_until.send_replace(asked + self.ttl);
                    self.ttl / 6
                }
                Ok(RenewalOutcome::Ended) => return End::Lost,
                Ok(RenewalOutcome::PastChanged { former, present }) => {
                    return End::PastChanged { former, present };
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease on messages cannot be renewed");
                    RETRY.min(self.ttl / 6)
                }
            };
        }
    }

    fn latest(&self) -> Option<Arc<ActiveLease>> {
        self.current.borrow().clone()
    }

    fn set(&self, active: Option<Arc<ActiveLease>>) {
        self.current.send_replace(active);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_waits_for_a_lease_that_ran_out_and_ends_with_one_that_is_lost() {
        let active = ActiveLease::new(BootId::generate(), Instant::now());
        assert!(!active.is_valid());
        let renewed = async {
            active
                .valid_until
                .send_replace(Instant::now() + Duration::from_secs(60))
        };
        assert!(tokio::join!(active.wait_until_valid(), renewed).0);
        active.lost.cancel();
        assert!(!active.is_valid() && !active.wait_until_valid().await);
    }
}
