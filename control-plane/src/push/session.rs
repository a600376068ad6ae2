//! One node's stream, from its hello to its end: what comes in, what goes out, and the heartbeat.
//! What to send is decided in `peer`.

pub(super) mod line;
mod report;

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

use super::asking::Observation;
use super::hub::Hub;
use super::nodes::{self, Node, Running, Scope, Seat};
use super::peer::{Answered, Peer, Push, PushKind};
use super::refusals::Refusal;
use super::remote::Grant;
use super::set::Set;
use super::source::Environment;
use super::written::Written;
use line::Line;

/// The stream of one node.
pub struct Session {
    hub: Arc<Hub>,
    node: Node,
    inbound: Streaming<NodeMessage>,
    outbound: mpsc::Sender<Result<ControlMessage, Status>>,
    lines: BTreeMap<EnvironmentId, Line>,
    /// Ids or names of the environments that the node asked for; none for all.
    named: Vec<String>,
    grant: Grant,
    /// What the node is to be told, once it holds every environment that is new to it: it is
    /// complete all the time.
    welcome: Option<Welcome>,
    nonce: u64,
    /// The plan schemas that the node's build can run.
    schemas: Schemas,
    /// Woken when the node answered.
    answered: Arc<Notify>,
    /// Cancelled when the node opens another stream.
    replaced: CancellationToken,
}

/// Why a stream ends.
enum End {
    /// The node closed it, or is gone.
    Closed,
    /// It broke the protocol, or cannot go on.
    Failed(Status),
}

impl Session {
    /// Picks the environments that the node serves.
    ///
    /// # Errors
    /// One that it names does not exist, or is not open to it; it asks for all, and some are not
    /// open to it; the store cannot be read.
    pub async fn open(
        hub: Arc<Hub>,
        hello: Hello,
        grant: Grant,
        inbound: Streaming<NodeMessage>,
        outbound: mpsc::Sender<Result<ControlMessage, Status>>,
    ) -> Result<Self, Status> {
        let (epoch, all) = environments(&hub).await?;
        let schemas = Schemas {
            min: hello.min_plan_schema,
            max: hello.max_plan_schema,
        };
        line::check(&hello.environments, &all)?;
        line::check_grant(&hello.environments, &grant, &all)?;
        let served = line::served(&hello.environments, all);
        let mut states: BTreeMap<_, _> = hello
            .states
            .into_iter()
            .map(|s| (s.environment_id.clone(), s))
            .collect();
        let lines = served.iter().map(|environment| {
            let state = states.remove(environment.id.as_str());
            (
                environment.id.clone(),
                Line::open(hub.feed(&environment.id), state),
            )
        });
        let lines: BTreeMap<_, _> = lines.collect();
        let node = Node {
            id: NodeId::new(hello.node_id),
            boot_id: BootId::new(hello.boot_id),
            address: hello.address,
            build: hello.build,
            status: nodes::Status::Connected,
            last_seen: Timestamp::now(),
            in_flight: 0,
            environments: lines
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
            hub,
            node,
            inbound,
            outbound,
            lines,
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
        let hub = Arc::clone(&self.hub);
        let node_id = self.node.id.clone();
        let seat = hub
            .nodes
            .connect(self.node.clone(), &self.grant, self.replaced.clone());
        let seat = match seat {
            Ok(seat) => seat,
            Err(taken) => {
                let reason = taken.to_string();
                tracing::warn!(node.id = %node_id, reason, "a node was refused");
                // Nobody may be left to take it.
                let _ = self
                    .outbound
                    .try_send(Err(Status::permission_denied(reason)));
                return;
            }
        };
        tracing::info!(node.id = %self.node.id, node.build = %self.node.build, "node connected");
        let replaced = self.replaced.clone();
        let answered = Arc::clone(&self.answered);
        let mut written = Written::new(node_id.clone());
        let end = tokio::select! {
            end = self.serve(&seat) => end,
            () = replaced.cancelled() => {
                End::Failed(Status::aborted("the node opened another stream"))
            }
            never = written.keep(&hub, &answered) => match never {},
            () = hub.stop.cancelled() => {
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
                // Nobody may be left to take it.
                let _ = self.outbound.try_send(Err(status));
            }
        }
        drop(seat);
        written.write(&hub).await;
    }

    async fn serve(&mut self, seat: &Seat<'_>) -> End {
        match self.serve_until_it_fails(seat).await {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    async fn serve_until_it_fails(&mut self, seat: &Seat<'_>) -> Result<Infallible, End> {
        let mut sets = self.hub.watch_sets();
        let mut environments = self.hub.environments.subscribe();
        environments.borrow_and_update();
        let mut drain_wishes = seat.drain_wishes();
        let mut questions = self.hub.asking.questions();
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
                // Chunks may have taken long, and what came in meanwhile waits to be read.
                heard = Instant::now();
            }
            if let Some(welcome) = self
                .welcome
                .take_if(|_| self.lines.values().all(Line::is_held))
            {
                self.send(Out::Welcome(welcome)).await?;
            }
            tokio::select! {
                // In this order: what a node said while its stream was held up here is read before
                // it counts as silent.
                biased;
                _ = heartbeat.tick() => self.send(Out::Heartbeat(self.heartbeat())).await?,
                // It changes while the node has its seat, so that there is somebody to change it.
                Ok(()) = drain_wishes.changed() => {
                    let within = drain_wishes.borrow_and_update().unwrap_or_default();
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

    /// What the node should run by all that was sent before it.
    fn heartbeat(&self) -> Heartbeat {
        let lines = self.lines.iter();
        let wanted = lines
            .filter_map(|(environment, line)| report::wanted(environment, line.peer.as_ref()?));
        Heartbeat {
            states: wanted.collect(),
            load: None,
        }
    }

    /// Environments came or went: takes up and lets go what the node is to serve.
    async fn serve_others(&mut self, seat: &Seat<'_>) -> Result<(), End> {
        // The database may be away for a moment, which is no reason to end the stream: the next
        // look tells again.
        let Ok((epoch, all)) = environments(&self.hub).await else {
            return Ok(());
        };
        // A name that another environment has now may not be open to the node.
        let open = all.into_iter().filter(|environment| {
            self.grant
                .allows(environment.id.as_str(), &environment.name)
        });
        let served = line::served(&self.named, open.collect());
        let ids: BTreeSet<_> = served
            .iter()
            .map(|environment| environment.id.clone())
            .collect();
        if self.lines.keys().eq(ids.iter()) {
            return Ok(());
        }
        self.lines.retain(|id, _| ids.contains(id));
        for id in &ids {
            let hub = &self.hub;
            self.lines
                .entry(id.clone())
                .or_insert_with(|| Line::open(hub.feed(id), None));
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

    /// Sends whatever an environment lacks; gives whether anything went out.
    async fn push(&mut self, seat: &Seat<'_>) -> Result<bool, End> {
        let mut pushes = Vec::new();
        for (environment, line) in &mut self.lines {
            // What comes meanwhile, one push brings when this one is answered.
            if line.peer.as_ref().is_some_and(Peer::waits) {
                continue;
            }
            let withheld = self
                .hub
                .refusals
                .withheld(environment, &self.node.build, self.schemas);
            if line.begin() {
                seat.update(|node| report::runs(node, environment, line.peer.as_ref(), &withheld));
            }
            let Some(set) = line.set() else { continue };
            let Some(peer) = line.peer.as_mut() else {
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

    /// Waits for a snapshot's turn to be prepared, which may be long; the node hears meanwhile that
    /// we are there, and not what it should run: that is on its way.
    async fn encode(&self, set: &Arc<Set>) -> Result<(), End> {
        let mut encoding = pin!(self.hub.encode(Arc::clone(set)));
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
                    let line = self
                        .lines
                        .get_mut(&EnvironmentId::from(state.environment_id.as_str()));
                    let ended = line
                        .and_then(|line| line.peer.as_mut())
                        .map(|peer| peer.beat(state));
                    if ended == Some(Answered::Mismatch) {
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
                if let Some(Line {
                    peer: Some(peer), ..
                }) = self.lines.get_mut(&EnvironmentId::new(environment))
                {
                    peer.wants_snapshot();
                }
                Ok(())
            }
            Some(In::Observed(observed)) => {
                // A node tells of the environments that it serves, and of no other.
                let served = |id: &str| self.lines.contains_key(&EnvironmentId::from(id));
                let connectors = observed
                    .connectors
                    .into_iter()
                    .filter(|seen| served(&seen.environment_id));
                connectors.for_each(|seen| self.hub.observe(Observation::Connector(seen)));
                if observed.nonce > 0 {
                    self.hub.observe(Observation::Answered {
                        node: self.node.id.clone(),
                        nonce: observed.nonce,
                    });
                }
                Ok(())
            }
            // It has finished what it had, and goes.
            Some(In::Drained(_)) => Err(End::Closed),
            Some(In::Hello(_)) => Err(End::Failed(Status::invalid_argument(
                "a hello is the first message of a stream, and no other",
            ))),
            // A newer build may say what this one does not know.
            None => Ok(()),
        }
    }

    fn answered(
        &mut self,
        environment: &str,
        seat: &Seat<'_>,
        answer: impl FnOnce(&mut Peer) -> Answered,
    ) -> Result<(), End> {
        let environment = EnvironmentId::from(environment);
        let Some(line) = self.lines.get_mut(&environment) else {
            return Ok(());
        };
        let Some(peer) = &mut line.peer else {
            return Ok(());
        };
        let build = &self.node.build;
        let node = &self.node.id;
        match answer(peer) {
            Answered::Applied {
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
                    self.hub
                        .refusals
                        .note((&environment, generation), build, &resource, refusal);
                }
            }
            Answered::Refused(reason) => {
                tracing::error!(
                    node.id = %node,
                    environment.id = %environment,
                    reason,
                    "node refused a whole set",
                );
            }
            Answered::Stale => {}
            Answered::Mismatch => {
                tracing::warn!(
                    node.id = %node,
                    environment.id = %environment,
                    "node has another set than it should",
                );
            }
            Answered::Broken => {
                return Err(End::Failed(Status::aborted(
                    "a snapshot left the node with another set than it should",
                )));
            }
        }
        let withheld = self
            .hub
            .refusals
            .withheld(&environment, build, self.schemas);
        seat.heard(|node| report::runs(node, &environment, line.peer.as_ref(), &withheld));
        self.answered.notify_one();
        Ok(())
    }

    /// A node that takes nothing for three heartbeats is gone.
    async fn send(&self, kind: Out) -> Result<(), End> {
        let sent = timeout(
            SILENCE,
            self.outbound.send(Ok(ControlMessage { kind: Some(kind) })),
        )
        .await;
        sent.map_err(|_| End::Closed)?.map_err(|_| End::Closed)
    }
}

async fn environments(hub: &Hub) -> Result<(EpochId, Vec<Environment>), Status> {
    hub.source.environments().await.map_err(|error| {
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
