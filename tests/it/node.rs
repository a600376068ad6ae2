//! Nodes: the one inside `kanat up` is listed like any other.

use kanat_tests::{TestApp, until};

#[tokio::test]
async fn the_built_in_node_is_connected_and_up_to_date() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let node = until("the node is listed as connected", || async {
        let body = app.api.get("/api/v1/nodes").await.expect(200);
        (body["data"][0]["status"] == "connected").then(|| body["data"][0].clone())
    })
    .await;
    assert!(node["id"].as_str().unwrap().starts_with("node_"));
    assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(node["environments"].as_array().unwrap().len(), 3);
    assert_eq!(node["rejected"], serde_json::json!([]));
}
