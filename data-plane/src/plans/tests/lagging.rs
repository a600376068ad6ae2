//! A node that does not run what its control plane says that it should.

use kanat_proto::node::v1::control_message::Kind as Out;
use kanat_proto::node::v1::node_message::Kind as In;
use kanat_proto::node::v1::{EnvironmentState, Heartbeat};

use super::control::{EPOCH, Stream, flow, plan, set_hash};
use super::running;

/// A heartbeat that says that the node should run that generation of these resources.
async fn beat(stream: &Stream, generation: u64, resources: &[kanat_proto::node::v1::Resource]) {
    let wanted = EnvironmentState {
        environment_id: "env_1".to_owned(),
        epoch: EPOCH.to_owned(),
        generation,
        set_hash: set_hash(resources),
        resources: Vec::new(),
    };
    stream
        .say(Out::Heartbeat(Heartbeat {
            states: vec![wanted],
            load: None,
        }))
        .await;
}

#[tokio::test]
async fn a_node_that_lags_at_two_heartbeats_asks_for_a_snapshot() {
    let (_folder, _control, mut stream, node, mut set) = running().await;
    let held = set.clone();
    set.push(flow(&plan("flw_2", 1)));
    // One alone may have crossed an answer, and so may one that says something else.
    beat(&stream, 2, &set).await;
    beat(&stream, 1, &held).await;
    beat(&stream, 2, &set).await;
    beat(&stream, 3, &set).await;
    stream.delta(1, &[], &[], &held).await;
    stream.acked(2, &held).await;

    // The same set of another generation, and another set of the same.
    for (generation, wanted) in [(9, &held), (2, &set)] {
        beat(&stream, generation, wanted).await;
        beat(&stream, generation, wanted).await;
        let In::SnapshotRequest(asked) = stream.answer().await else {
            panic!("it asks")
        };
        assert_eq!(asked.environment_id, "env_1");
        assert!(
            asked.reason.contains(&format!(
                "does not run generation {generation} as it should"
            )),
            "{asked:?}"
        );
    }
    stream.snapshot("env_1", 2, &set).await;
    stream.acked(2, &set).await;
    beat(&stream, 2, &set).await;
    beat(&stream, 2, &set).await;
    stream.delta(2, &[], &[], &set).await;
    stream.acked(3, &set).await;
    drop(stream);
    node.stop().await;
}
