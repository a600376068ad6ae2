//! Heartbeats both ways, and a node that falls silent, on a clock that the test moves.

use std::pin::pin;
use std::time::Duration;

use futures::poll;
use kanat_plan_stream::{HEARTBEAT_INTERVAL, SILENCE_TIMEOUT};
use kanat_proto::node::v1::node_message::Kind as Out;
use kanat_proto::node::v1::{EnvironmentState, Heartbeat, Load};
use tokio::task::yield_now;
use tokio::time::advance;
use tonic::Code;

use super::Control;
use crate::push::nodes::Status;

const SECOND: Duration = Duration::from_secs(1);

/// The clock stands still until the test moves it, for as long as this lives: by itself, it would
/// also go on while something is on its way between the two ends.
struct StoppedNode {
    _ends_it: std::sync::mpsc::Sender<()>,
}

impl StoppedNode {
    fn clock() -> Self {
        let (ends_it, ended) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || ended.recv());
        tokio::time::pause();
        Self { _ends_it: ends_it }
    }
}

#[tokio::test]
async fn a_node_is_gone_after_three_missed_heartbeats_and_not_before() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    let stopped = StoppedNode::clock();
    // As long as it beats, it stays. Each is heard before the clock goes on.
    for in_flight in 1..=6 {
        advance(HEARTBEAT_INTERVAL).await;
        node.say(Out::Heartbeat(Heartbeat {
            load: Some(Load {
                in_flight,
                ..Load::default()
            }),
            ..Heartbeat::default()
        }))
        .await;
        control.known(|nodes| nodes[0].in_flight == in_flight).await;
    }
    advance(SILENCE_TIMEOUT - SECOND).await;
    let mut ended = pin!(node.pushed());
    for _ in 0..1_000 {
        assert!(poll!(ended.as_mut()).is_pending(), "it is left too early");
        yield_now().await;
    }
    advance(2 * SECOND).await;
    let ended = ended.await.unwrap_err();
    assert_eq!(ended.code(), Code::DeadlineExceeded);
    assert_eq!(ended.message(), "three heartbeats of the node are missing");
    tokio::time::resume();
    drop(stopped);
    control
        .known(|nodes| nodes[0].status == Status::Disconnected)
        .await;
}

#[tokio::test]
async fn heartbeats_say_what_the_node_should_run() {
    let control = Control::start().await;
    let mut node = control.up_to_date().await;
    tokio::time::pause();
    let states = node.beat().await;
    assert_eq!(states.len(), 1);
    assert_eq!(&states[0].set_hash, &node.set_hash().to_vec());
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
