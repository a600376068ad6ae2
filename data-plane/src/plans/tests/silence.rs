//! A control plane that falls silent, on a clock that the test moves.

use std::pin::pin;
use std::time::Duration;

use kanat_plan_stream::{HEARTBEAT, SILENCE};
use kanat_proto::node::v1::Heartbeat;
use kanat_proto::node::v1::control_message::Kind as Out;

use super::running;

const SECOND: Duration = Duration::from_secs(1);

/// Lets that time go by, and everybody do what it brings. The clock does not move by itself, because the log's writer is a
/// thread that always runs.
async fn pass(time: Duration) {
    for _ in 0..time.as_secs() {
        tokio::time::advance(SECOND).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test]
async fn a_control_plane_is_left_after_three_missed_heartbeats_and_not_before() {
    let (_folder, mut control, silent, node, _) = running().await;
    tokio::time::pause();
    // As long as it beats, the node stays.
    for _ in 0..6 {
        pass(HEARTBEAT).await;
        silent.say(Out::Heartbeat(Heartbeat::default())).await;
    }
    let mut waited = Duration::ZERO;
    let next = {
        let mut next = pin!(control.stream());
        loop {
            tokio::select! {
                biased;
                stream = &mut next => break stream,
                () = pass(SECOND) => waited += SECOND,
            }
        }
    };
    assert!(waited >= SILENCE && waited <= SILENCE + 2 * SECOND, "{waited:?}");
    assert_eq!((next.hello.states[0].generation, node.version("flw_1")), (1, Some(1)), "it goes on with what it has");
    tokio::time::resume();
    drop((silent, next));
    node.stop().await;
}
