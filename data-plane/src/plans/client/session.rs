//! One stream, from its hello to its end: receives what the control plane sends, makes it live,
//! saves it, and answers.

use std::time::Duration;

use kanat_model::id::{EnvironmentId, EpochId};
use kanat_plan_stream::snapshot::Assembly;
use kanat_plan_stream::{
    HEARTBEAT_INTERVAL, MAX_MESSAGE_BYTES, MIN_PLAN_SCHEMA, PLAN_SCHEMA, SILENCE_TIMEOUT,
};
use kanat_proto::node::v1::control_message::Kind as In;
use kanat_proto::node::v1::node_message::Kind as Out;
use kanat_proto::node::v1::plan_service_client::PlanServiceClient;
use kanat_proto::node::v1::{
    Ack, ControlMessage, Delta, Drained, EnvironmentState, Heartbeat, Hello, Nack, NodeMessage,
    Observed, Rejection, SnapshotRequest, Welcome,
};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Status, Streaming};

use super::transport::Transport;
use super::{PlanStreamClient, no_longer_served};
use crate::plans::change::{self, CompiledChange, EnvironmentChange};
use crate::plans::environment::Environment;
use crate::plans::snapshot::Snapshot;
use crate::plans::versions;

/// Size limit of the resource hashes in a hello, in bytes. A node with more names only the hash of
/// its set: if that is the current set, nothing is sent; otherwise a snapshot is.
const MAX_STATES_BYTES: usize = MAX_MESSAGE_BYTES / 2;

/// Messages that wait for the transport.
const QUEUE: usize = 16;

/// Interval of reports of what connectors were observed to do.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// Time limit of the end of a stream on shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Form in which a change came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeOrigin {
    Delta,
    Snapshot,
}

/// Reason of the end of a stream.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the control plane ended the stream: {} ({:?})", .0.message(), .0.code())]
    Status(Box<Status>),
    #[error("the control plane closed the stream")]
    Closed,
    #[error("the control plane was silent for {} s", SILENCE_TIMEOUT.as_secs())]
    Silent,
    #[error(transparent)]
    Snapshot(#[from] kanat_plan_stream::snapshot::Error),
    #[error("a snapshot was not as the protocol has it")]
    Protocol,
    #[error("plans cannot be kept: {0}")]
    Versions(#[from] versions::Error),
    #[error("plans are live, but cannot be saved: {0}")]
    Disk(#[from] std::io::Error),
    #[error("the node shuts down")]
    ShuttingDown,
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}

/// Serves one stream. Returns `Ok` when it ended because of `stop`, and sets `welcomed_at` to the
/// time at which the control plane accepted the node.
pub(super) async fn run(
    client: &PlanStreamClient,
    mut control: PlanServiceClient<Transport>,
    stop: &CancellationToken,
    welcomed_at: &mut Option<Instant>,
) -> Result<(), Error> {
    let (outbound, messages) = mpsc::channel(QUEUE);
    let mut session = Session {
        client,
        outbound,
        welcomed_at,
        assembly: None,
        outdated: Vec::new(),
    };
    session.send(Out::Hello(session.hello())).await?;
    // The number is unknown until the first heartbeat of this stream: 0.
    kanat_telemetry::metrics().outdated_environments.set(0);
    let serve = async {
        let stream = timeout(SILENCE_TIMEOUT, control.sync(ReceiverStream::new(messages)));
        let mut inbound = stream.await.map_err(|_| Error::Silent)??.into_inner();
        let beats = heartbeats(client, session.outbound.clone());
        let seen = observations(client, session.outbound.clone());
        tokio::select! {
            ended = session.receive(&mut inbound) => ended,
            ended = beats => ended,
            ended = seen => ended,
            () = stop.cancelled() => {
                session.send(Out::Drained(Drained {})).await?;
                // The stream stays open until the control plane has read the message, or the time
                // is over.
                let _ = timeout(CLOSE_TIMEOUT, async {
                    while let Ok(Some(_)) = inbound.message().await {}
                })
                .await;
                Ok(())
            }
        }
    };
    tokio::select! {
        ended = serve => ended,
        () = stopped_while_connecting(stop) => Ok(()),
    }
}

/// Returns a moment after `stop`, also while there is no stream to close.
async fn stopped_while_connecting(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(CLOSE_TIMEOUT).await;
}

struct Session<'c> {
    client: &'c PlanStreamClient,
    outbound: mpsc::Sender<NodeMessage>,
    welcomed_at: &'c mut Option<Instant>,
    /// The snapshot that is being received.
    assembly: Option<Assembly>,
    /// Sets that the last heartbeat named and the node did not run, without those for which it
    /// asked for a snapshot. If the next heartbeat names one again, the node asks for a snapshot.
    outdated: Vec<EnvironmentState>,
}

impl Session<'_> {
    fn hello(&self) -> Hello {
        let options = &self.client.options;
        let mut room = MAX_STATES_BYTES;
        let states = self
            .client
            .plans
            .load()
            .environments()
            .map(|environment| environment.full_state(&mut room))
            .collect();
        Hello {
            node_id: options.node_id.to_string(),
            boot_id: options.boot_id.to_string(),
            build: options.build.clone(),
            min_plan_schema: MIN_PLAN_SCHEMA,
            max_plan_schema: PLAN_SCHEMA,
            address: options.address.clone(),
            environments: options.environments.clone(),
            states,
        }
    }

    async fn receive(&mut self, inbound: &mut Streaming<ControlMessage>) -> Result<(), Error> {
        loop {
            let message = timeout(SILENCE_TIMEOUT, inbound.message())
                .await
                .map_err(|_| Error::Silent)??;
            let Some(kind) = message.ok_or(Error::Closed)?.kind else {
                // A newer build may send messages that this one does not know.
                continue;
            };
            match kind {
                In::Welcome(welcome) => self.handle_welcome(welcome).await?,
                In::Delta(delta) => self.handle_delta(delta).await?,
                In::SnapshotBegin(begin) => self.assembly = Some(Assembly::begin(begin)),
                In::SnapshotChunk(chunk) => self.assembling(chunk.nonce)?.push(&chunk.data)?,
                In::SnapshotEnd(end) => {
                    self.assembling(end.nonce)?;
                    let assembly = self.assembly.take().ok_or(Error::Protocol)?;
                    self.handle_snapshot(assembly).await?;
                }
                In::Heartbeat(heartbeat) => self.handle_heartbeat(heartbeat).await?,
                In::ObservedRequest(request) => {
                    let observed = self.client.plans.observed().take().unwrap_or_default();
                    self.send(Out::Observed(Observed {
                        nonce: request.nonce,
                        ..observed
                    }))
                    .await?;
                }
                In::Drain(drain) => {
                    let deadline = Duration::from_secs(drain.deadline_seconds.into());
                    self.client.drain.send_replace(Some(deadline));
                }
            }
        }
    }

    /// Compares the sets that the node should run with those that it runs. All of them were sent
    /// before the heartbeat, but an answer may still be on its way to the control plane: the node
    /// asks for a snapshot only when the next heartbeat says the same.
    async fn handle_heartbeat(&mut self, heartbeat: Heartbeat) -> Result<(), Error> {
        self.note_served().await?;
        let outdated = self.client.plans.outdated(heartbeat.states);
        kanat_telemetry::metrics()
            .outdated_environments
            .set(i64::try_from(outdated.len()).unwrap_or(i64::MAX));
        let (repeated, first): (Vec<_>, Vec<_>) = outdated
            .into_iter()
            .partition(|wanted| self.outdated.contains(wanted));
        self.outdated = first;
        for EnvironmentState {
            environment_id,
            generation,
            ..
        } in repeated
        {
            let reason = format!(
                "the node does not run generation {generation} as it should, and nothing is under \
                 way"
            );
            tracing::warn!(
                environment.id = environment_id,
                reason,
                "asking for a snapshot"
            );
            self.send(Out::SnapshotRequest(SnapshotRequest {
                environment_id,
                reason,
            }))
            .await?;
        }
        Ok(())
    }

    /// Returns the snapshot that is being received, which must be the one that `nonce` names.
    fn assembling(&mut self, nonce: u64) -> Result<&mut Assembly, Error> {
        self.assembly
            .as_mut()
            .filter(|assembly| assembly.nonce() == nonce)
            .ok_or(Error::Protocol)
    }

    async fn handle_welcome(&mut self, welcome: Welcome) -> Result<(), Error> {
        self.welcomed_at.get_or_insert_with(Instant::now);
        let served: Vec<_> = welcome
            .environments
            .into_iter()
            .map(|e| EnvironmentId::new(e.id))
            .collect();
        tracing::info!(
            environments = served.len(),
            "connected to the control plane"
        );
        let former = self.client.plans.load();
        let gone = no_longer_served(&former, &served, &welcome.epoch);
        for environment in &gone {
            tracing::info!(
                environment.id = %environment,
                "the node no longer serves an environment",
            );
        }
        if former.served() != Some(served.as_slice()) || !gone.is_empty() {
            self.client.plans.update(|snapshot| {
                let without = |snapshot: Snapshot, id| snapshot.without(id);
                let kept = gone.iter().fold(snapshot.clone(), without);
                kept.with_served(served.clone())
            });
        }
        // Messages that wait or run here are handed back: this node does not hear of a pause, a
        // deletion or new secrets any more, and another node may serve the environment.
        for flow in former
            .flows()
            .filter(|flow| gone.contains(&flow.environment_id))
        {
            flow.removed.cancel();
        }
        let removed = self.client.on_disk(move |disk| {
            gone.iter()
                .try_for_each(|environment| disk.remove(environment))
        });
        if let Err(error) = removed.await.ok_or(Error::ShuttingDown)? {
            tracing::warn!(
                %error,
                "plans that the node no longer serves cannot be removed from the disk",
            );
        }
        self.note_served().await
    }

    /// Saves which environments the node serves, unless they are saved. A failure keeps no plans
    /// from coming: the next heartbeat tries again.
    async fn note_served(&self) -> Result<(), Error> {
        let Some(served) = self.client.plans.load().served().map(<[_]>::to_vec) else {
            return Ok(());
        };
        let noted = self.client.on_disk(move |disk| disk.note_served(&served));
        if let Err(error) = noted.await.ok_or(Error::ShuttingDown)? {
            tracing::warn!(%error, "the environments that the node serves cannot be saved");
        }
        Ok(())
    }

    async fn handle_delta(&mut self, delta: Delta) -> Result<(), Error> {
        let nonce = delta.nonce;
        let environment_id = delta.environment_id.clone();
        let current = self.current(&environment_id, &delta.epoch);
        // A large delta takes long to hash.
        let read = tokio::task::spawn_blocking(move || {
            (EnvironmentChange::from_delta(&current, delta), current)
        });
        let (change, current) = read.await.map_err(|_| Error::ShuttingDown)?;
        match change {
            Ok(change) => {
                self.apply(nonce, current, change, ChangeOrigin::Delta)
                    .await
            }
            Err(mismatch) => {
                tracing::warn!(environment.id = environment_id, %mismatch, "asking for a snapshot");
                self.send(Out::SnapshotRequest(SnapshotRequest {
                    environment_id,
                    reason: mismatch.to_string(),
                }))
                .await
            }
        }
    }

    async fn handle_snapshot(&mut self, assembly: Assembly) -> Result<(), Error> {
        // A large snapshot takes long to hash.
        let (begin, resources) = tokio::task::spawn_blocking(move || assembly.finish())
            .await
            .map_err(|_| Error::ShuttingDown)??;
        let current = self.current(&begin.environment_id, &begin.epoch);
        if resources.is_empty() && !current.is_empty() && !begin.allow_empty {
            let message = "an empty set would replace a full one, and the push does not say that \
                           this is intended";
            tracing::error!(
                environment.id = begin.environment_id,
                "{message}: keeping the plans that run"
            );
            return self.refuse(begin.nonce, &current, message).await;
        }
        let nonce = begin.nonce;
        let read = tokio::task::spawn_blocking(move || {
            let change = EnvironmentChange::from_snapshot(&current, &begin, resources);
            (change, current)
        });
        let (change, current) = read.await.map_err(|_| Error::ShuttingDown)?;
        self.apply(nonce, current, change, ChangeOrigin::Snapshot)
            .await
    }

    fn current(&self, environment_id: &str, epoch: &str) -> Environment {
        let id = EnvironmentId::from(environment_id);
        let snapshot = self.client.plans.load();
        snapshot.environment(&id).map_or_else(
            || Environment::empty(id, EpochId::from(epoch)),
            |e| (**e).clone(),
        )
    }

    /// Compiles a change, keeps the versions in the log, makes the set live, saves it, answers.
    async fn apply(
        &mut self,
        nonce: u64,
        current: Environment,
        change: EnvironmentChange,
        origin: ChangeOrigin,
    ) -> Result<(), Error> {
        let compiled =
            tokio::task::spawn_blocking(move || change::compile_change(&current, change)).await;
        let CompiledChange {
            environment,
            flows,
            rejections,
            accepted,
        } = compiled.map_err(|_| Error::ShuttingDown)?;
        if origin == ChangeOrigin::Snapshot {
            versions::save_former(&*self.client.log, &environment, &flows).await?;
        }
        versions::save(&*self.client.log, &environment, &flows).await?;
        // Built before the save, which takes the environment. It is sent only if the save succeeds.
        let answer = self.answer(nonce, &environment, rejections);
        self.client
            .activate_and_save(environment, &flows, accepted)
            .await
            .ok_or(Error::ShuttingDown)??;
        self.send(answer).await
    }

    fn answer(&self, nonce: u64, environment: &Environment, rejections: Vec<Rejection>) -> Out {
        let environment_id = environment.id.to_string();
        let generation = environment.generation;
        let set_hash = environment.set_hash.to_vec();
        for refused in &rejections {
            let resource = &refused.resource_id;
            let reason = &refused.message;
            tracing::error!(
                resource.id = resource,
                reason,
                "a resource cannot run and keeps its former version"
            );
            kanat_telemetry::metrics().plans_refused.inc();
        }
        tracing::debug!(
            environment.id = environment_id,
            generation,
            "plans are live"
        );
        if rejections.is_empty() {
            Out::Ack(Ack {
                nonce,
                environment_id,
                generation,
                set_hash,
            })
        } else {
            Out::Nack(Nack {
                nonce,
                environment_id,
                generation,
                set_hash,
                rejections,
            })
        }
    }

    /// Refuses a whole set.
    async fn refuse(&self, nonce: u64, current: &Environment, message: &str) -> Result<(), Error> {
        kanat_telemetry::metrics().plans_refused.inc();
        let rejection = Rejection {
            message: message.to_owned(),
            ..Rejection::default()
        };
        let state = current.state();
        let nack = Nack {
            nonce,
            environment_id: state.environment_id,
            generation: state.generation,
            set_hash: state.set_hash,
            rejections: vec![rejection],
        };
        self.send(Out::Nack(nack)).await
    }

    async fn send(&self, kind: Out) -> Result<(), Error> {
        send(&self.outbound, kind).await
    }
}

/// Sends heartbeats, with the sets that the node holds and its load, until the stream ends.
async fn heartbeats(
    client: &PlanStreamClient,
    outbound: mpsc::Sender<NodeMessage>,
) -> Result<(), Error> {
    let mut beat = interval(HEARTBEAT_INTERVAL);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beat.tick().await;
        let states = client
            .plans
            .load()
            .environments()
            .map(|environment| environment.state())
            .collect();
        send(
            &outbound,
            Out::Heartbeat(Heartbeat {
                states,
                load: Some((client.read_load)()),
            }),
        )
        .await?;
    }
}

/// Reports what connectors were observed to do, until the stream ends.
async fn observations(
    client: &PlanStreamClient,
    outbound: mpsc::Sender<NodeMessage>,
) -> Result<(), Error> {
    let mut due = interval(REPORT_INTERVAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => {}
            () = client.plans.observed().urgent() => {}
        }
        if let Some(observed) = client.plans.observed().take() {
            send(&outbound, Out::Observed(observed)).await?;
        }
    }
}

/// Sends a message. A control plane that reads nothing for three heartbeats is gone.
async fn send(outbound: &mpsc::Sender<NodeMessage>, kind: Out) -> Result<(), Error> {
    let sent = timeout(
        SILENCE_TIMEOUT,
        outbound.send(NodeMessage { kind: Some(kind) }),
    )
    .await;
    sent.map_err(|_| Error::Silent)?.map_err(|_| Error::Closed)
}
