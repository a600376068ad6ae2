//! Stores new messages and hands them to their lanes. The response to the sender waits for the
//! former, not for the latter.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kanat_message_log::{AppendOutcome, DedupeKey, Error, NewMessage, Placement};
use kanat_model::Timestamp;
use kanat_model::id::MessageId;
use kanat_model::message::Trigger;
use kanat_telemetry::metrics::{Outcome, metrics};

use super::job::{Job, Reply};
use super::lane::{MessageOrigin, Slot};
use super::lease::ActiveLease;
use super::{Pipeline, Turn, capacity, lane_of};
use crate::backlog::Overload;
use crate::connector::Capacity;
use crate::plans::{CompiledFlow, Runnable};
use crate::work::{MessageInMemory, cost};

/// A message that has come in and is not stored yet.
pub(crate) struct Arrival {
    pub id: MessageId,
    pub trigger_kind: Trigger,
    pub raw_body: Bytes,
    /// `None` when the raw body is the payload.
    pub payload: Option<Bytes>,
    /// Value of `trigger` in expressions; the log stores it as the request.
    pub trigger_document: Bytes,
    pub at: Timestamp,
    pub ordering_key: Option<String>,
    pub dedupe: Vec<DedupeKey>,
    pub traceparent: Option<String>,
}

/// Result of an arrival, which is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Acceptance {
    New(MessageId),
    /// The message that came first.
    Duplicate(MessageId),
}

/// Outcome of storing a message, which is durable.
pub(crate) enum StoreOutcome {
    Runs,
    /// The message waits in the log; with a turn where a caller waits for it.
    Waits(Option<Turn>),
    /// The message that came first.
    Duplicate(MessageId),
}

/// Reason why a message is not stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error(transparent)]
    Overload(#[from] Overload),
    #[error("the message log cannot store it: {0}")]
    Log(#[from] Error),
}

/// Reason why a call is not started; nothing is stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("too many calls are under way")]
    Busy,
    #[error("the flow of this API is paused")]
    Paused,
    #[error(transparent)]
    StoreError(#[from] StoreError),
}

/// Slot and lease that a message needs to run immediately.
struct RunSlot {
    slot: Slot<Box<Job>>,
    node_lease: Arc<ActiveLease>,
}

impl Pipeline {
    /// Stores a message and, when there is room, runs it. Returns once the message is durable.
    ///
    /// When the caller goes away before that, the log gives back the message, and a claim finds it.
    ///
    /// # Errors
    /// The message is not stored.
    pub async fn accept(
        self: &Arc<Self>,
        runnable: Runnable,
        arrival: Arrival,
    ) -> Result<Acceptance, StoreError> {
        let (placement, run_slot) = self.choose_placement(&runnable, &arrival);
        let id = arrival.id.clone();
        Ok(
            match self
                .store(runnable, arrival, placement, run_slot, None)
                .await?
            {
                StoreOutcome::Runs | StoreOutcome::Waits(_) => Acceptance::New(id),
                StoreOutcome::Duplicate(first) => Acceptance::Duplicate(first),
            },
        )
    }

    /// Stores a message that a caller waits for, and runs it immediately or, behind others of its
    /// ordering key, when its turn has come. `reply` gets the outcome of the first attempt. Nothing
    /// is stored when the message cannot run now.
    pub async fn call(
        self: &Arc<Self>,
        runnable: Runnable,
        arrival: Arrival,
        reply: Reply,
    ) -> Result<StoreOutcome, CallError> {
        self.admits_calls(&runnable.flow)?;
        let (placement, run_slot) = self.choose_placement(&runnable, &arrival);
        let Some(run_slot) = run_slot else {
            return Err(CallError::Busy);
        };
        let placement = match arrival.ordering_key {
            None => placement,
            Some(_) if !self.turns.has_room(&runnable.flow.id) => return Err(CallError::Busy),
            Some(_) => Placement::Awaited(run_slot.node_lease.owner().clone()),
        };
        Ok(self
            .store(runnable, arrival, placement, Some(run_slot), Some(reply))
            .await?)
    }

    /// Checks whether the flow takes messages, before anything of one is read.
    ///
    /// # Errors
    /// The reason why the flow takes no message at present; a later call may find room.
    pub fn admits(&self, flow: &CompiledFlow) -> Result<(), Overload> {
        // What a paused flow holds does not age.
        let age = if flow.paused {
            Some(Duration::MAX)
        } else {
            flow.backlog_age()
        };
        self.backlog.check(flow.backlog(&self.backlog), age)
    }

    pub(super) fn admits_calls(&self, flow: &CompiledFlow) -> Result<(), CallError> {
        match flow.paused {
            true => Err(CallError::Paused),
            false if self.is_draining() => Err(CallError::Busy),
            false => Ok(()),
        }
    }

    async fn store(
        self: &Arc<Self>,
        runnable: Runnable,
        arrival: Arrival,
        placement: Placement,
        run_slot: Option<RunSlot>,
        reply: Option<Reply>,
    ) -> Result<StoreOutcome, StoreError> {
        let in_flight = self.begin();
        let (message, work) = message_and_work(&runnable, arrival, placement);
        let entry = self
            .backlog
            .enter(runnable.flow.backlog(&self.backlog), work.stored_bytes)?;
        let counts = Arc::clone(&runnable.flow.counts);
        let appended = self.log.append(message).await.inspect_err(|error| {
            metrics().append_failures.inc();
            self.log_availability.refused(error);
        })?;
        self.log_availability.appended();
        if matches!(appended, AppendOutcome::Duplicate(_)) {
            drop(entry);
            counts.count(Outcome::Duplicate);
        } else {
            entry.keep();
            counts.count(Outcome::Accepted);
        }
        match appended {
            AppendOutcome::Leased(lease) => {
                if let Some(RunSlot { slot, node_lease }) = run_slot {
                    self.begin_run(
                        Box::new(Job {
                            lease,
                            node_lease,
                            slot,
                            runnable,
                            work,
                            reply,
                        }),
                        in_flight,
                    );
                }
                Ok(StoreOutcome::Runs)
            }
            AppendOutcome::Awaited(lease) => {
                let turn = run_slot
                    .zip(reply)
                    .map(|(RunSlot { node_lease, .. }, reply)| {
                        let removed = runnable.removed.clone();
                        self.await_turn(runnable.flow.id.clone(), lease, node_lease, removed, reply)
                    });
                Ok(StoreOutcome::Waits(turn))
            }
            AppendOutcome::Waiting => Ok(StoreOutcome::Waits(None)),
            AppendOutcome::Duplicate(first) => Ok(StoreOutcome::Duplicate(first)),
        }
    }

    /// Decides where a message goes: to its lane when there is room, else to the log.
    fn choose_placement(
        &self,
        runnable: &Runnable,
        arrival: &Arrival,
    ) -> (Placement, Option<RunSlot>) {
        if runnable.flow.paused {
            return (Placement::Held, None);
        }
        if self.is_draining() || capacity(&self.connectors, &runnable.flow) < Capacity::Full {
            return (Placement::Queued, None);
        }
        let payload = arrival.payload.as_ref().unwrap_or(&arrival.raw_body);
        let bytes = cost(payload, &arrival.raw_body, &arrival.trigger_document);
        let run_slot = self.leases.current().and_then(|node_lease| {
            let slot = self.lanes.reserve(
                &self.lanes.lane(lane_of(&runnable.flow)),
                bytes,
                MessageOrigin::Ingress,
            )?;
            Some(RunSlot { slot, node_lease })
        });
        match run_slot {
            Some(run_slot) => (
                Placement::Leased(run_slot.node_lease.owner().clone()),
                Some(run_slot),
            ),
            None => (Placement::Queued, None),
        }
    }
}

/// Returns the message as the log stores it and as a run needs it.
pub(super) fn message_and_work(
    runnable: &Runnable,
    arrival: Arrival,
    placement: Placement,
) -> (NewMessage, MessageInMemory) {
    let flow = &runnable.flow;
    let plan = flow.plan();
    let max_attempts = plan
        .retry
        .as_ref()
        .map_or(1, |retry| retry.count.saturating_add(1));
    let mut work = MessageInMemory {
        id: arrival.id.clone(),
        trigger_kind: arrival.trigger_kind,
        payload: arrival
            .payload
            .clone()
            .unwrap_or_else(|| arrival.raw_body.clone()),
        raw_body: arrival.raw_body.clone(),
        trigger_document: arrival.trigger_document.clone(),
        steps: Vec::new(),
        received_at: arrival.at,
        stored_bytes: 0,
        attempts: 0,
        max_attempts,
        traceparent: arrival.traceparent.clone(),
    };
    let message = NewMessage {
        id: arrival.id,
        account_id: flow.account_id.clone(),
        environment_id: flow.environment_id.clone(),
        flow_id: flow.id.clone(),
        flow_name: plan.flow_name.clone(),
        flow_version: flow.version,
        trigger: arrival.trigger_kind,
        raw_body: arrival.raw_body,
        payload: arrival.payload,
        request: arrival.trigger_document,
        received_at: arrival.at,
        ordering_key: arrival.ordering_key,
        dedupe_keys: arrival.dedupe,
        replay_of: None,
        batch_id: None,
        max_attempts,
        traceparent: arrival.traceparent,
        place: placement,
    };
    work.stored_bytes = message.stored_bytes();
    (message, work)
}
