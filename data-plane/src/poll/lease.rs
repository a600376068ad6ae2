//! Lease of a poll: the right to poll for a flow, which a node keeps by renewing it.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::{Error, LeasedWriteOutcome, Poll, PollCycleEnd, PollStore};
use kanat_model::Timestamp;
use kanat_model::id::BootId;

use super::state::State;
use crate::plans::DeployedFlow;

pub(super) struct PollLease {
    /// Flow at the time of the claim.
    pub flow: Arc<DeployedFlow>,
    pub owner: BootId,
    pub token: i64,
    /// Time after which another node may take over.
    pub ttl: Duration,
}

impl PollLease {
    /// Renews the lease, and stores the state, if any. Returns `Fenced` when another node has the
    /// poll.
    pub async fn keep(
        &self,
        log: &dyn PollStore,
        state: Option<&State>,
    ) -> Result<LeasedWriteOutcome, Error> {
        let now = Timestamp::steady();
        // A node that takes over finds the poll due.
        log.update_poll(&self.poll(now, now.after(self.ttl), state, None))
            .await
    }

    /// Shows with the flow why its cycle waits.
    pub async fn show_wait(&self, log: &dyn PollStore, wait: Duration, reason: &str) {
        let now = Timestamp::now();
        let ended = PollCycleEnd {
            at: now,
            error: Some(format!(
                "{reason}; it is asked again at {}",
                now.after(wait)
            )),
        };
        let steady = Timestamp::steady();
        let shown = self.poll(steady, steady.after(self.ttl), None, Some(ended));
        if let Err(error) = log.update_poll(&shown).await {
            tracing::warn!(flow.id = %self.flow.id, %error, "the wait of a poll cannot be shown");
        }
    }

    /// Gives the poll back until it is due again, and returns that time. When another node has
    /// taken over, that node decides. `ended` is the result of a complete cycle.
    pub async fn give_back(
        &self,
        log: &dyn PollStore,
        due_at: Timestamp,
        state: Option<&State>,
        ended: Option<PollCycleEnd>,
    ) -> Result<Timestamp, Error> {
        match log
            .update_poll(&self.poll(due_at, Timestamp::steady(), state, ended))
            .await?
        {
            LeasedWriteOutcome::Done => Ok(due_at),
            LeasedWriteOutcome::Fenced => {
                tracing::warn!(flow.id = %self.flow.id, "another node has taken a poll over");
                Ok(Timestamp::steady())
            }
        }
    }

    /// Renews the lease until another node has taken it over.
    pub async fn keep_on(&self, log: &dyn PollStore) {
        loop {
            tokio::time::sleep(self.ttl / 3).await;
            match self.keep(log, None).await {
                Ok(LeasedWriteOutcome::Done) => {}
                Ok(LeasedWriteOutcome::Fenced) => return,
                Err(error) => {
                    tracing::warn!(flow.id = %self.flow.id, %error, "a poll cannot be kept")
                }
            }
        }
    }

    fn poll(
        &self,
        due_at: Timestamp,
        held_until: Timestamp,
        state: Option<&State>,
        ended: Option<PollCycleEnd>,
    ) -> Poll {
        Poll {
            flow_id: self.flow.id.clone(),
            owner: self.owner.clone(),
            token: self.token,
            version: self.flow.version,
            due_at,
            held_until,
            state: state.map(State::to_bytes),
            ended,
        }
    }
}
