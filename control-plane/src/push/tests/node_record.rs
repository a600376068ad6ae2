//! Records of nodes in the store, which other control planes read.

use std::sync::Arc;
use std::time::Duration;

use kanat_auth::Sealer;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId, NodeId};
use kanat_store::{Store, environment, node as saved};
use kanat_testing_postgres::Database;
use tokio_util::sync::CancellationToken;

use super::node::Control;
use super::{NodeState, Status};
use crate::push::grant::Grant;
use crate::push::node_record::NodeRecordWriter;
use crate::push::nodes::{EnvironmentStatus, Scope};
use crate::push::source::{NodeStates, Source};

const SKEW: Duration = Duration::from_secs(3);

impl Control {
    async fn environment_ids(&self) -> Vec<EnvironmentId> {
        environment::all(&mut self.store.read().await.unwrap())
            .await
            .unwrap()
            .into_iter()
            .map(|environment| environment.id)
            .collect()
    }

    /// Connects a node that serves these environments, and writes its record.
    async fn write_record(
        &self,
        writer: &mut NodeRecordWriter,
        environments: &[EnvironmentId],
        last_seen: Timestamp,
    ) {
        let context = &self.hub.context;
        let node = node(environments, last_seen);
        let _registration = context
            .nodes
            .connect(node, &Grant::default(), CancellationToken::new())
            .unwrap();
        writer.write(context).await;
    }

    /// Returns the environments of the only node that the store knows.
    async fn recorded_environments(&self) -> Vec<EnvironmentId> {
        let nodes = saved::all(&mut self.store.read().await.unwrap())
            .await
            .unwrap();
        let [node] = nodes.as_slice() else {
            panic!("the store has {} nodes", nodes.len());
        };
        node.environments
            .iter()
            .map(|running| running.environment_id.clone())
            .collect()
    }
}

fn node(environments: &[EnvironmentId], last_seen: Timestamp) -> NodeState {
    NodeState {
        id: NodeId::from("node_1"),
        boot_id: BootId::from("boot_1"),
        address: String::new(),
        build: "1.0.0".to_owned(),
        status: Status::Connected,
        last_seen,
        in_flight: 0,
        environments: environments
            .iter()
            .map(|id| (id.clone(), EnvironmentStatus::default()))
            .collect(),
        scope: Scope::Named,
    }
}

fn writer() -> NodeRecordWriter {
    NodeRecordWriter::new(NodeId::from("node_1"))
}

#[tokio::test]
async fn a_session_deletes_the_environments_that_only_an_earlier_one_served() {
    let control = Control::start().await;
    let environments = control.environment_ids().await;
    let now = Timestamp::now();
    let both = &environments[..2];
    control.write_record(&mut writer(), both, now).await;
    assert_eq!(control.recorded_environments().await.len(), 2);

    let one = &environments[..1];
    control.write_record(&mut writer(), one, now).await;
    assert_eq!(control.recorded_environments().await, one);
}

#[tokio::test]
async fn a_session_deletes_an_environment_that_it_no_longer_serves() {
    let control = Control::start().await;
    let environments = control.environment_ids().await;
    let now = Timestamp::now();
    let mut writer = writer();
    control
        .write_record(&mut writer, &environments[..2], now)
        .await;
    let one = &environments[..1];
    control.write_record(&mut writer, one, now).await;
    assert_eq!(control.recorded_environments().await, one);
}

#[tokio::test]
async fn environments_are_written_again_after_a_record_that_a_later_one_kept_out() {
    let control = Control::start().await;
    let environments = control.environment_ids().await;
    let now = Timestamp::now();
    // Another control plane, whose clock is ahead.
    let later = node(&[], now.after(SKEW)).to_record(&BootId::from("boot_other"));
    let mut tx = control.store.begin().await.unwrap();
    assert!(saved::upsert(&mut tx, &later).await.unwrap());
    tx.commit().await.unwrap();

    let mut writer = writer();
    let one = &environments[..1];
    control.write_record(&mut writer, one, now).await;
    assert_eq!(control.recorded_environments().await, []);
    control
        .write_record(&mut writer, one, now.after(2 * SKEW))
        .await;
    assert_eq!(control.recorded_environments().await, one);
}

#[tokio::test]
async fn control_planes_whose_clocks_differ_see_each_other_s_nodes() {
    let database = Database::fresh();
    let store = Store::open(database.url()).await.unwrap();
    let source = Source::new(store, Arc::new(Sealer::from_keys(&[[7; 32]]).unwrap()));
    let hour = Duration::from_secs(3600);
    let max_age = Duration::from_secs(20);
    let own = BootId::from("boot_own");
    let peer = BootId::from("boot_other");
    let [slow, fast] = [Timestamp::now().before(hour), Timestamp::now().after(hour)];
    for (writer, reader) in [(slow, fast), (fast, slow)] {
        let record = node(&[], writer).to_record(&peer);
        let states = NodeStates::All(&[]);
        assert!(source.save_node(record, states, writer).await.unwrap());
        let seen = source.peer_nodes(&own, max_age, reader).await.unwrap();
        assert_eq!(seen.len(), 1);
        assert!(reader.since(seen[0].last_seen_at) < max_age);
    }
    let old = node(&[], fast).to_record(&peer);
    let states = NodeStates::All(&[]);
    let now = fast.after(hour);
    assert!(!source.save_node(old, states, now).await.unwrap());
}
