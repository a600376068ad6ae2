//! Stream of one node, from its hello to its end: reads and sends messages, and keeps the
//! heartbeat. `peer` decides what to send.

mod report;
pub(super) mod subscription;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId, EpochId, NodeId};
use kanat_plan_stream::{HEARTBEAT, SILENCE, Schemas};
use kanat_proto::node::v1::control_message::Kind as Out;
use kanat_proto::node::v1::node_message::Kind as In;
use kanat_proto::node::v1::{
    ControlMessage, Delta, Drain, Heartbeat, Hello, NodeMessage, ObservedRequest, SnapshotBegin,
    SnapshotChunk, SnapshotEnd, Welcome,
};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::context::Context;
use super::grant::Grant;
use super::node_record::NodeRecord;
use super::nodes::{self, Node, Running, Scope, Seat};
use super::observations::Observation;
use super::peer::{AckOutcome, Peer, Push, PushKind};
use super::refusals::Refusal;
use super::set::PlanSet;
use super::source::Environment;
use subscription::Subscription;

/// Stream of one node.
pub struct Session {
    context: Arc<Context>,
    node: Node,
    inbound: Streaming<NodeMessage>,
    outbound: mpsc::Sender<Result<ControlMessage, Status>>,
    subscriptions: BTreeMap<EnvironmentId, Subscription>,
    /// Ids or names of the environments that the node asked for; none for all.
    named: Vec<String>,
    grant: Grant,
    /// The environments of the node. The message is sent once the node holds the new ones, so that
    /// it is complete at any time.
    welcome: Option<Welcome>,
    nonce: u64,
    /// The plan schemas that the node's build can run.
    schemas: Schemas,
    /// Notified when the node has answered.
    answered: Arc<Notify>,
    /// Cancelled when the node opens another stream.
    replaced: CancellationToken,
}

/// Reason of the end of a stream.
enum End {
    /// The node closed the stream, or is gone.
    Closed,
    /// The node broke the protocol, or the stream cannot go on.
    Failed(Status),
}

impl Session {
    /// Opens the session of a node, with the environments that the node serves.
    ///
    /// # Errors
    /// An environment that the node names does not exist or is not open to it; the node asks for
    /// all, and some are not open to it; the store cannot be read.
    pub async fn open(
        context: Arc<Context>,
        hello: Hello,
        grant: Grant,
        inbound: Streaming<NodeMessage>,
        outbound: mpsc::Sender<Result<ControlMessage, Status>>,
    ) -> Result<Self, Status> {
        let (epoch, all) = environments(&context).await?;
        let schemas = Schemas {
            min: hello.min_plan_schema,
            max: hello.max_plan_schema,
        };
        subscription::check(&hello.environments, &all)?;
        subscription::check_grant(&hello.environments, &grant, &all)?;
        let served = subscription::served(&hello.environments, all);
        let mut states: BTreeMap<_, _> = hello
            .states
            .into_iter()
            .map(|s| (s.environment_id.clone(), s))
            .collect();
        let subscriptions = served.iter().map(|environment| {
            let state = states.remove(environment.id.as_str());
            (
                environment.id.clone(),
                Subscription::open(context.feed(&environment.id), state),
            )
        });
        let subscriptions: BTreeMap<_, _> = subscriptions.collect();
        let node = Node {
            id: NodeId::new(hello.node_id),
            boot_id: BootId::new(hello.boot_id),
            address: hello.address,
            build: hello.build,
            status: nodes::Status::Connected,
            last_seen: Timestamp::now(),
            in_flight: 0,
            environments: subscriptions
                .keys()
                .map(|id| (id.clone(), Running::default()))
                .collect(),
            scope: if hello.environments.is_empty() {
                Scope::All
            } else {
                Scope::Named
            },
        };
        let named = hello.environments;
        let welcome = Some(welcome(epoch, served));
        let answered = Arc::new(Notify::new());
        let replaced = CancellationToken::new();
        let nonce = 0;
        Ok(Self {
            context,
            node,
            inbound,
            outbound,
            subscriptions,
            named,
            grant,
            welcome,
            nonce,
            schemas,
            answered,
            replaced,
        })
    }

    /// Serves the node until its stream ends.
    pub async fn run(mut self) {
        let context = Arc::clone(&self.context);
        let node_id = self.node.id.clone();
        let seat = context
            .nodes
            .connect(self.node.clone(), &self.grant, self.replaced.clone());
        let seat = match seat {
            Ok(seat) => seat,
            Err(taken) => {
                let reason = taken.to_string();
                tracing::warn!(node.id = %self.node.id, reason, "a node was refused");
                // The node may be gone.
                let _ = self
                    .outbound
                    .try_send(Err(Status::permission_denied(reason)));
                return;
            }
        };
        tracing::info!(node.id = %self.node.id, node.build = %self.node.build, "node connected");
        let replaced = self.replaced.clone();
        let answered = Arc::clone(&self.answered);
        let mut record = NodeRecord::new(node_id);
        let end = tokio::select! {
            end = self.serve(&seat) => end,
            () = replaced.cancelled() => {
                End::Failed(Status::aborted("the node opened another stream"))
            }
            never = record.keep(&context, &answered) => match never {},
            () = context.tasks.stopping().cancelled() => {
                End::Failed(Status::unavailable("the control plane shuts down"))
            }
        };
        match end {
            End::Closed => tracing::info!(node.id = %self.node.id, "node disconnected"),
            End::Failed(status) => {
                tracing::warn!(
                    node.id = %self.node.id,
                    reason = status.message(),
                    "the stream of a node was ended",
                );
                // The node may be gone.
                let _ = self.outbound.try_send(Err(status));
            }
        }
        drop(seat);
        record.write(&context).await;
    }

    async fn serve(&mut self, seat: &Seat<'_>) -> End {
        match self.serve_until_it_fails(seat).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn serve_until_it_fails(&mut self, seat: &Seat<'_>) -> Result<Infallible, End> {
        let mut sets = self.context.watch_sets();
        let mut environments = self.context.environments.subscribe();
        environments.borrow_and_update();
        let mut drain_requests = seat.drain_requests();
        let mut questions = self.context.observations.questions();
        questions.borrow_and_update();
        let mut heartbeat = interval(HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if let Some(welcome) = self.welcome.take() {
            self.send(Out::Welcome(welcome)).await?;
        }
        let mut heard = Instant::now();
        loop {
            sets.borrow_and_update();
            if self.push(seat).await? {
                // Chunks may have taken long, and messages that came meanwhile wait to be read.
                heard = Instant::now();
            }
            if let Some(welcome) = self
                .welcome
                .take_if(|_| self.subscriptions.values().all(Subscription::is_held))
            {
                self.send(Out::Welcome(welcome)).await?;
            }
            tokio::select! {
                // In this order: messages that came while the stream was busy here are read before
                // the node counts as silent.
                biased;
                _ = heartbeat.tick() => self.send(Out::Heartbeat(self.heartbeat())).await?,
                // The sender lives as long as the registration of the node.
                Ok(()) = drain_requests.changed() => {
                    let within = drain_requests.borrow_and_update().unwrap_or_default();
                    let deadline_seconds = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
                    self.send(Out::Drain(Drain { deadline_seconds })).await?;
                }
                Ok(()) = questions.changed() => {
                    let nonce = *questions.borrow_and_update();
                    self.send(Out::ObservedRequest(ObservedRequest { nonce })).await?;
                }
                _ = environments.changed() => self.serve_others(seat).await?,
                message = self.inbound.message() => {
                    heard = Instant::now();
                    let message = message.map_err(|_| End::Closed)?.ok_or(End::Closed)?;
                    self.received(message, seat)?;
                }
                _ = sets.changed() => {}
                () = sleep_until(heard + SILENCE) => {
                    return Err(End::Failed(Status::deadline_exceeded(
                        "three heartbeats of the node are missing",
                    )));
                }
            }
        }
    }

    /// Returns a heartbeat with the sets that the node should run by the pushes before it.
    fn heartbeat(&self) -> Heartbeat {
        let subscriptions = self.subscriptions.iter();
        let wanted = subscriptions.filter_map(|(environment, subscription)| {
            report::wanted(environment, subscription.peer.as_ref()?)
        });
        Heartbeat {
            states: wanted.collect(),
            load: None,
        }
    }

    /// Updates the subscriptions after environments were created or removed.
    async fn serve_others(&mut self, seat: &Seat<'_>) -> Result<(), End> {
        // The database may be away for a moment, which is no reason to end the stream: the next
        // change of the environments brings the rest.
        let Ok((epoch, all)) = environments(&self.context).await else {
            return Ok(());
        };
        // A name that another environment has now may not be open to the node.
        let open = all.into_iter().filter(|environment| {
            self.grant
                .allows(environment.id.as_str(), &environment.name)
        });
        let served = subscription::served(&self.named, open.collect());
        let ids: BTreeSet<_> = served
            .iter()
            .map(|environment| environment.id.clone())
            .collect();
        if self.subscriptions.keys().eq(ids.iter()) {
            return Ok(());
        }
        self.subscriptions.retain(|id, _| ids.contains(id));
        for id in &ids {
            let context = &self.context;
            self.subscriptions
                .entry(id.clone())
                .or_insert_with(|| Subscription::open(context.feed(id), None));
        }
        seat.update(|node| {
            node.environments.retain(|id, _| ids.contains(id));
            for id in ids {
                node.environments.entry(id).or_default();
            }
        });
        self.welcome = Some(welcome(epoch, served));
        Ok(())
    }

    /// Sends the pushes that the node needs, and returns whether there were any.
    async fn push(&mut self, seat: &Seat<'_>) -> Result<bool, End> {
        let mut pushes = Vec::new();
        for (environment, subscription) in &mut self.subscriptions {
            // Later changes are sent together, once this push is answered.
            if subscription.peer.as_ref().is_some_and(Peer::waits) {
                continue;
            }
            let withheld =
                self.context
                    .refusals
                    .withheld(environment, &self.node.build, self.schemas);
            if subscription.begin() {
                seat.update(|node| {
                    report::runs(node, environment, subscription.peer.as_ref(), &withheld)
                });
            }
            let Some(set) = subscription.set() else {
                continue;
            };
            let Some(peer) = subscription.peer.as_mut() else {
                continue;
            };
            if let Some(push) = peer.next(&set, &withheld, self.nonce + 1) {
                self.nonce += 1;
                pushes.push((environment.clone(), push));
            }
        }
        let any = !pushes.is_empty();
        for (environment, push) in pushes {
            self.send_push(environment, push).await?;
        }
        Ok(any)
    }

    async fn send_push(&mut self, environment: EnvironmentId, push: Push) -> Result<(), End> {
        let environment_id = environment.into_string();
        let nonce = push.nonce;
        let epoch = push.set.epoch.to_string();
        let generation = push.set.generation;
        let set_hash = push.set_hash.to_vec();
        match push.kind {
            PushKind::Delta {
                from_generation,
                upserts,
                removals,
            } => {
                self.send(Out::Delta(Delta {
                    nonce,
                    environment_id,
                    epoch,
                    from_generation,
                    generation,
                    upserts,
                    removals,
                    set_hash,
                    tables: Vec::new(),
                }))
                .await
            }
            PushKind::Snapshot(sent) => {
                self.encode(&sent).await?;
                let encoded = sent.encoded();
                let begin = SnapshotBegin {
                    nonce,
                    environment_id,
                    epoch,
                    generation,
                    length: encoded.length(),
                    sha256: encoded.sha256().to_vec(),
                    set_hash,
                    // That all of a set is withheld is no reason to empty the node.
                    empty_is_meant: push.set.is_empty() && push.set.empty_is_meant(),
                };
                self.send(Out::SnapshotBegin(begin)).await?;
                for data in encoded.chunks() {
                    self.send(Out::SnapshotChunk(SnapshotChunk { nonce, data }))
                        .await?;
                }
                self.send(Out::SnapshotEnd(SnapshotEnd { nonce })).await
            }
        }
    }

    /// Encodes a snapshot, which may wait long for its turn. Heartbeats meanwhile name no set: the
    /// snapshot is on its way.
    async fn encode(&self, set: &Arc<PlanSet>) -> Result<(), End> {
        let mut encoding = pin!(self.context.encode(Arc::clone(set)));
        let mut heartbeat = interval(HEARTBEAT);
        loop {
            tokio::select! {
                () = &mut encoding => return Ok(()),
                _ = heartbeat.tick() => self.send(Out::Heartbeat(Heartbeat::default())).await?,
            }
        }
    }

    fn received(&mut self, message: NodeMessage, seat: &Seat<'_>) -> Result<(), End> {
        match message.kind {
            Some(In::Ack(ack)) => self.answered(&ack.environment_id, seat, |peer| peer.acked(&ack)),
            Some(In::Nack(nack)) => {
                self.answered(&nack.environment_id, seat, |peer| peer.nacked(&nack))
            }
            Some(In::Heartbeat(heartbeat)) => {
                seat.heard(|node| report::loaded(node, heartbeat.load.as_ref()));
                for state in &heartbeat.states {
                    let subscription = self
                        .subscriptions
                        .get_mut(&EnvironmentId::from(state.environment_id.as_str()));
                    let ended = subscription
                        .and_then(|subscription| subscription.peer.as_mut())
                        .map(|peer| peer.beat(state));
                    if ended == Some(AckOutcome::Mismatch) {
                        let environment = &state.environment_id;
                        tracing::warn!(
                            node.id = %self.node.id,
                            environment.id = environment,
                            "node has another set than it should",
                        );
                    }
                }
                Ok(())
            }
            Some(In::SnapshotRequest(request)) => {
                let environment = request.environment_id;
                let reason = request.reason;
                tracing::warn!(
                    node.id = %self.node.id,
                    environment.id = environment,
                    reason,
                    "node asks for a snapshot",
                );
                if let Some(Subscription {
                    peer: Some(peer), ..
                }) = self.subscriptions.get_mut(&EnvironmentId::new(environment))
                {
                    peer.wants_snapshot();
                }
                Ok(())
            }
            Some(In::Observed(observed)) => {
                // A node reports on the environments that it serves alone.
                let served = |id: &str| self.subscriptions.contains_key(&EnvironmentId::from(id));
                let connectors = observed
                    .connectors
                    .into_iter()
                    .filter(|seen| served(&seen.environment_id));
                connectors.for_each(|seen| {
                    self.context
                        .observations
                        .report(Observation::Connector(seen))
                });
                if observed.nonce > 0 {
                    self.context.observations.report(Observation::Answered {
                        node: self.node.id.clone(),
                        nonce: observed.nonce,
                    });
                }
                Ok(())
            }
            // The node has finished its messages.
            Some(In::Drained(_)) => Err(End::Closed),
            Some(In::Hello(_)) => Err(End::Failed(Status::invalid_argument(
                "a hello is the first message of a stream, and no other",
            ))),
            // A newer build may send messages that this one does not know.
            None => Ok(()),
        }
    }

    fn answered(
        &mut self,
        environment: &str,
        seat: &Seat<'_>,
        answer: impl FnOnce(&mut Peer) -> AckOutcome,
    ) -> Result<(), End> {
        let environment = EnvironmentId::from(environment);
        let Some(subscription) = self.subscriptions.get_mut(&environment) else {
            return Ok(());
        };
        let Some(peer) = &mut subscription.peer else {
            return Ok(());
        };
        let build = &self.node.build;
        let node = &self.node.id;
        match answer(peer) {
            AckOutcome::Applied {
                generation,
                refused,
            } => {
                tracing::debug!(
                    node.id = %node,
                    environment.id = %environment,
                    generation,
                    "node applied plans",
                );
                for (resource, hash, message) in refused {
                    tracing::warn!(
                        node.id = %node,
                        resource.id = resource,
                        reason = message,
                        "node refused a resource",
                    );
                    let refusal = Refusal { hash, message };
                    self.context.refusals.note(
                        (&environment, generation),
                        build,
                        &resource,
                        refusal,
                    );
                }
            }
            AckOutcome::Refused(reason) => {
                tracing::error!(
                    node.id = %node,
                    environment.id = %environment,
                    reason,
                    "node refused a whole set",
                );
            }
            AckOutcome::Stale => {}
            AckOutcome::Mismatch => {
                tracing::warn!(
                    node.id = %node,
                    environment.id = %environment,
                    "node has another set than it should",
                );
            }
            AckOutcome::Broken => {
                return Err(End::Failed(Status::aborted(
                    "a snapshot left the node with another set than it should",
                )));
            }
        }
        let withheld = self
            .context
            .refusals
            .withheld(&environment, build, self.schemas);
        seat.heard(|node| report::runs(node, &environment, subscription.peer.as_ref(), &withheld));
        self.answered.notify_one();
        Ok(())
    }

    /// Sends a message. A node that reads nothing for three heartbeats is gone.
    async fn send(&self, kind: Out) -> Result<(), End> {
        let sent = timeout(
            SILENCE,
            self.outbound.send(Ok(ControlMessage { kind: Some(kind) })),
        )
        .await;
        sent.map_err(|_| End::Closed)?.map_err(|_| End::Closed)
    }
}

async fn environments(context: &Context) -> Result<(EpochId, Vec<Environment>), Status> {
    context.source.environments().await.map_err(|error| {
        tracing::warn!(%error, "cannot read the environments for a node");
        Status::unavailable("the environments cannot be read")
    })
}

fn welcome(epoch: EpochId, served: Vec<Environment>) -> Welcome {
    Welcome {
        epoch: epoch.into_string(),
        environments: served.into_iter().map(Environment::into_wire).collect(),
        heartbeat_seconds: u32::try_from(HEARTBEAT.as_secs()).unwrap_or(u32::MAX),
    }
}
