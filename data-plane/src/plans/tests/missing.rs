//! Flows that name what is not in the set.

use kanat_proto::node::v1::Resource;
use kanat_proto::plan::v1::FlowPlan;

use super::control::{flow, instance, plan};
use super::running;

#[tokio::test]
async fn a_flow_that_names_what_is_not_there_is_refused_until_it_comes() {
    let (_folder, _control, mut stream, node, mut set) = running().await;
    let mut needy = plan("flw_2", 1);
    needy.target.as_mut().unwrap().instance = "ci_2".to_owned();
    let needy = flow(&needy);
    let unknown = Resource {
        id: "teapot/1".to_owned(),
        ..set[0].clone()
    };
    let announced: Vec<_> = set.iter().chain([&needy, &unknown]).cloned().collect();
    stream.delta(1, &announced[2..], &[], &announced).await;
    let reasons = stream.nacked(2, &["teapot/1", "flow/flw_2"], &set).await;
    assert_eq!(reasons[1], "connector instance \"ci_2\" is not in the set");

    // Both at once, and the flow first: the order of a delta does not matter.
    let both = [needy, instance("ci_2")];
    set.extend(both.clone());
    stream.delta(2, &both, &[], &set).await;
    stream.acked(3, &set).await;
    assert_eq!(node.version("flw_2"), Some(1));
    drop(stream);
    node.stop().await;
}

#[tokio::test]
async fn a_version_that_stays_without_its_references_is_reported() {
    let (_folder, _control, mut stream, node, set) = running().await;
    let mut bad = FlowPlan {
        when: "source. |".to_owned(),
        ..plan("flw_1", 2)
    };
    bad.target.as_mut().unwrap().instance = "ci_2".to_owned();
    let announced = [flow(&bad), instance("ci_2")];
    stream
        .delta(1, &announced, &["connector_instance/ci_1"], &announced)
        .await;
    let reasons = stream
        .nacked(2, &["flow/flw_1"], &[set[0].clone(), instance("ci_2")])
        .await;
    let fail =
        "; messages of the version that stays fail: connector instance \"ci_1\" is not in the set";
    assert!(reasons[0].ends_with(fail), "{reasons:?}");
    drop(stream);
    node.stop().await;
}
