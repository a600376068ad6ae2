//! Records of nodes in the store, which other control planes read.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::{BootId, EnvironmentId, NodeId};
use kanat_store::{environment, node as saved};
use tokio_util::sync::CancellationToken;

use super::node::Control;
use super::{NodeState, Status};
use crate::push::grant::Grant;
use crate::push::node_record::NodeRecordWriter;
use crate::push::nodes::{EnvironmentStatus, Scope};

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
