//! A control plane that says, message by message, what a test wants; over the real plan stream.

use std::sync::{Arc, Mutex};

use kanat_model::id::EnvironmentId;
use kanat_plan_stream::snapshot::EncodedSnapshot;
use kanat_plan_stream::{Hash, Kind, SetHash};
use kanat_proto::node::v1::control_message::Kind as Out;
use kanat_proto::node::v1::node_message::Kind as In;
use kanat_proto::node::v1::plan_service_server::{PlanService, PlanServiceServer};
use kanat_proto::node::v1::{
    ControlMessage, Delta, Environment, Hello, NodeMessage, ObservedRequest, Resource,
    SnapshotBegin, SnapshotChunk, SnapshotEnd, Welcome,
};
use kanat_proto::plan::v1::trigger::Kind as TriggerKind;
use kanat_proto::plan::v1::{
    ConnectorInstance, FlowPlan, LookupTable, Target, Trigger, Verify, Webhook, WebhookToken,
    lookup_table::Entry,
};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::plans::ControlPlanes;

pub const EPOCH: &str = "epoch_1";

/// The streams that nodes opened, one after another.
pub struct Control {
    service: Service,
    streams: mpsc::Receiver<Stream>,
}

#[derive(Clone)]
struct Service {
    streams: mpsc::Sender<Stream>,
    environments: Arc<Mutex<Vec<String>>>,
}

/// One node's stream, after its hello and our welcome.
pub struct Stream {
    pub hello: Hello,
    inbound: Streaming<NodeMessage>,
    out: mpsc::Sender<Result<ControlMessage, Status>>,
    nonce: u64,
}

impl Control {
    /// Serves these environments.
    pub fn new(environments: &[&str]) -> Self {
        let (sender, streams) = mpsc::channel(16);
        let environments = environments.iter().map(|id| (*id).to_owned()).collect();
        Self {
            service: Service {
                streams: sender,
                environments: Arc::new(Mutex::new(environments)),
            },
            streams,
        }
    }

    pub fn client(&self) -> ControlPlanes {
        ControlPlanes::new(PlanServiceServer::new(self.service.clone()))
    }

    /// The next welcomes name these.
    pub fn serves(&self, environments: &[&str]) {
        *self.service.environments.lock().unwrap() =
            environments.iter().map(|id| (*id).to_owned()).collect();
    }

    /// The next stream that a node opens.
    pub async fn stream(&mut self) -> Stream {
        self.streams.recv().await.unwrap()
    }
}

impl Stream {
    /// Sends a set as a snapshot.
    pub async fn snapshot(&mut self, environment: &str, generation: u64, resources: &[Resource]) {
        self.snapshot_with(environment, generation, resources, |_| {})
            .await;
    }

    pub async fn snapshot_with(
        &mut self,
        environment: &str,
        generation: u64,
        resources: &[Resource],
        change: impl FnOnce(&mut SnapshotBegin),
    ) {
        self.nonce += 1;
        let nonce = self.nonce;
        let encoded = EncodedSnapshot::new(resources.to_vec());
        let mut begin = SnapshotBegin {
            nonce,
            environment_id: environment.to_owned(),
            epoch: EPOCH.to_owned(),
            generation,
            length: encoded.length(),
            sha256: encoded.sha256().to_vec(),
            set_hash: set_hash(resources),
            allow_empty: false,
        };
        change(&mut begin);
        self.say(Out::SnapshotBegin(begin)).await;
        for data in encoded.chunks() {
            self.say(Out::SnapshotChunk(SnapshotChunk { nonce, data }))
                .await;
        }
        self.say(Out::SnapshotEnd(SnapshotEnd { nonce })).await;
    }

    /// Sends a delta after which the node holds `set`.
    pub async fn delta(
        &mut self,
        from: u64,
        upserts: &[Resource],
        removals: &[&str],
        set: &[Resource],
    ) {
        self.nonce += 1;
        let delta = Delta {
            nonce: self.nonce,
            environment_id: "env_1".to_owned(),
            epoch: EPOCH.to_owned(),
            from_generation: from,
            generation: from + 1,
            upserts: upserts.to_vec(),
            removals: removals.iter().map(|id| (*id).to_owned()).collect(),
            set_hash: set_hash(set),
            tables: Vec::new(),
        };
        self.say(Out::Delta(delta)).await;
    }

    /// The node's next word but for beats of its heart, which must answer the last push.
    pub async fn answer(&mut self) -> In {
        loop {
            let message = self
                .inbound
                .message()
                .await
                .unwrap()
                .expect("the node is there");
            match message.kind.unwrap() {
                In::Heartbeat(_) => {}
                answer => {
                    if let In::Ack(kanat_proto::node::v1::Ack { nonce, .. })
                    | In::Nack(kanat_proto::node::v1::Nack { nonce, .. }) = &answer
                    {
                        assert_eq!(*nonce, self.nonce);
                    }
                    return answer;
                }
            }
        }
    }

    /// The node runs the generation, and the set of these resources.
    pub async fn acked(&mut self, generation: u64, set: &[Resource]) {
        match self.answer().await {
            In::Ack(ack) => {
                assert_eq!(ack.generation, generation);
                assert_eq!(ack.set_hash, set_hash(set));
            }
            other => panic!("an ack was expected: {other:?}"),
        }
    }

    /// The node refused these resources; gives the reasons.
    pub async fn nacked(
        &mut self,
        generation: u64,
        refused: &[&str],
        running: &[Resource],
    ) -> Vec<String> {
        match self.answer().await {
            In::Nack(nack) => {
                let ids: Vec<_> = nack
                    .rejections
                    .iter()
                    .map(|rejection| rejection.resource_id.as_str())
                    .collect();
                assert_eq!(nack.generation, generation);
                assert_eq!(ids, refused.to_vec());
                assert_eq!(nack.set_hash, set_hash(running));
                nack.rejections
                    .into_iter()
                    .map(|rejection| rejection.message)
                    .collect()
            }
            other => panic!("a nack was expected: {other:?}"),
        }
    }

    /// Asks what it has observed, and waits for the answer: it has heard all that was said before.
    pub async fn asked(&mut self, nonce: u64) {
        self.say(Out::ObservedRequest(ObservedRequest { nonce }))
            .await;
        while !matches!(self.answer().await, In::Observed(observed) if observed.nonce == nonce) {}
    }

    pub async fn say(&self, kind: Out) {
        self.out
            .send(Ok(ControlMessage { kind: Some(kind) }))
            .await
            .unwrap();
    }
}

#[tonic::async_trait]
impl PlanService for Service {
    type SyncStream = ReceiverStream<Result<ControlMessage, Status>>;

    async fn sync(
        &self,
        request: Request<Streaming<NodeMessage>>,
    ) -> Result<Response<Self::SyncStream>, Status> {
        let mut inbound = request.into_inner();
        let Some(NodeMessage {
            kind: Some(In::Hello(hello)),
        }) = inbound.message().await?
        else {
            panic!("a stream begins with a hello");
        };
        let (out, messages) = mpsc::channel(64);
        let environments = self.environments.lock().unwrap().clone();
        let environments = environments.into_iter().map(|id| Environment {
            id,
            ..Environment::default()
        });
        let welcome = Welcome {
            epoch: EPOCH.to_owned(),
            environments: environments.collect(),
            heartbeat_seconds: 10,
        };
        out.send(Ok(ControlMessage {
            kind: Some(Out::Welcome(welcome)),
        }))
        .await
        .unwrap();
        self.streams
            .send(Stream {
                hello,
                inbound,
                out,
                nonce: 0,
            })
            .await
            .unwrap();
        Ok(Response::new(ReceiverStream::new(messages)))
    }
}

pub fn set_hash(resources: &[Resource]) -> Vec<u8> {
    SetHash::of(
        resources
            .iter()
            .map(|r| (r.id.as_str(), Hash::from_slice(&r.hash).unwrap())),
    )
    .to_vec()
}

/// A flow to the target `ci_1` that a token of its own name opens.
pub fn plan(id: &str, version: u32) -> FlowPlan {
    let token = WebhookToken {
        sha256: Hash::of(id.as_bytes()).to_vec(),
        expires_at: 0,
    };
    let verify = Verify {
        scheme: "token".to_owned(),
        secrets: vec!["hunter2".to_owned()],
        ..Verify::default()
    };
    let webhook = Webhook {
        tokens: vec![token],
        verify: Some(verify),
    };
    FlowPlan {
        flow_id: id.to_owned(),
        flow_name: format!("flow {id}"),
        account_id: "acc_1".to_owned(),
        environment_id: "env_1".to_owned(),
        version,
        trigger: Some(Trigger {
            kind: Some(TriggerKind::Webhook(webhook)),
        }),
        target: Some(Target {
            instance: "ci_1".to_owned(),
            method: "POST".to_owned(),
            ..Target::default()
        }),
        ..FlowPlan::default()
    }
}

pub fn flow(plan: &FlowPlan) -> Resource {
    resource(Kind::Flow, &plan.flow_id, plan)
}

pub fn instance(id: &str) -> Resource {
    let config = r#"{"base_url":"https://example.com","auth":"none"}"#.to_owned();
    let instance = ConnectorInstance {
        id: id.to_owned(),
        name: id.to_owned(),
        catalog_id: "http".to_owned(),
        config,
        ..Default::default()
    };
    resource(Kind::ConnectorInstance, id, &instance)
}

/// A table with the one key `name`, whose value is the table's id.
pub fn table(id: &str, name: &str) -> Resource {
    resource(Kind::LookupTable, id, &table_plan(id, name))
}

pub fn table_plan(id: &str, name: &str) -> LookupTable {
    let entry = Entry {
        key: "name".to_owned(),
        value: id.to_owned(),
    };
    LookupTable {
        id: id.to_owned(),
        name: name.to_owned(),
        version: 1,
        entries: vec![entry],
        ..LookupTable::default()
    }
}

pub fn resource(kind: Kind, id: &str, body: &impl Message) -> Resource {
    let body = body.encode_to_vec();
    Resource {
        id: kind.resource_id(id),
        hash: Hash::of(&body).to_vec(),
        body: body.into(),
    }
}

pub fn environment() -> EnvironmentId {
    EnvironmentId::from("env_1")
}
