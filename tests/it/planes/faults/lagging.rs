//! Nodes with older plans than their control plane. They give up no message for plans that they
//! lack, because another node has them or will have them.

use kanat_tests::split::Split;
use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, Rest, TestApp, until};
use serde_json::json;

use crate::webhook::passthrough;

/// Messages of a flow that one of two nodes does not know.
const MESSAGES: usize = 20;

/// A flow to a connector of its own, with retries that are soon due.
async fn late_flow(api: &Rest, target: &FakeTarget) -> String {
    api.http_instance("late", &target.url()).await;
    let yaml = passthrough("late").replace("connector: erp", "connector: late");
    api.deployed(&format!("{yaml}on_error:\n  retry: 100x fixed(100ms)\n"))
        .await
        .1
}

async fn send(api: &Rest, base: &str, webhook: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for n in 0..MESSAGES {
        ids.push(
            api.webhook(&format!("{base}{webhook}"), &json!({ "n": n }))
                .await,
        );
    }
    ids
}

#[tokio::test]
async fn a_node_that_is_cut_off_from_its_control_plane_gives_up_no_message_of_a_flow_that_it_lacks()
{
    let split = Split::new();
    let mut lost = split.control_plane("lost").await;
    let control = split.control_plane("control").await;
    let a = split.node("a", &[&control]).await;
    let b = split.node("b", &[&lost]).await;
    let known = FakeTarget::start().await;
    let target = FakeTarget::failing(5 * MESSAGES).await;
    control.api.http_instance("erp", &known.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("known")).await;
    control
        .api
        .message_becomes(&send(&control.api, &b.base, &webhook).await[0], "delivered")
        .await;
    lost.kill().await;

    let webhook = late_flow(&control.api, &target).await;
    let ids = send(&control.api, &a.base, &webhook).await;
    for id in &ids {
        let message = control.api.message_becomes(id, "delivered").await;
        assert_eq!(message["error"], json!(null), "{message}");
    }
    assert_eq!(b.readiness().await, 200);
}

#[tokio::test]
async fn a_node_that_starts_from_its_last_good_plans_leaves_later_flows_until_it_has_heard_of_them()
{
    let split = Split::new();
    let mut control = split.control_plane("control").await;
    let mut a = split.node("a", &[&control]).await;
    let mut b = split.node("b", &[&control]).await;
    let known = FakeTarget::start().await;
    // It refuses everything as long as the first node lives.
    let target = FakeTarget::scripted(|_, earlier| {
        if earlier < MESSAGES {
            status(503)
        } else {
            ok()
        }
    })
    .await;
    control.api.http_instance("erp", &known.url()).await;
    let (_, webhook) = control.api.deployed(&passthrough("known")).await;
    control
        .api
        .message_becomes(&send(&control.api, &b.base, &webhook).await[0], "delivered")
        .await;
    b.terminate().await;

    control.api.http_instance("late", &target.url()).await;
    let yaml = passthrough("late").replace("connector: erp", "connector: late");
    let (flow, webhook) = control
        .api
        .deployed(&format!("{yaml}on_error:\n  retry: 100x fixed(2s)\n"))
        .await;
    let ids = send(&control.api, &a.base, &webhook).await;
    target.arrivals(MESSAGES).await;
    for id in &ids {
        control.api.message_becomes(id, "retrying").await;
    }
    a.kill().await;
    control.kill().await;
    b.restart().await;
    until("the node has seen what it lacks", || async {
        (b.metric("kanat_messages_waiting_for_plans").await >= MESSAGES as f64).then_some(())
    })
    .await;
    assert_eq!(
        target.received().len(),
        MESSAGES,
        "nothing is sent without the plans"
    );

    control.restart().await;
    let held = control
        .api
        .get(&format!(
            "/api/v1/messages?flowId={flow}&status=dead_letter"
        ))
        .await
        .expect(200);
    assert_eq!(held["pagination"]["total"], 0, "{held}");
    for id in &ids {
        control.api.message_becomes(id, "delivered").await;
    }
}

#[tokio::test]
async fn a_service_whose_saved_plans_are_damaged_gives_up_no_message_before_the_new_ones_are_there()
{
    type Damage = fn(&mut Vec<u8>);
    let cut: Damage = |plans| plans.truncate(plans.len() / 2);
    let flipped: Damage = |plans| {
        let middle = plans.len() / 2;
        plans[middle] ^= 0x10;
    };
    let emptied: Damage = Vec::clear;
    for damage in [cut, flipped, emptied] {
        let mut app = TestApp::start().await;
        let target = FakeTarget::scripted(|_, earlier| {
            if earlier < MESSAGES {
                status(503)
            } else {
                ok()
            }
        })
        .await;
        let webhook = late_flow(&app.api, &target).await;
        let ids = send(&app.api, "", &webhook).await;
        app.kill().await;
        let mut files = plan_files(&app.data_dir().join("plans"));
        assert!(!files.is_empty());
        for file in files.drain(..) {
            let mut plans = std::fs::read(&file).unwrap();
            damage(&mut plans);
            std::fs::write(&file, plans).unwrap();
        }
        app.restart().await;
        for id in &ids {
            let message = app.api.message_becomes(id, "delivered").await;
            assert_eq!(message["error"], json!(null), "{message}");
        }
    }
}

fn plan_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    files
        .into_iter()
        .chain(folders.iter().flat_map(|folder| plan_files(folder)))
        .collect()
}
