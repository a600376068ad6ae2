//! `GET /flows/{id}/plan`: the graph, as JSON or as a drawing's text.

use kanat_tests::TestApp;

use super::manual;

#[tokio::test]
async fn is_a_graph_in_three_formats() {
    let app = TestApp::start().await;
    let id = app.api.flow(&manual("drawn")).await;
    let path = format!("/api/v1/flows/{id}/plan");
    let graph = app.api.get(&path).await.expect(200);
    let kinds: Vec<_> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n["kind"].as_str().unwrap())
        .collect();
    for kind in ["source", "mapping", "target", "dead_letter"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert!(!graph["edges"].as_array().unwrap().is_empty());
    let mermaid = app.api.get(&format!("{path}?format=mermaid")).await;
    assert!(mermaid.header("content-type").starts_with("text/plain"));
    assert!(
        mermaid.text.starts_with("flowchart") || mermaid.text.starts_with("graph"),
        "{}",
        mermaid.text
    );
    let dot = app.api.get(&format!("{path}?format=dot")).await;
    assert!(dot.text.starts_with("digraph"), "{}", dot.text);
    app.api
        .get(&format!("{path}?format=png"))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
}
