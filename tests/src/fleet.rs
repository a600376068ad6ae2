//! Nodes as far as their plan stream goes, many in one process: each speaks the protocol of
//! `proto/kanat/node/v1` over a connection of its own, checks and acks what it is sent, comes back
//! when it is cut off, and runs nothing.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::SinkExt;
use futures::channel::mpsc;
use kanat_plan_stream::snapshot::Assembly;
use kanat_plan_stream::{
    HEARTBEAT_INTERVAL, Hash, MAX_MESSAGE_BYTES, MIN_PLAN_SCHEMA, PLAN_SCHEMA, SetHash,
};
use kanat_proto::node::v1::control_message::Kind as In;
use kanat_proto::node::v1::node_message::Kind as Out;
use kanat_proto::node::v1::plan_service_client::PlanServiceClient;
use kanat_proto::node::v1::{
    Ack, Delta, EnvironmentState, Heartbeat, Hello, Load, NodeMessage, ResourceHash, SnapshotBegin,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;
use tonic::{Request, Status};

use crate::split::JOIN_TOKEN;
use crate::wait::DEADLINE;

/// The environment that they serve: the default one.
const ENVIRONMENT: &str = "development";

/// The build that they say to be.
const SIMULATED: &str = "simulated";

/// Time between two attempts to connect. Real nodes come back less densely.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

/// Simulated nodes; they are gone when this is dropped.
pub struct Fleet {
    shared: Arc<FleetState>,
    nodes: Vec<watch::Receiver<Report>>,
    /// Grows when all are to be cut off and to forget what they hold.
    cut: watch::Sender<u64>,
    tasks: JoinSet<()>,
}

/// Progress of a node.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The generation that it has acked, on the stream that it has now.
    pub generation: Option<u64>,
    /// Bytes of all bodies of the last delta.
    pub delta_bytes: usize,
    pub snapshots: u32,
    /// How often it was cut off and forgot.
    pub cuts: u64,
}

/// State of all nodes. Sets that one node has verified the others only compare, because hashing
/// them two hundred times is slow in a debug build.
#[derive(Default)]
struct FleetState {
    url: String,
    snapshots: Mutex<HashMap<Vec<u8>, Snapshot>>,
    sets: Mutex<HashMap<Vec<u8>, Resources>>,
}

type Resources = Arc<Vec<ResourceHash>>;

#[derive(Clone)]
struct Snapshot {
    bytes: Bytes,
    resources: Resources,
}

struct Node {
    id: String,
    shared: Arc<FleetState>,
    report: watch::Sender<Report>,
    held: Option<NodeState>,
}

#[derive(Clone)]
struct NodeState {
    environment_id: String,
    epoch: String,
    generation: u64,
    set_hash: Vec<u8>,
    resources: Resources,
}

impl Fleet {
    /// None yet, of the control plane at this URL.
    pub fn new(url: &str) -> Self {
        let shared = FleetState {
            url: url.to_owned(),
            ..FleetState::default()
        };
        Self {
            shared: Arc::new(shared),
            nodes: Vec::new(),
            cut: watch::Sender::new(0),
            tasks: JoinSet::new(),
        }
    }

    /// One node more.
    pub fn join(&mut self) {
        let (report, reports) = watch::channel(Report::default());
        let id = format!("node_simulated_{}", self.nodes.len());
        let node = Node {
            id,
            shared: Arc::clone(&self.shared),
            report,
            held: None,
        };
        self.tasks.spawn(node.run(self.cut.subscribe()));
        self.nodes.push(reports);
    }

    /// Cuts every connection and makes every node forget its plans; all come back at once.
    pub fn cut_off_and_forget(&self) {
        self.cut.send_modify(|times| *times += 1);
    }

    pub fn reports(&self) -> Vec<Report> {
        self.nodes
            .iter()
            .map(|node| node.borrow().clone())
            .collect()
    }

    /// Waits until every node has acked `generation`, or a later one, since it was cut off last.
    pub async fn runs(&self, generation: u64) {
        let cuts = *self.cut.borrow();
        let every = async {
            for node in &self.nodes {
                let runs = |report: &Report| {
                    report.cuts == cuts && report.generation.is_some_and(|own| own >= generation)
                };
                node.clone()
                    .wait_for(runs)
                    .await
                    .expect("a simulated node runs as long as its fleet");
            }
        };
        let waited = tokio::time::timeout(DEADLINE, every).await;
        assert!(
            waited.is_ok(),
            "generation {generation} does not reach every node: {:?}",
            self.reports()
        );
    }
}

impl Node {
    async fn run(mut self, mut cut: watch::Receiver<u64>) {
        loop {
            tokio::select! {
                ended = self.follow() => match ended {
                    Ok(never) => match never {},
                    Err(_) => tokio::time::sleep(RECONNECT_DELAY).await,
                },
                _ = cut.changed() => {}
            }
            let cuts = *cut.borrow_and_update();
            if cuts > self.report.borrow().cuts {
                self.held = None;
            }
            self.report.send_modify(|report| {
                *report = Report {
                    generation: None,
                    cuts,
                    ..*report
                }
            });
        }
    }

    /// One stream, to its end.
    async fn follow(&mut self) -> Result<Infallible, Status> {
        let endpoint = Endpoint::from_shared(self.shared.url.clone())
            .map_err(unavailable)?
            .tcp_nodelay(true);
        let channel = endpoint.connect().await.map_err(unavailable)?;
        let mut client = PlanServiceClient::new(channel)
            .max_decoding_message_size(MAX_MESSAGE_BYTES)
            .max_encoding_message_size(MAX_MESSAGE_BYTES);
        let (mut outbound, messages) = mpsc::channel(4);
        send(&mut outbound, Out::Hello(self.hello())).await?;
        let mut request = Request::new(messages);
        let token = format!("Bearer {JOIN_TOKEN}")
            .parse()
            .expect("the token is plain text");
        request.metadata_mut().insert("authorization", token);
        let mut inbound = client.sync(request).await?.into_inner();
        let mut beat = tokio::time::interval(HEARTBEAT_INTERVAL);
        let mut assembly = None;
        loop {
            let message = tokio::select! {
                message = inbound.message() => {
                    message?.ok_or_else(|| Status::unavailable("closed"))?
                }
                _ = beat.tick() => {
                    let load = Some(Load { in_flight: 0, ready: true, draining: false });
                    let states = Vec::new();
                    send(&mut outbound, Out::Heartbeat(Heartbeat { states, load })).await?;
                    continue;
                }
            };
            let nonce = match message.kind {
                Some(In::SnapshotBegin(begin)) => {
                    assembly = Some((begin, BytesMut::new()));
                    continue;
                }
                Some(In::SnapshotChunk(chunk)) => {
                    assembly
                        .as_mut()
                        .expect("a chunk comes after its beginning")
                        .1
                        .extend_from_slice(&chunk.data);
                    continue;
                }
                Some(In::SnapshotEnd(end)) => {
                    let (begin, bytes) = assembly.take().expect("an end comes after its beginning");
                    self.take_snapshot(begin, bytes.freeze());
                    end.nonce
                }
                Some(In::Delta(delta)) => {
                    let nonce = delta.nonce;
                    self.take_delta(delta);
                    nonce
                }
                Some(In::Welcome(_) | In::Heartbeat(_) | In::Drain(_) | In::ObservedRequest(_))
                | None => continue,
            };
            let held = self.held.clone().expect("what was taken is held");
            let ack = Ack {
                nonce,
                environment_id: held.environment_id,
                generation: held.generation,
                set_hash: held.set_hash,
            };
            send(&mut outbound, Out::Ack(ack)).await?;
            self.report
                .send_modify(|report| report.generation = Some(held.generation));
        }
    }

    fn hello(&self) -> Hello {
        let state = self.held.iter().map(|held| EnvironmentState {
            environment_id: held.environment_id.clone(),
            epoch: held.epoch.clone(),
            generation: held.generation,
            set_hash: held.set_hash.clone(),
            resources: held.resources.to_vec(),
        });
        Hello {
            node_id: self.id.clone(),
            boot_id: format!("{}_boot", self.id),
            build: SIMULATED.to_owned(),
            min_plan_schema: MIN_PLAN_SCHEMA,
            max_plan_schema: PLAN_SCHEMA,
            address: String::new(),
            environments: vec![ENVIRONMENT.to_owned()],
            states: state.collect(),
        }
    }

    fn take_snapshot(&mut self, begin: SnapshotBegin, bytes: Bytes) {
        let Snapshot {
            bytes: proven,
            resources,
        } = self.shared.snapshot(&begin, &bytes);
        assert_eq!(proven, bytes, "two snapshots of one hash");
        let SnapshotBegin {
            environment_id,
            epoch,
            generation,
            set_hash,
            ..
        } = begin;
        self.held = Some(NodeState {
            environment_id,
            epoch,
            generation,
            set_hash,
            resources,
        });
        self.report.send_modify(|report| report.snapshots += 1);
    }

    fn take_delta(&mut self, delta: Delta) {
        let held = self
            .held
            .as_mut()
            .expect("a delta starts from what the node holds");
        assert_eq!(&held.epoch, &delta.epoch);
        assert_eq!(held.generation, delta.from_generation);
        let bytes = delta
            .upserts
            .iter()
            .map(|resource| resource.body.len())
            .sum();
        self.report.send_modify(|report| report.delta_bytes = bytes);
        held.resources = self.shared.set(&held.resources, &delta);
        held.generation = delta.generation;
        held.set_hash = delta.set_hash;
    }
}

impl FleetState {
    fn snapshot(&self, begin: &SnapshotBegin, bytes: &Bytes) -> Snapshot {
        let make = || {
            let mut assembly = Assembly::begin(begin.clone());
            assembly.push(bytes).expect("as long as announced");
            let (_, resources) = assembly.finish().expect("the snapshot that was announced");
            let resources = resources.into_iter().map(|r| ResourceHash {
                id: r.id,
                hash: r.hash,
            });
            Snapshot {
                bytes: bytes.clone(),
                resources: Arc::new(resources.collect()),
            }
        };
        lock(&self.snapshots)
            .entry(begin.sha256.clone())
            .or_insert_with(make)
            .clone()
    }

    fn set(&self, former: &Resources, delta: &Delta) -> Resources {
        let make = || {
            let mut resources: HashMap<_, _> = former
                .iter()
                .map(|r| (r.id.clone(), r.hash.clone()))
                .collect();
            resources.extend(
                delta
                    .upserts
                    .iter()
                    .map(|r| (r.id.clone(), Hash::of(&r.body).to_vec())),
            );
            delta
                .removals
                .iter()
                .for_each(|id| drop(resources.remove(id)));
            let hashes = resources
                .iter()
                .map(|(id, hash)| (id.as_str(), Hash::from_slice(hash).expect("32 bytes")));
            assert_eq!(
                SetHash::of(hashes).to_vec(),
                delta.set_hash,
                "the delta leads where it says"
            );
            Arc::new(
                resources
                    .into_iter()
                    .map(|(id, hash)| ResourceHash { id, hash })
                    .collect(),
            )
        };
        Arc::clone(
            lock(&self.sets)
                .entry(delta.set_hash.clone())
                .or_insert_with(make),
        )
    }
}

async fn send(outbound: &mut mpsc::Sender<NodeMessage>, kind: Out) -> Result<(), Status> {
    outbound
        .send(NodeMessage { kind: Some(kind) })
        .await
        .map_err(|_| Status::unavailable("closed"))
}

fn unavailable(error: tonic::transport::Error) -> Status {
    Status::unavailable(error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
