//! Control planes and nodes as processes of their own: what is deployed at one is live on all, and
//! nodes stand without a control plane.

use std::time::{Duration, Instant};

use kanat_tests::authority::Authority;
use kanat_tests::split::{JOIN_TOKEN, Split, TestProcess};
use kanat_tests::target::{Reply, ok};
use kanat_tests::{FakeTarget, Rest, TestApp, soak, until};
use serde_json::json;

use crate::webhook::passthrough;

/// Time within which a node that has plans on its disk is ready.
const READY_FROM_DISK: Duration = Duration::from_secs(2);

/// Address of a webhook at a node; the control plane knows the path alone.
fn at(node: &TestProcess, webhook: &str) -> String {
    assert!(webhook.starts_with("/webhooks/receive/"), "{webhook}");
    format!("{}{webhook}", node.base)
}

/// Version of the plans that a node applied last, from `/nodes`.
async fn generations(api: &Rest) -> Vec<u64> {
    let nodes = api.get("/api/v1/nodes").await.expect(200);
    let connected = nodes["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|node| node["status"] == "connected");
    connected
        .map(|node| node["generation"].as_u64().unwrap())
        .collect()
}

#[tokio::test]
async fn a_split_deployment_delivers_what_comes_to_any_node() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let nodes = [
        split.node("a", &[&control]).await,
        split.node("b", &[&control]).await,
    ];
    let target = FakeTarget::start().await;
    control.api.http_instance("erp", &target.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("orders")).await;
    for node in &nodes {
        assert_eq!(node.readiness().await, 200);
        let id = control
            .api
            .webhook(&at(node, &webhook), &json!({"n": 1}))
            .await;
        control.api.message_becomes(&id, "delivered").await;
    }
    assert_eq!(target.received().len(), 2);
    assert_eq!(generations(&control.api).await.len(), 2);
}

#[tokio::test]
async fn nodes_stand_without_their_control_plane_also_across_a_restart() {
    let split = Split::new();
    let mut control = split.control_plane("control").await;
    let mut node = split.node("a", &[&control]).await;
    let target = FakeTarget::failing(1).await;
    control.api.http_instance("erp", &target.url()).await;
    let yaml = format!(
        "{}on_error:\n  retry: 3x fixed(100ms)\n",
        passthrough("orders")
    );
    let (_, webhook) = control.api.deployed(&yaml).await;
    control.kill().await;

    let first = control
        .api
        .webhook(&at(&node, &webhook), &json!({"n": 1}))
        .await;
    let mut took = Vec::new();
    // A machine that is busy with something else just then is asked again.
    let starts = if soak::is_on() { 1 } else { 3 };
    while took.len() < starts && took.iter().all(|took| *took >= READY_FROM_DISK) {
        node.kill().await;
        let begun = Instant::now();
        node.restart().await;
        node.becomes_ready().await;
        took.push(begun.elapsed());
    }
    println!("ready {took:?} after the restart, with no control plane");
    assert!(took.iter().any(|took| *took < READY_FROM_DISK), "{took:?}");
    let second = control
        .api
        .webhook(&at(&node, &webhook), &json!({"n": 2}))
        .await;
    // The first attempt fails, and the retry is the node's own work too.
    target.arrivals(3).await;

    control.restart().await;
    for id in [first, second] {
        control.api.message_becomes(&id, "delivered").await;
    }
}

#[tokio::test]
async fn what_one_control_plane_deploys_is_live_on_the_nodes_of_all() {
    let split = Split::new();
    let one = split.control_plane("one").await;
    let other = split.control_plane("other").await;
    let nodes = [
        split.node("a", &[&one]).await,
        split.node("b", &[&other]).await,
    ];
    let target = FakeTarget::scripted(|_, _| ok()).await;
    one.api.http_instance("erp", &target.url()).await;
    for (n, control) in [&one, &other, &one, &other].into_iter().enumerate() {
        let flow = control.api.flow(&passthrough(&format!("orders-{n}"))).await;
        let deployed = control
            .api
            .post(&format!("/api/v1/flows/{flow}/deploy"), &json!({}))
            .await;
        assert_eq!(
            deployed.header("x-config-applied"),
            "",
            "every node has it: {}",
            deployed.text
        );
        let webhook = deployed.expect(200)["webhookUrl"]
            .as_str()
            .unwrap()
            .to_owned();
        for node in &nodes {
            // No waiting: what was deployed is live.
            let id = one
                .api
                .webhook(&at(node, &webhook), &json!({ "n": n }))
                .await;
            other.api.message_becomes(&id, "delivered").await;
        }
    }
    for control in [&one, &other] {
        until("both control planes know both nodes", || async {
            let generations = generations(&control.api).await;
            (generations.len() == 2 && generations[0] == generations[1]).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_node_goes_on_with_another_control_plane_when_its_own_dies() {
    let split = Split::new();
    let mut one = split.control_plane("one").await;
    let other = split.control_plane("other").await;
    let node = split.node("a", &[&one, &other]).await;
    let target = FakeTarget::start().await;
    other.api.http_instance("erp", &target.url()).await;
    one.kill().await;
    until("the node is with the other control plane", || async {
        (generations(&other.api).await.len() == 1).then_some(())
    })
    .await;
    let (_, webhook) = other.api.deployed(&passthrough("orders")).await;
    let id = until("the flow is live", || async {
        let answer = Rest::send(
            other
                .api
                .http()
                .post(at(&node, &webhook))
                .json(&json!({"n": 1})),
        )
        .await;
        (answer.status == 202).then(|| answer.json()["messageId"].as_str().unwrap().to_owned())
    })
    .await;
    other.api.message_becomes(&id, "delivered").await;
}

#[tokio::test]
async fn a_new_node_without_a_control_plane_starts_from_what_was_published_last() {
    let split = Split::new();
    let mut control = split.control_plane("control").await;
    let target = FakeTarget::start().await;
    control.api.http_instance("erp", &target.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("orders")).await;
    let file = split.plan_file().await;
    let key = split.master_key();
    control.kill().await;

    let key = ("KANAT_MASTER_KEY", key.trim());
    let from_store = split.node_with("a", &[&control], &[key]).await;
    let from_file = split
        .node_with("b", &[&control], &[key, ("KANAT_PLAN_FILE", &file)])
        .await;
    let mut ids = Vec::new();
    for node in [&from_store, &from_file] {
        node.becomes_ready().await;
        ids.push(
            node.api
                .webhook(&at(node, &webhook), &json!({"n": 1}))
                .await,
        );
    }
    target.arrivals(2).await;
    let without_key = split
        .node_with("c", &[&control], &[("KANAT_PLAN_FILE", &file)])
        .await;
    assert_eq!(without_key.readiness().await, 503);
    assert!(
        without_key
            .log()
            .contains("under a master key that this node does not have"),
        "{}",
        without_key.log()
    );

    control.restart().await;
    for id in ids {
        control.api.message_becomes(&id, "delivered").await;
    }
    until("the nodes are with the control plane", || async {
        (generations(&control.api).await.len() == 3).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_draining_node_finishes_its_messages_and_ends() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let mut node = split.node("a", &[&control]).await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    control.api.http_instance("erp", &target.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("orders")).await;
    let id = control
        .api
        .webhook(&at(&node, &webhook), &json!({"n": 1}))
        .await;
    target.arrivals(1).await;
    let nodes = control.api.get("/api/v1/nodes").await.expect(200);
    split
        .drain_node(nodes["data"][0]["id"].as_str().unwrap())
        .await;
    until("the node takes nothing more in", || async {
        // It closes its port as soon as nothing is being answered there.
        let ready = Rest::try_send(node.api.request("GET", "/ready")).await;
        ready
            .map_or(true, |answer| answer.status == 503)
            .then_some(())
    })
    .await;
    // A machine that goes down says so to a node that drains already, which is no second signal.
    node.signal("TERM").await;
    target.release();
    assert_eq!(node.ended().await, Some(0), "{}", node.log());
    control.api.message_becomes(&id, "delivered").await;
    assert_eq!(target.received().len(), 1);
}

#[tokio::test]
async fn the_whole_service_takes_further_nodes() {
    let split = Split::new();
    let whole = TestApp::start_with(&[
        ("KANAT_DATABASE_URL", split.database.url()),
        ("KANAT_JOIN_TOKEN", JOIN_TOKEN),
    ])
    .await;
    let node = split
        .node_with("a", &[], &[("KANAT_CONTROL_PLANE", &whole.base)])
        .await;
    let target = FakeTarget::start().await;
    whole.api.http_instance("erp", &target.url()).await;
    let (_, webhook) = whole.api.deployed(&passthrough("orders")).await;
    let further = format!(
        "{}{}",
        node.base,
        webhook.strip_prefix(&whole.base).unwrap()
    );
    for url in [webhook, further] {
        let id = whole.api.webhook(&url, &json!({"n": 1})).await;
        whole.api.message_becomes(&id, "delivered").await;
    }
}

#[tokio::test]
async fn over_tls_nodes_get_their_plans_by_certificate_and_by_no_other() {
    let split = Split::new();
    let ours = Authority::new(split.folder.path(), "ours");
    let foreign = Authority::new(split.folder.path(), "foreign");
    let control = split.control_plane_over_tls("control", &ours).await;
    let target = FakeTarget::start().await;
    control.api.http_instance("erp", &target.url()).await;
    let node = split.node_over_tls("a", &control, &ours, &ours).await;
    let (_, webhook) = control.api.deployed(&passthrough("orders")).await;
    assert!(control.base.starts_with("https://") && node.base.starts_with("https://"));
    let id = node
        .api
        .webhook(&at(&node, &webhook), &json!({"n": 1}))
        .await;
    control.api.message_becomes(&id, "delivered").await;

    let stranger = split.node_over_tls("b", &control, &foreign, &ours).await;
    assert_eq!(stranger.readiness().await, 503, "it has no plans");
    let deceived = split.node_over_tls("c", &control, &ours, &foreign).await;
    assert_eq!(
        deceived.readiness().await,
        503,
        "it does not trust this control plane"
    );
    assert_eq!(generations(&control.api).await.len(), 1);
}

#[tokio::test]
async fn a_node_with_another_token_gets_nothing_and_answers_503() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let target = FakeTarget::start().await;
    control.api.http_instance("erp", &target.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("orders")).await;
    let stranger = split
        .node_with(
            "a",
            &[&control],
            &[("KANAT_JOIN_TOKEN", "some-other-join-token")],
        )
        .await;
    let answer = Rest::send(
        control
            .api
            .http()
            .post(at(&stranger, &webhook))
            .json(&json!({})),
    )
    .await;
    assert_eq!(answer.status, 503, "{}", answer.text);
    assert!(
        !(answer.header("retry-after").is_empty()),
        "{}",
        answer.text
    );
    assert!(
        stranger
            .log()
            .contains("join token is not the control plane's"),
        "{}",
        stranger.log()
    );
    assert!(!stranger.log().contains("some-other-join-token"));
}

#[tokio::test]
async fn a_terminated_node_says_so_first_and_serves_on_for_its_grace() {
    let split = Split::new();
    let control = split.control_plane("control").await;
    let mut node = split
        .node_with("a", &[&control], &[("KANAT_DRAIN_GRACE", "5")])
        .await;
    let target = FakeTarget::start().await;
    control.api.http_instance("erp", &target.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("orders")).await;
    node.signal("TERM").await;
    until("the node is not ready", || async {
        (node.readiness().await == 503).then_some(())
    })
    .await;
    let id = control
        .api
        .webhook(&at(&node, &webhook), &json!({"n": 1}))
        .await;
    assert_eq!(node.ended().await, Some(0), "{}", node.log());
    control.api.message_becomes(&id, "delivered").await;
    until("it is gone from the list of those connected", || async {
        generations(&control.api).await.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_call_whose_control_plane_died_is_free_when_its_lease_has_ended() {
    let split = Split::new();
    let dies = [("KANAT_FAILPOINT", "call.done:1")];
    let mut first = split.control_plane_with("first", &dies).await;
    let second = split.control_plane("second").await;
    let table = json!({ "name": "sizes" });
    let path = "/api/v1/lookup-tables";
    let call = |api: &Rest| {
        api.with_header("idempotency-key", "sizes-1")
            .request("POST", path)
            .json(&table)
    };
    Rest::try_send(call(&first.api)).await.unwrap_err();
    first.ended().await;
    let died = Instant::now();
    assert_eq!(
        Rest::send(call(&second.api)).await.status,
        409,
        "the first one may still run it"
    );
    let again = until("the lease has ended", || async {
        let answer = Rest::send(call(&second.api)).await;
        (answer.status != 409).then_some(answer)
    });
    again.await.expect(201);
    assert!(
        died.elapsed() < Duration::from_secs(50),
        "not when a call has run for a minute"
    );
    let tables = second.api.get(path).await.expect(200);
    assert_eq!(tables["pagination"]["total"], 1);
}
