//! The right to poll for a flow, which a node keeps by saying that it lives.

use std::sync::Arc;
use std::time::Duration;

use kanat_message_log::{Error, Poll, PollCycleEnd, PollStore, SettleOutcome};
use kanat_model::Timestamp;
use kanat_model::id::BootId;

use super::state::State;
use crate::plans::DeployedFlow;

pub(super) struct Hold {
    /// The flow as it was when the right was taken.
    pub flow: Arc<DeployedFlow>,
    pub owner: BootId,
    pub token: i64,
    /// How long others wait for a word of the holder.
    pub lease: Duration,
}

impl Hold {
    /// Keeps it for another lease, and writes the state down when there is one. `Fenced` when
    /// another has it.
    pub async fn keep(
        &self,
        log: &dyn PollStore,
        state: Option<&State>,
    ) -> Result<SettleOutcome, Error> {
        let now = Timestamp::steady();
        // Whoever takes over finds it due.
        log.keep_poll(&self.poll(now, now.after(self.lease), state, None))
            .await
    }

    /// Gives it back until it is due again, and says when that is. Where another has taken it over,
    /// it is that one's to say. `ended` when a cycle has.
    pub async fn give_back(
        &self,
        log: &dyn PollStore,
        due_at: Timestamp,
        state: Option<&State>,
        ended: Option<PollCycleEnd>,
    ) -> Result<Timestamp, Error> {
        match log
            .keep_poll(&self.poll(due_at, Timestamp::steady(), state, ended))
            .await?
        {
            SettleOutcome::Done => Ok(due_at),
            SettleOutcome::Fenced => {
                tracing::warn!(flow.id = %self.flow.id, "another node has taken a poll over");
                Ok(Timestamp::steady())
            }
        }
    }

    /// Keeps it until it is lost to another.
    pub async fn keep_on(&self, log: &dyn PollStore) {
        loop {
            tokio::time::sleep(self.lease / 3).await;
            match self.keep(log, None).await {
                Ok(SettleOutcome::Done) => {}
                Ok(SettleOutcome::Fenced) => return,
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
