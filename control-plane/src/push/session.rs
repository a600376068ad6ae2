//! Stream of one node, from its hello to its end: reads and sends messages, and keeps the
//! heartbeat. `environment_sync` decides what to send.

mod inbound;
mod node_state;
mod outbound;
pub(super) mod subscription;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use kanat_model::id::{BootId, EnvironmentId, EpochId, NodeId};
use kanat_model::{Timestamp, saturated};
use kanat_plan_stream::{HEARTBEAT_INTERVAL, PlanSchemaRange, SILENCE_TIMEOUT};
use kanat_proto::node::v1::control_message::Kind as Out;
use kanat_proto::node::v1::{
    ControlMessage, Drain, Heartbeat, Hello, NodeMessage, ObservedRequest, Welcome,
};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::context::Context;
use super::grant::Grant;
use super::node_record::NodeRecordWriter;
use super::nodes::{self, EnvironmentStatus, Node, Registration, Scope};
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
    /// Marks each change of the environments since the session read them.
    known_environments: watch::Receiver<BTreeMap<EnvironmentId, String>>,
    /// Welcome to send, with the list of the node's environments. The first one is sent before any
    /// push. A later one is sent once the node holds all its environments, so that it can always
    /// serve all of the list.
    unsent_welcome: Option<Welcome>,
    nonce: u64,
    /// The plan schemas that the node's build can run.
    plan_schemas: PlanSchemaRange,
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
        // Subscribed before the read, so that no change falls in between.
        let known_environments = context.environments.subscribe();
        let (epoch, all) = environments(&context).await?;
        let plan_schemas = PlanSchemaRange {
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
                .map(|id| (id.clone(), EnvironmentStatus::default()))
                .collect(),
            scope: if hello.environments.is_empty() {
                Scope::All
            } else {
                Scope::Named
            },
        };
        let named = hello.environments;
        let unsent_welcome = Some(welcome(epoch, served));
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
            known_environments,
            unsent_welcome,
            nonce,
            plan_schemas,
            answered,
            replaced,
        })
    }

    /// Serves the node until its stream ends.
    pub async fn run(mut self) {
        let context = Arc::clone(&self.context);
        let node_id = self.node.id.clone();
        let registration =
            context
                .nodes
                .connect(self.node.clone(), &self.grant, self.replaced.clone());
        let registration = match registration {
            Ok(registration) => registration,
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
        let mut record = NodeRecordWriter::new(node_id);
        let end = tokio::select! {
            end = self.serve(&registration) => end,
            () = replaced.cancelled() => {
                End::Failed(Status::aborted("the node opened another stream"))
            }
            never = record.run(&context, &answered) => match never {},
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
        drop(registration);
        record.write(&context).await;
    }

    async fn serve(&mut self, registration: &Registration<'_>) -> End {
        let Err(end) = self.serve_until_it_fails(registration).await;
        end
    }

    async fn serve_until_it_fails(
        &mut self,
        registration: &Registration<'_>,
    ) -> Result<Infallible, End> {
        let mut feed_reads = self.context.watch_feed_reads();
        let mut environments = self.known_environments.clone();
        let mut drain_requests = registration.drain_requests();
        let mut request_nonces = self.context.observations.request_nonces();
        request_nonces.borrow_and_update();
        let mut heartbeat = interval(HEARTBEAT_INTERVAL);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        if let Some(welcome) = self.unsent_welcome.take() {
            self.send(Out::Welcome(welcome)).await?;
        }
        let mut last_message_at = Instant::now();
        loop {
            feed_reads.borrow_and_update();
            if self.push(registration).await? {
                // Chunks may have taken long, and messages that came meanwhile wait to be read.
                last_message_at = Instant::now();
            }
            if let Some(welcome) = self
                .unsent_welcome
                .take_if(|_| self.subscriptions.values().all(Subscription::has_held_set))
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
                    let deadline_seconds = saturated(within.as_secs());
                    self.send(Out::Drain(Drain { deadline_seconds })).await?;
                }
                Ok(()) = request_nonces.changed() => {
                    let nonce = *request_nonces.borrow_and_update();
                    self.send(Out::ObservedRequest(ObservedRequest { nonce })).await?;
                }
                _ = environments.changed() => self.update_subscriptions(registration).await?,
                message = self.inbound.message() => {
                    last_message_at = Instant::now();
                    let message = message.map_err(|_| End::Closed)?.ok_or(End::Closed)?;
                    self.handle_message(message, registration)?;
                }
                _ = feed_reads.changed() => {}
                () = sleep_until(last_message_at + SILENCE_TIMEOUT) => {
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
            node_state::target(environment, subscription.sync.as_ref()?)
        });
        Heartbeat {
            states: wanted.collect(),
            load: None,
        }
    }

    /// Updates the subscriptions after environments were created or removed.
    async fn update_subscriptions(&mut self, registration: &Registration<'_>) -> Result<(), End> {
        // A node that reconnects gets all its environments, and runs its plans meanwhile.
        let (epoch, all) = environments(&self.context).await.map_err(End::Failed)?;
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
        registration.update(|node| {
            node.environments.retain(|id, _| ids.contains(id));
            for id in ids {
                node.environments.entry(id).or_default();
            }
        });
        self.unsent_welcome = Some(welcome(epoch, served));
        Ok(())
    }

    /// Sends a message. A node that reads nothing for three heartbeats is gone.
    async fn send(&self, kind: Out) -> Result<(), End> {
        let sent = timeout(
            SILENCE_TIMEOUT,
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
        heartbeat_seconds: saturated(HEARTBEAT_INTERVAL.as_secs()),
    }
}
