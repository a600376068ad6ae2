//! A control plane that publishes what a test says, over the real plan stream.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use kanat_plan_stream::snapshot::EncodedSnapshot;
use kanat_plan_stream::{Hash, Kind, SetHash};
use kanat_proto::node::v1::control_message::Kind as Out;
use kanat_proto::node::v1::node_message::Kind as In;
use kanat_proto::node::v1::plan_service_server::{PlanService, PlanServiceServer};
use kanat_proto::node::v1::{
    ControlMessage, Environment, NodeMessage, Resource, SnapshotBegin, SnapshotChunk, SnapshotEnd,
    Welcome,
};
use kanat_proto::plan::v1::{ConnectorInstance, ConsumerKey, FlowPlan, LookupTable, PublishedApi};
use prost::Message;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming};

use crate::plans::ControlPlanes;

pub const ACCOUNT: &str = "acc_1";
pub const ENVIRONMENT: &str = "env_1";
pub const EPOCH: &str = "epoch_1";

#[derive(Clone)]
pub struct Control {
    inner: Arc<Inner>,
}

struct Inner {
    /// Says nothing at all.
    silent: bool,
    set: watch::Sender<Set>,
    acked: watch::Sender<u64>,
    tasks: TaskTracker,
}

#[derive(Clone)]
struct Set {
    epoch: &'static str,
    generation: u64,
    resources: BTreeMap<String, Bytes>,
}

impl Control {
    pub fn new() -> Self {
        Self::with(false)
    }

    /// One that takes streams and says nothing on them.
    pub fn silent() -> Self {
        Self::with(true)
    }

    fn with(silent: bool) -> Self {
        let set = watch::Sender::new(Set {
            epoch: EPOCH,
            generation: 0,
            resources: BTreeMap::new(),
        });
        let acked = watch::Sender::new(0);
        Self {
            inner: Arc::new(Inner {
                silent,
                set,
                acked,
                tasks: TaskTracker::new(),
            }),
        }
    }

    pub fn client(&self) -> ControlPlanes {
        ControlPlanes::new(PlanServiceServer::new(self.clone()))
    }

    pub async fn flow(&self, plan: &FlowPlan) {
        self.put(Kind::Flow, &plan.flow_id, plan.encode_to_vec())
            .await;
    }

    pub async fn instance(&self, id: &str, config: &str) {
        self.instance_of("http", id, config).await;
    }

    pub async fn instance_of(&self, entry: &str, id: &str, config: &str) {
        let instance = ConnectorInstance {
            id: id.to_owned(),
            name: id.to_owned(),
            catalog_id: entry.to_owned(),
            config: config.to_owned(),
            ..Default::default()
        };
        self.put(Kind::ConnectorInstance, id, instance.encode_to_vec())
            .await;
    }

    pub async fn table(&self, table: &LookupTable) {
        self.put(Kind::LookupTable, &table.id, table.encode_to_vec())
            .await;
    }

    pub async fn api(&self, api: &PublishedApi) {
        self.put(Kind::PublishedApi, &api.id, api.encode_to_vec())
            .await;
    }

    pub async fn key(&self, key: &ConsumerKey) {
        self.put(Kind::ConsumerKey, &key.id, key.encode_to_vec())
            .await;
    }

    pub async fn remove_flow(&self, id: &str) {
        self.change(|set| drop(set.resources.remove(&Kind::Flow.resource_id(id))))
            .await;
    }

    /// Publishes `plan` under another epoch, as after a restore of the store.
    pub async fn restored(&self, plan: &FlowPlan) {
        let id = Kind::Flow.resource_id(&plan.flow_id);
        let body = plan.encode_to_vec();
        self.change(|set| {
            set.epoch = "epoch_2";
            set.resources.insert(id, body.into());
        })
        .await;
    }

    /// Publishes what there is once more; returns when the node runs it.
    pub async fn again(&self) {
        self.change(|_| {}).await;
    }

    async fn put(&self, kind: Kind, id: &str, body: Vec<u8>) {
        self.change(|set| drop(set.resources.insert(kind.resource_id(id), body.into())))
            .await;
    }

    /// Returns when the node has acknowledged the change.
    async fn change(&self, change: impl FnOnce(&mut Set)) {
        self.inner.set.send_modify(|set| {
            change(set);
            set.generation += 1;
        });
        let generation = self.inner.set.borrow().generation;
        self.inner
            .acked
            .subscribe()
            .wait_for(|acked| *acked >= generation)
            .await
            .unwrap();
    }

    async fn serve(
        self,
        mut inbound: Streaming<NodeMessage>,
        out: mpsc::Sender<Result<ControlMessage, Status>>,
    ) {
        if self.inner.silent {
            while let Ok(Some(_)) = inbound.message().await {}
            return;
        }
        let mut sets = self.inner.set.subscribe();
        let environment = Environment {
            id: ENVIRONMENT.into(),
            name: "production".into(),
            account_id: ACCOUNT.into(),
        };
        let welcome = Welcome {
            epoch: self.inner.set.borrow().epoch.into(),
            environments: vec![environment],
            heartbeat_seconds: 10,
        };
        if out.send(Ok(message(Out::Welcome(welcome)))).await.is_err() {
            return;
        }
        loop {
            let set = sets.borrow_and_update().clone();
            for part in snapshot(&set) {
                if out.send(Ok(message(part))).await.is_err() {
                    return;
                }
            }
            loop {
                tokio::select! {
                    changed = sets.changed() => if changed.is_err() { return } else { break },
                    said = inbound.message() => match said {
                        Ok(Some(NodeMessage { kind: Some(In::Ack(ack)) })) => {
                            self.inner.acked.send_replace(ack.generation);
                        }
                        Ok(Some(NodeMessage { kind: Some(In::Nack(nack)) })) => {
                            panic!("refused: {nack:?}")
                        }
                        Ok(Some(NodeMessage { kind: Some(In::Drained(_)) }) | None) | Err(_) => {
                            return;
                        }
                        Ok(Some(_)) => {}
                    },
                }
            }
        }
    }
}

fn snapshot(set: &Set) -> Vec<Out> {
    let resources: Vec<Resource> = set
        .resources
        .iter()
        .map(|(id, body)| Resource {
            id: id.clone(),
            hash: Hash::of(body).to_vec(),
            body: body.clone(),
        })
        .collect();
    let set_hash = SetHash::of(
        set.resources
            .iter()
            .map(|(id, body)| (id.as_str(), Hash::of(body))),
    );
    let encoded = EncodedSnapshot::new(resources);
    let begin = SnapshotBegin {
        nonce: set.generation,
        environment_id: ENVIRONMENT.to_owned(),
        epoch: set.epoch.to_owned(),
        generation: set.generation,
        length: encoded.length(),
        sha256: encoded.sha256().to_vec(),
        set_hash: set_hash.to_vec(),
        allow_empty: true,
    };
    let nonce = set.generation;
    let chunks = encoded
        .chunks()
        .map(|data| Out::SnapshotChunk(SnapshotChunk { nonce, data }));
    [Out::SnapshotBegin(begin)]
        .into_iter()
        .chain(chunks)
        .chain([Out::SnapshotEnd(SnapshotEnd { nonce })])
        .collect()
}

fn message(kind: Out) -> ControlMessage {
    ControlMessage { kind: Some(kind) }
}

#[tonic::async_trait]
impl PlanService for Control {
    type SyncStream = ReceiverStream<Result<ControlMessage, Status>>;

    async fn sync(
        &self,
        request: Request<Streaming<NodeMessage>>,
    ) -> Result<Response<Self::SyncStream>, Status> {
        let (out, messages) = mpsc::channel(16);
        self.inner
            .tasks
            .spawn(self.clone().serve(request.into_inner(), out));
        Ok(Response::new(ReceiverStream::new(messages)))
    }
}
