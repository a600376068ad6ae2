//! Heartbeats both ways, and a node that falls silent, on a clock that the test moves.

use std::time::Duration;

use kanat_plan_stream::{HEARTBEAT, SILENCE};
use kanat_proto::node::v1::node_message::Kind as Out;
use kanat_proto::node::v1::{EnvironmentState, Heartbeat};
use tokio::time::{Instant, sleep};
use tonic::Code;

use super::Control;
use crate::push::nodes::Status;

#[tokio::test]
async fn a_node_is_gone_after_three_missed_heartbeats_and_not_before() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    tokio::time::pause();
    // As long as it beats, it stays.
    for _ in 0..6 {
        sleep(HEARTBEAT).await;
        node.say(Out::Heartbeat(Heartbeat::default())).await;
    }
    let silent = Instant::now();
    let ended = node.pushed().await.unwrap_err();
    assert_eq!((ended.code(), ended.message()), (Code::DeadlineExceeded, "three heartbeats of the node are missing"));
    let waited = silent.elapsed();
    assert!(waited >= SILENCE && waited < SILENCE + Duration::from_secs(1), "{waited:?}");
    tokio::time::resume();
    control.known(|nodes| nodes[0].status == Status::Disconnected).await;
}

#[tokio::test]
async fn heartbeats_say_what_the_node_should_run() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    tokio::time::pause();
    let states = node.beat().await;
    assert_eq!((states.len(), &states[0].set_hash), (1, &node.set_hash().to_vec()));
    tokio::time::resume();
    // What it was sent and has not answered counts.
    control.put("flow/1", "a").await;
    let delta = node.delta().await;
    tokio::time::pause();
    let sent = EnvironmentState {
        environment_id: delta.environment_id,
        epoch: delta.epoch,
        generation: delta.generation,
        set_hash: delta.set_hash,
        resources: Vec::new(),
    };
    assert_eq!(node.beat().await, [sent]);
    tokio::time::resume();
}
