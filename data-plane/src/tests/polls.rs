//! Polls whose endpoints never come to a last page, or never answer: what ends them, and what they
//! leave to others.

use std::time::Duration;

use http::Response;
use kanat_message_log::{PollClaim, PollClaimOutcome};
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, NodeId};
use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{FlowPlan, Pagination, Poll};

use super::bounds::{page, polling, stored};
use super::node::Node;
use super::target::Target;

/// A flow that polls this path of an instance for ever.
fn endless(instance: &str, name: &str) -> FlowPlan {
    let mut plan = FlowPlan {
        flow_id: format!("flw_{name}"),
        ..polling(instance, 0)
    };
    poll_of(&mut plan).url = format!("{{{{ instance.base_url }}}}/{name}");
    plan
}

fn poll_of(plan: &mut FlowPlan) -> &mut Poll {
    match plan.trigger.as_mut().unwrap().kind.as_mut().unwrap() {
        Kind::Poll(poll) => poll,
        Kind::Webhook(_) | Kind::Manual(_) | Kind::Schedule(_) | Kind::Api(_) => panic!("no poll"),
    }
}

async fn instance(node: &Node, id: &str, provider: &Target, token: &str) {
    let config = format!(
        r#"{{"base_url":"{}","auth":"bearer","token":"{token}"}}"#,
        provider.url
    );
    node.control.instance(id, &config).await;
}

/// Another flow polls five pages and makes as many messages, by which time the first would have
/// asked for its next page long ago.
async fn five_pages_later(node: &Node, sink: &Target) {
    let witness = Target::answering(|n, _| page(n)).await;
    instance(node, "ci_witness", &witness, "none").await;
    let before = node.stored();
    let flow = FlowPlan {
        flow_id: "flw_witness".to_owned(),
        ..polling("ci_witness", 5)
    };
    node.deploy(&flow, &sink.url).await;
    stored(node, before + 5).await;
    witness.stop().await;
}

#[tokio::test]
async fn a_cycle_without_end_ends_with_its_flow_and_makes_no_message_any_more() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, _| page(n)).await;
    provider.hang();
    instance(&node, "ci_shop", &provider, "first-token").await;
    node.deploy(&endless("ci_shop", "gone"), &sink.url).await;
    provider.arrivals(1).await;
    node.control.remove_flow("flw_gone").await;
    provider.release();
    five_pages_later(&node, &sink).await;
    assert_eq!(provider.received().len(), 1);
    assert_eq!(node.stored(), 5);
    node.stop().await;
    provider.stop().await;
    sink.stop().await;
}

#[tokio::test]
async fn a_cycle_ends_at_its_page_when_its_flow_is_paused_and_goes_on_there_afterwards() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, _| page(n)).await;
    provider.hang();
    instance(&node, "ci_shop", &provider, "first-token").await;
    let flow = endless("ci_shop", "paused");
    node.deploy(&flow, &sink.url).await;
    provider.arrivals(1).await;
    let paused = FlowPlan {
        paused: true,
        ..flow.clone()
    };
    node.deploy(&paused, &sink.url).await;
    provider.release();
    stored(&node, 1).await;
    five_pages_later(&node, &sink).await;
    assert_eq!(provider.received().len(), 1);
    node.deploy(&flow, &sink.url).await;
    provider.arrivals(2).await;
    assert_eq!(provider.received()[1].path, "/paused?cursor=c0");
    node.stop().await;
    provider.stop().await;
    sink.stop().await;
}

#[tokio::test]
async fn a_cycle_goes_on_where_the_one_before_ended_at_max_pages() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, _| match n % 5 {
        4 => Response::new(r#"{"data":[{"id":4}],"next":null}"#),
        n => page(n),
    })
    .await;
    instance(&node, "ci_shop", &provider, "token").await;
    let mut flow = polling("ci_shop", 2);
    let poll = poll_of(&mut flow);
    poll.interval_ms = 1;
    poll.url.push_str("?since={{ state.last_success_at }}");
    node.deploy(&flow, &sink.url).await;
    provider.arrivals(6).await;
    let received = provider.received();
    let asked: Vec<&str> = received
        .iter()
        .map(|request| request.path.as_str())
        .collect();
    assert_eq!(
        asked[..5],
        [
            "/orders?since=",
            "/orders?since=&cursor=c0",
            "/orders?since=&cursor=c1",
            "/orders?since=&cursor=c2",
            "/orders?since=&cursor=c3",
        ]
    );
    assert!(asked[5].starts_with("/orders?since=2"), "{}", asked[5]);
    node.stop().await;
    provider.stop().await;
    sink.stop().await;
}

#[tokio::test]
async fn the_next_page_is_asked_for_with_the_credentials_of_today() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, _| page(n)).await;
    provider.hang();
    instance(&node, "ci_shop", &provider, "first-token").await;
    node.deploy(&endless("ci_shop", "rotated"), &sink.url).await;
    provider.arrivals(1).await;
    instance(&node, "ci_shop", &provider, "other-token").await;
    provider.release();
    provider.arrivals(2).await;
    let received = provider.received();
    assert_eq!(received[0].headers["authorization"], "Bearer first-token");
    assert_eq!(received[1].headers["authorization"], "Bearer other-token");
    assert_eq!(received[1].path, "/rotated?cursor=c0");
    node.stop().await;
    provider.stop().await;
    sink.stop().await;
}

#[tokio::test]
async fn endpoints_that_hang_hold_up_no_other_poll() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let hanging = Target::start().await;
    let well = Target::answering(|n, _| page(n)).await;
    hanging.hang();
    instance(&node, "ci_hanging", &hanging, "none").await;
    instance(&node, "ci_well", &well, "none").await;
    // More of them than a node has places.
    for n in 0..20 {
        node.deploy(&endless("ci_hanging", &format!("h{n}")), &sink.url)
            .await;
    }
    hanging.arrivals(4).await;
    node.deploy(&polling("ci_well", 1), &sink.url).await;
    stored(&node, 1).await;
    assert_eq!(hanging.received().len(), 4);
    node.stop().await;
    for target in [hanging, well, sink] {
        target.stop().await;
    }
}

#[tokio::test]
async fn polls_that_never_end_take_turns() {
    const MAX_TURNS: usize = 10_000;
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, _| page(n)).await;
    instance(&node, "ci_shop", &provider, "none").await;
    let paths: Vec<String> = (0..20).map(|n| format!("e{n}")).collect();
    for path in &paths {
        node.deploy(&endless("ci_shop", path), &sink.url).await;
    }
    let mut asked = 0;
    for path in paths {
        let path = format!("/{path}?");
        while !provider
            .received()
            .iter()
            .any(|received| received.path.starts_with(&path))
        {
            asked += 1;
            assert!(asked < MAX_TURNS, "no turn for {path} among {asked}");
            provider.arrivals(asked).await;
        }
    }
    node.stop().await;
    provider.stop().await;
    sink.stop().await;
}

#[tokio::test]
async fn a_later_boot_of_a_node_has_the_polls_of_the_former_at_once() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, _| page(n)).await;
    provider.hang();
    instance(&node, "ci_shop", &provider, "token").await;
    let flow = endless("ci_shop", "held");
    node.deploy(&flow, &sink.url).await;
    provider.arrivals(1).await;
    let later = BootId::generate();
    let ttl = Duration::from_secs(60);
    node.log
        .open_lease(&later, &NodeId::new("node_1"), ttl)
        .await
        .unwrap();
    let now = Timestamp::steady();
    let claim = PollClaim {
        flow_id: FlowId::from("flw_held"),
        version: flow.version,
        owner: later,
        now,
        held_until: now.after(ttl),
    };
    let claimed = node.log.claim_poll(&claim).await.unwrap();
    assert!(
        matches!(claimed, PollClaimOutcome::Taken { .. }),
        "{claimed:?}"
    );
    node.stop().await;
    provider.stop().await;
    sink.stop().await;
}

#[tokio::test]
async fn a_key_that_a_link_repeats_is_not_in_the_log() {
    let node = Node::start().await;
    let sink = Target::start().await;
    let provider = Target::answering(|n, received| {
        let link = format!("<{}&page={n}>; rel=next", received.path);
        Response::builder()
            .header("link", link)
            .body(r#"{"data":[]}"#)
            .unwrap()
    })
    .await;
    let config = format!(
        r#"{{"base_url":"{}","auth":"api_key","api_key":"k3y-s3cret","api_key_in":"query",
            "api_key_name":"key"}}"#,
        provider.url
    );
    node.control.instance("ci_shop", &config).await;
    let mut plan = endless("ci_shop", "linked");
    poll_of(&mut plan).pagination = Some(Pagination {
        strategy: "link_header".to_owned(),
        ..Pagination::default()
    });
    node.deploy(&plan, &sink.url).await;
    provider.arrivals(3).await;
    for received in provider.received() {
        assert_eq!(received.path.matches("key=k3y-s3cret").count(), 1);
    }
    node.plane.drain(Duration::from_secs(60)).await;
    let now = Timestamp::steady();
    let claim = PollClaim {
        flow_id: FlowId::from("flw_linked"),
        version: plan.version,
        owner: BootId::generate(),
        now,
        held_until: now,
    };
    let PollClaimOutcome::Taken { state, .. } = node.log.claim_poll(&claim).await.unwrap() else {
        panic!("the poll is given back");
    };
    let state = String::from_utf8(state.to_vec()).unwrap();
    assert!(state.contains("/linked?page=0"), "{state}");
    assert!(!state.contains("s3cret"), "{state}");
    node.log.close().await;
    provider.stop().await;
    sink.stop().await;
}
