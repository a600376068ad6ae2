//! The log under test, with calls that fail the test where they fail, and messages to put into it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, MessageId, NodeId};
use kanat_model::message::{ErrorKind, Failure, Trigger};
use tokio::sync::Mutex;

use super::Harness;
use crate::{
    AppendOutcome, Claim, ClaimBudget, ClaimedMessage, Event, EventQuery, Filter, Lease,
    LeasedWriteOutcome, Message, MessageLog, NewMessage, NodeLease, Outcome, Placement,
    RenewalOutcome, Room, Settlement, StepCheckpoint, Tenant, TraceRecord,
};

/// A time that no test outlasts.
pub const LONG: Duration = Duration::from_secs(3_600);

/// A log under test and one node that has it open.
pub struct Subject {
    pub log: Arc<dyn MessageLog>,
    pub node: NodeId,
    pub boot: BootId,
    standing: Mutex<NodeLease>,
}

impl Subject {
    /// Opens the log as a new node.
    pub async fn open(harness: &dyn Harness) -> Self {
        Self::open_as(harness, NodeId::generate()).await
    }

    /// Opens the log as a new boot of a node.
    pub async fn open_as(harness: &dyn Harness, node: NodeId) -> Self {
        Self::start(harness.open().await, node).await
    }

    /// Another node on the same log.
    pub async fn beside(&self) -> Self {
        Self::start(self.log.clone(), NodeId::generate()).await
    }

    async fn start(log: Arc<dyn MessageLog>, node: NodeId) -> Self {
        let boot = BootId::generate();
        let lease = log
            .open_lease(&boot, &node, LONG)
            .await
            .expect("a lease opens");
        Self {
            log,
            node,
            boot,
            standing: Mutex::new(lease),
        }
    }

    /// Opens the lease of this boot again.
    pub async fn reopen(&self) {
        *self.standing.lock().await = self
            .log
            .open_lease(&self.boot, &self.node, LONG)
            .await
            .expect("a lease opens");
    }

    /// Renews the lease of this boot.
    pub async fn renew(&self) -> RenewalOutcome {
        self.renew_in(self.log.as_ref()).await
    }

    /// Renews the lease of this boot in a log that was opened again.
    pub async fn renew_in(&self, log: &dyn MessageLog) -> RenewalOutcome {
        log.renew_lease(&mut *self.standing.lock().await)
            .await
            .expect("the log answers")
    }

    pub async fn append(&self, message: NewMessage) -> AppendOutcome {
        self.log
            .append(message)
            .await
            .expect("the message is taken")
    }

    /// Appends all at the same time.
    pub async fn append_all(&self, messages: Vec<NewMessage>) -> Vec<AppendOutcome> {
        join_all(messages.into_iter().map(|message| self.append(message))).await
    }

    /// Appends a message leased to this node.
    pub async fn lease(&self, mut message: NewMessage) -> Lease {
        message.place = Placement::Leased(self.boot.clone());
        leased(self.append(message).await)
    }

    pub async fn settle(
        &self,
        lease: &Lease,
        attempt: u32,
        outcome: Outcome,
    ) -> LeasedWriteOutcome {
        self.log
            .settle(&settlement(lease, attempt, outcome))
            .await
            .expect("the settlement is taken")
    }

    pub async fn deliver(&self, lease: &Lease) {
        assert_eq!(
            self.settle(lease, 1, Outcome::Delivered).await,
            LeasedWriteOutcome::Done
        );
    }

    /// Puts a message in and fails it for good.
    pub async fn dead_letter(&self, message: NewMessage) -> Lease {
        let lease = self.lease(message).await;
        assert_eq!(
            self.settle(&lease, 1, Outcome::DeadLetter).await,
            LeasedWriteOutcome::Done
        );
        lease
    }

    pub async fn checkpoint(
        &self,
        lease: &Lease,
        name: &str,
        output: &'static str,
    ) -> LeasedWriteOutcome {
        let output = Bytes::from_static(output.as_bytes());
        let checkpoint = StepCheckpoint {
            lease: lease.clone(),
            name: name.to_owned(),
            status: 201,
            output,
        };
        self.log
            .checkpoint(checkpoint)
            .await
            .expect("the checkpoint is taken")
    }

    /// Claims up to so many messages of each flow.
    pub async fn claim(&self, messages: u32, flows: &[&FlowId]) -> Vec<ClaimedMessage> {
        let rooms = flows
            .iter()
            .map(|flow| Room {
                flow_id: (*flow).clone(),
                messages,
                without_versions: Vec::new(),
            })
            .collect();
        let claim = Claim {
            owner: self.boot.clone(),
            bytes: u64::MAX,
            budgets: vec![ClaimBudget::unbounded(rooms)],
            awaited: Vec::new(),
        };
        self.log.claim(claim).await.expect("the claim is taken")
    }

    /// Claims the one message that there is to claim.
    pub async fn claim_one(&self, flow: &FlowId) -> ClaimedMessage {
        let mut claimed = self.claim(10, &[flow]).await;
        assert_eq!(claimed.len(), 1, "one message waits");
        claimed.remove(0)
    }

    pub async fn get(&self, id: &MessageId) -> Message {
        self.log
            .get(&tenant(), id)
            .await
            .expect("the log reads")
            .expect("the message exists")
    }

    pub async fn trace(&self, id: &MessageId) -> Vec<TraceRecord> {
        self.log.trace(&tenant(), id).await.expect("the log reads")
    }

    /// The ids of all messages of a flow, newest first.
    pub async fn ids(&self, filter: &Filter) -> Vec<MessageId> {
        let page = crate::Position::Page(kanat_model::page::Page::new(Some(500), None));
        let found = self.log.list(filter, page).await.expect("the log reads");
        assert_eq!(
            found.total,
            u64::try_from(found.messages.len()).expect("few")
        );
        found
            .messages
            .into_iter()
            .map(|message| message.id)
            .collect()
    }

    /// Everything that the query finds, over as many pages as it takes.
    pub async fn events(&self, mut query: EventQuery) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            let page = self.log.events(&query).await.expect("the log reads");
            assert!(page.next_after >= query.after, "a stream goes on");
            query.after = page.next_after;
            events.extend(page.events);
            if !page.more {
                return events;
            }
        }
    }

    pub async fn close(&self) {
        self.log.close().await;
    }
}

pub fn leased(appended: AppendOutcome) -> Lease {
    match appended {
        AppendOutcome::Leased(lease) => lease,
        other => panic!("the message is leased to its sender, not {other:?}"),
    }
}

/// Whose messages the suite writes.
pub fn tenant() -> Tenant {
    Tenant {
        account_id: AccountId::new("acc_1"),
        environment_id: EnvironmentId::new("env_1"),
    }
}

/// A message of a flow, queued.
pub fn message(flow: &FlowId) -> NewMessage {
    let Tenant {
        account_id,
        environment_id,
    } = tenant();
    NewMessage {
        id: MessageId::generate(),
        account_id,
        environment_id,
        flow_id: flow.clone(),
        flow_name: "order-sync".to_owned(),
        flow_version: 3,
        trigger: Trigger::Webhook,
        raw_body: Bytes::from_static(br#"{"id":"o-1"}"#),
        payload: None,
        request: Bytes::from_static(br#"{"method":"POST"}"#),
        received_at: Timestamp::now(),
        ordering_key: None,
        dedupe_keys: Vec::new(),
        replay_of: None,
        batch_id: None,
        max_attempts: 4,
        traceparent: None,
        place: Placement::Queued,
    }
}

/// A message of a flow that is ordered by a key.
pub fn ordered(flow: &FlowId, key: &str) -> NewMessage {
    NewMessage {
        ordering_key: Some(key.to_owned()),
        ..message(flow)
    }
}

pub fn settlement(lease: &Lease, attempt: u32, outcome: Outcome) -> Settlement {
    let failure = matches!(
        outcome,
        Outcome::Retry { .. } | Outcome::DeadLetter | Outcome::Discarded
    )
    .then(failure);
    Settlement {
        lease: lease.clone(),
        at: Timestamp::now(),
        attempt,
        outcome,
        output: Some(Bytes::from(format!(r#"{{"attempt":{attempt}}}"#))),
        failure,
        trace: vec![record("delivery", attempt)],
    }
}

pub fn failure() -> Failure {
    Failure {
        kind: ErrorKind::Status,
        message: "the target answered 500".to_owned(),
        field: None,
        expression: None,
    }
}

pub fn record(stage: &str, attempt: u32) -> TraceRecord {
    TraceRecord {
        at: Timestamp::now(),
        stage: stage.to_owned(),
        name: "erp".to_owned(),
        status: "error".to_owned(),
        duration_ms: 12,
        request: Some(r#"{"url":"/orders"}"#.to_owned()),
        response: None,
        error: Some("500".to_owned()),
        attempt,
    }
}
