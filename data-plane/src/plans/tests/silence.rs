//! A control plane that falls silent, on a clock that the test moves.

use std::pin::pin;
use std::time::Duration;

use kanat_plan_stream::{HEARTBEAT_INTERVAL, SILENCE_TIMEOUT};
use kanat_proto::node::v1::Heartbeat;
use kanat_proto::node::v1::control_message::Kind as Out;

use super::running;

const SECOND: Duration = Duration::from_secs(1);
/// When the node has left at the latest, with the wait before it connects again.
const LATEST: Duration = SILENCE_TIMEOUT.saturating_add(Duration::from_secs(2));
const DEADLINE: Duration = Duration::from_secs(30);

/// Lets that time go by, and everybody do what it brings. The clock does not move by itself,
/// because the log's writer is a thread that always runs.
async fn pass(time: Duration) {
    for _ in 0..time.as_secs() {
        tokio::time::advance(SECOND).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
    }
}

/// Returns when too much time has gone by outside of the test's clock.
async fn until_it_comes(begun: std::time::Instant) {
    while begun.elapsed() < DEADLINE {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_control_plane_is_left_after_three_missed_heartbeats_and_not_before() {
    let (_folder, mut control, mut silent, node, _) = running().await;
    tokio::time::pause();
    // As long as it beats, the node stays.
    for _ in 0..6 {
        pass(HEARTBEAT_INTERVAL).await;
        silent.say(Out::Heartbeat(Heartbeat::default())).await;
    }
    // It has heard all of that at this instant, or it would be silent for it from a later one on.
    silent.asked(1).await;
    let mut waited = Duration::ZERO;
    let begun = std::time::Instant::now();
    let next = {
        let mut next = pin!(control.stream());
        loop {
            tokio::select! {
                biased;
                stream = &mut next => break stream,
                () = pass(SECOND), if waited < LATEST => waited += SECOND,
                // By now the node has left; however long a busy machine takes to carry its next
                // hello, no time goes by for it.
                () = until_it_comes(begun), if waited == LATEST => {
                    panic!("the node stays with a control plane that is silent")
                }
            }
        }
    };
    assert!(waited >= SILENCE_TIMEOUT, "{waited:?}");
    assert_eq!(
        next.hello.states[0].generation, 1,
        "it goes on with what it has"
    );
    assert_eq!(
        node.version("flw_1"),
        Some(1),
        "it goes on with what it has"
    );
    tokio::time::resume();
    drop((silent, next));
    node.stop().await;
}
