//! A node that does what a test says, over the real plan stream of a hub on a real store.

use std::collections::BTreeMap;
use std::sync::Arc;

use kanat_auth::Sealer;
use kanat_model::id::EnvironmentId;
use kanat_plan_stream::snapshot::Assembly;
use kanat_plan_stream::{Hash, PLAN_SCHEMA, SetHash};
use kanat_proto::node::v1::control_message::Kind as In;
use kanat_proto::node::v1::node_message::Kind as Out;
use kanat_proto::node::v1::plan_service_client::PlanServiceClient;
use kanat_proto::node::v1::{
    Ack, ControlMessage, Delta, EnvironmentState, Heartbeat, Hello, Nack, NodeMessage, Rejection,
    Resource, ResourceHash, SnapshotBegin, Welcome,
};
use kanat_store::{Store, environment, meta, published};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::push::set::PlanSet;
use crate::push::source::{Source, seal_context};
use crate::push::{Hub, PlanStreamService, Rollout, SetVersion};
use crate::tasks::Tasks;

/// A hub on a fresh store.
pub struct Control {
    pub hub: Arc<Hub>,
    pub tasks: Tasks,
    pub store: Store,
    /// The one environment that most tests use, of the three that a fresh store has.
    pub environment: EnvironmentId,
    sealer: Arc<Sealer>,
    folder: TempDir,
}

impl Control {
    pub async fn start() -> Self {
        Self::open(tempfile::tempdir().unwrap()).await
    }

    async fn open(folder: TempDir) -> Self {
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        crate::app::bootstrap::run(&store, None).await.unwrap();
        let environments = environment::all(&mut store.read().await.unwrap())
            .await
            .unwrap();
        let environment = environments[0].id.clone();
        let sealer = Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap());
        let tasks = Tasks::default();
        let source = Source::new(store.clone(), Arc::clone(&sealer));
        Self {
            hub: Hub::new(source, tasks.clone()),
            tasks,
            store,
            environment,
            sealer,
            folder,
        }
    }

    /// Ends, and goes on twice: what happens to one store from now on does not happen to the other.
    pub async fn forked(self) -> (Self, Self) {
        self.tasks.close().await;
        self.store.close().await;
        let copy = tempfile::tempdir().unwrap();
        for file in std::fs::read_dir(self.folder.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
        }
        (Self::open(self.folder).await, Self::open(copy).await)
    }

    /// Reads as the feed of a hub would that holds `current`.
    pub async fn read_since(&self, current: Option<&Arc<PlanSet>>) -> Option<Arc<PlanSet>> {
        let source = Source::new(self.store.clone(), Arc::clone(&self.sealer));
        source.read(&self.environment, current).await.unwrap().set
    }

    /// The version of a change of that generation.
    pub async fn version(&self, generation: u64) -> SetVersion {
        let epoch = meta::epoch(&mut self.store.read().await.unwrap())
            .await
            .unwrap();
        SetVersion { epoch, generation }
    }

    /// How far the change has reached the nodes, once they have answered.
    pub async fn applied(&self, generation: u64) -> Rollout {
        self.hub
            .wait_until_applied(&self.environment, &self.version(generation).await)
            .await
    }

    /// The same store, another process.
    pub fn restart(&mut self) {
        self.tasks = Tasks::default();
        let source = Source::new(self.store.clone(), Arc::clone(&self.sealer));
        self.hub = Hub::new(source, self.tasks.clone());
    }

    /// Publishes a resource and says so; gives the generation.
    pub async fn put(&self, id: &str, body: impl AsRef<[u8]>) -> u64 {
        let sealed = self
            .sealer
            .seal(body.as_ref(), &seal_context(&self.environment, id));
        self.put_sealed(id, body, sealed).await
    }

    pub async fn put_sealed(&self, id: &str, body: impl AsRef<[u8]>, sealed: Vec<u8>) -> u64 {
        let mut tx = self.store.begin().await.unwrap();
        let hash = *Hash::of(body.as_ref()).as_bytes();
        let generation = published::put(&mut tx, &self.environment, id, hash, sealed)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.hub.notify_changed(&self.environment);
        generation
    }

    pub async fn remove(&self, id: &str) -> u64 {
        let mut tx = self.store.begin().await.unwrap();
        let generation = published::remove(&mut tx, &self.environment, id)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        self.hub.notify_changed(&self.environment);
        generation
    }

    /// Returns when the feed of the environment has read that generation.
    pub async fn read(&self, generation: u64) {
        let mut sets = self.hub.context.watch_feed_reads();
        let feed = self.hub.context.feed(&self.environment);
        while feed
            .state()
            .set
            .is_none_or(|set| set.generation < generation)
        {
            sets.changed().await.unwrap();
        }
    }

    pub async fn sync(
        &self,
        messages: mpsc::Receiver<NodeMessage>,
    ) -> Result<Streaming<ControlMessage>, Status> {
        let mut client = PlanServiceClient::new(PlanStreamService::new(&self.hub).into_server());
        Ok(client
            .sync(ReceiverStream::new(messages))
            .await?
            .into_inner())
    }

    pub fn hello(&self, node: &str) -> Hello {
        Hello {
            node_id: node.to_owned(),
            boot_id: format!("boot_of_{node}"),
            build: "1.0.0".to_owned(),
            min_plan_schema: 1,
            max_plan_schema: PLAN_SCHEMA,
            environments: vec![self.environment.to_string()],
            ..Hello::default()
        }
    }

    pub async fn connect(&self, hello: Hello) -> Node {
        self.try_connect(hello).await.unwrap()
    }

    pub async fn try_connect(&self, hello: Hello) -> Result<Node, Status> {
        let (out, messages) = mpsc::channel(16);
        let state = hello.states.first().cloned().unwrap_or_default();
        out.send(NodeMessage {
            kind: Some(Out::Hello(hello)),
        })
        .await
        .unwrap();
        let mut inbound = self.sync(messages).await?;
        let Some(ControlMessage {
            kind: Some(In::Welcome(welcome)),
        }) = inbound.message().await?
        else {
            panic!("a stream begins with a welcome");
        };
        let held = state
            .resources
            .into_iter()
            .map(|r| (r.id, Hash::from_slice(&r.hash).unwrap()))
            .collect();
        Ok(Node {
            welcome,
            out,
            inbound,
            held,
        })
    }
}

/// A connected node.
pub struct Node {
    pub welcome: Welcome,
    pub held: BTreeMap<String, Hash>,
    out: mpsc::Sender<NodeMessage>,
    inbound: Streaming<ControlMessage>,
}

/// Push of one environment that a node has received.
#[derive(Debug, Clone, PartialEq)]
pub enum ReceivedPush {
    Snapshot(SnapshotBegin, Vec<Resource>),
    Delta(Delta),
}

impl Node {
    /// The next push, put together; beats of the heart are passed over.
    pub async fn pushed(&mut self) -> Result<ReceivedPush, Status> {
        let mut assembly: Option<Assembly> = None;
        loop {
            let message = self
                .inbound
                .message()
                .await?
                .ok_or_else(|| Status::cancelled("the stream ended"))?;
            match message.kind.unwrap() {
                In::Delta(delta) => return Ok(ReceivedPush::Delta(delta)),
                In::SnapshotBegin(begin) => assembly = Some(Assembly::begin(begin)),
                In::SnapshotChunk(chunk) => assembly.as_mut().unwrap().push(&chunk.data).unwrap(),
                In::SnapshotEnd(_) => {
                    let (begin, resources) = assembly.unwrap().finish().unwrap();
                    return Ok(ReceivedPush::Snapshot(begin, resources));
                }
                In::Heartbeat(_) => {}
                other @ (In::Welcome(_) | In::Drain(_) | In::ObservedRequest(_)) => {
                    panic!("unexpected: {other:?}")
                }
            }
        }
    }

    /// The sets that the node should run, by the next heartbeat that names some.
    pub async fn beat(&mut self) -> Vec<EnvironmentState> {
        loop {
            let message = self
                .inbound
                .message()
                .await
                .unwrap()
                .expect("the stream goes on");
            if let Some(In::Heartbeat(Heartbeat { states, .. })) = message.kind
                && !states.is_empty()
            {
                return states;
            }
        }
    }

    /// The environments that it is told to serve from now on.
    pub async fn rewelcomed(&mut self) -> Vec<String> {
        loop {
            let message = self
                .inbound
                .message()
                .await
                .unwrap()
                .expect("the stream goes on");
            if let Some(In::Welcome(welcome)) = message.kind {
                return welcome
                    .environments
                    .into_iter()
                    .map(|environment| environment.name)
                    .collect();
            }
        }
    }

    pub async fn snapshot(&mut self) -> (SnapshotBegin, Vec<Resource>) {
        match self.pushed().await.unwrap() {
            ReceivedPush::Snapshot(begin, resources) => (begin, resources),
            ReceivedPush::Delta(delta) => {
                panic!("a delta where a snapshot was expected: {delta:?}")
            }
        }
    }

    pub async fn delta(&mut self) -> Delta {
        match self.pushed().await.unwrap() {
            ReceivedPush::Delta(delta) => delta,
            ReceivedPush::Snapshot(begin, _) => {
                panic!("a snapshot where a delta was expected: {begin:?}")
            }
        }
    }

    /// Takes a snapshot in and says so.
    pub async fn take_snapshot(&mut self) -> (SnapshotBegin, Vec<Resource>) {
        let (begin, resources) = self.snapshot().await;
        self.held = resources
            .iter()
            .map(|r| (r.id.clone(), Hash::from_slice(&r.hash).unwrap()))
            .collect();
        self.ack(begin.nonce, &begin.environment_id, begin.generation)
            .await;
        (begin, resources)
    }

    /// Takes a delta in and says so.
    pub async fn take_delta(&mut self) -> Delta {
        let delta = self.delta().await;
        self.work_in(&delta, None);
        assert_eq!(
            delta.set_hash,
            self.set_hash().to_vec(),
            "the delta proves where it leads"
        );
        self.ack(delta.nonce, &delta.environment_id, delta.generation)
            .await;
        delta
    }

    /// Takes a delta in but for one resource, and says so.
    pub async fn refuse(&mut self, id: &str, message: &str) -> Delta {
        let delta = self.delta().await;
        self.refuse_of(&delta, id, message).await;
        delta
    }

    /// The same of a delta that came before.
    pub async fn refuse_of(&mut self, delta: &Delta, id: &str, message: &str) {
        self.work_in(delta, Some(id));
        let refused = delta
            .upserts
            .iter()
            .find(|resource| resource.id == id)
            .expect("it was sent");
        let rejection = Rejection {
            resource_id: id.to_owned(),
            hash: refused.hash.clone(),
            message: message.to_owned(),
            running_hash: self
                .held
                .get(id)
                .map(|hash| hash.to_vec())
                .unwrap_or_default(),
        };
        let nack = Nack {
            nonce: delta.nonce,
            environment_id: delta.environment_id.clone(),
            generation: delta.generation,
            set_hash: self.set_hash().to_vec(),
            rejections: vec![rejection],
        };
        self.say(Out::Nack(nack)).await;
    }

    pub async fn ack(&self, nonce: u64, environment_id: &str, generation: u64) {
        let environment_id = environment_id.to_owned();
        self.say(Out::Ack(Ack {
            nonce,
            environment_id,
            generation,
            set_hash: self.set_hash().to_vec(),
        }))
        .await;
    }

    pub async fn say(&self, kind: Out) {
        self.out
            .send(NodeMessage { kind: Some(kind) })
            .await
            .unwrap();
    }

    /// The state that the node would name in a hello.
    pub fn state(&self, generation: u64) -> EnvironmentState {
        EnvironmentState {
            environment_id: self.welcome.environments[0].id.clone(),
            epoch: self.welcome.epoch.clone(),
            generation,
            set_hash: self.set_hash().to_vec(),
            resources: self
                .held
                .iter()
                .map(|(id, h)| ResourceHash {
                    id: id.clone(),
                    hash: h.to_vec(),
                })
                .collect(),
        }
    }

    pub fn set_hash(&self) -> SetHash {
        SetHash::of(self.held.iter().map(|(id, hash)| (id.as_str(), *hash)))
    }

    fn work_in(&mut self, delta: &Delta, but: Option<&str>) {
        for resource in delta
            .upserts
            .iter()
            .filter(|resource| Some(resource.id.as_str()) != but)
        {
            self.held
                .insert(resource.id.clone(), Hash::of(&resource.body));
        }
        for id in &delta.removals {
            self.held.remove(id);
        }
    }
}
