//! Resources that nodes refuse, and those that they lacked.

use super::*;

#[tokio::test]
async fn what_a_flow_lacked_brings_it_again() {
    let control = Control::start().await;
    let mut node = control.connect(control.hello("node_1")).await;
    node.take_snapshot().await;
    control.put("flow/1", "needs ci_1").await;
    node.refuse("flow/1", "connector instance \"ci_1\" is not in the set")
        .await;
    control.put("connector_instance/ci_1", "{}").await;
    assert_eq!(
        ids(&node.take_delta().await.upserts),
        ["connector_instance/ci_1", "flow/1"]
    );
}

#[tokio::test]
async fn what_is_published_again_as_it_was_goes_to_the_nodes_that_refused_it() {
    let control = Control::start().await;
    let mut refuses = control.connect(control.hello("node_1")).await;
    let mut takes = control.connect(control.hello("node_2")).await;
    refuses.take_snapshot().await;
    takes.take_snapshot().await;
    control.put("flow/1", "a").await;
    refuses.refuse("flow/1", "not now").await;
    takes.take_delta().await;

    let generation = control.put("flow/1", "a").await;
    assert_eq!(ids(&refuses.take_delta().await.upserts), ["flow/1"]);
    assert_eq!(ids(&takes.take_delta().await.upserts), [""; 0]);
    assert_eq!(control.applied(generation).await, Rollout::Everywhere);
    assert_eq!(control.hub.rejections("flow/1"), []);
}

#[tokio::test]
async fn what_it_lacked_and_came_before_it_was_refused_brings_it_again_too() {
    let control = Control::start().await;
    let mut node = control.connect(control.hello("node_1")).await;
    node.take_snapshot().await;
    control.put("flow/1", "needs ci_1").await;
    let delta = node.delta().await;
    control
        .read(control.put("connector_instance/ci_1", "{}").await)
        .await;
    node.refuse_of(
        &delta,
        "flow/1",
        "connector instance \"ci_1\" is not in the set",
    )
    .await;
    assert_eq!(
        ids(&node.take_delta().await.upserts),
        ["connector_instance/ci_1", "flow/1"]
    );
}
