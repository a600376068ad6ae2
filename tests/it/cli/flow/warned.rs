//! Definitions that a deploy takes with a warning.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;
use serde_json::json;

use super::FLOW;

#[tokio::test]
async fn a_header_that_is_never_sent_keeps_no_flow_from_being_applied() {
    let app = TestApp::start().await;
    let config = json!({
        "base_url": "http://127.0.0.1:9", "auth": "none", "headers": { "X-Team": "red" },
    });
    let body = json!({ "catalogId": "http", "name": "erp", "config": config });
    let path = "/api/v1/connectors/instances";
    app.api.post(path, &body).await.expect(201);
    let cli = Cli::of(&app);
    let method = "  method: POST\n";
    let yaml = FLOW.replace(method, &format!("{method}  headers: {{ X-Team: blue }}\n"));
    cli.file("flow.yaml", &yaml);
    let warning = "warning: found the header X-Team, in whose place the connector \"erp\"";
    for _ in ["new", "unchanged"] {
        let applied = cli.run(&["flow", "apply", "flow.yaml"]).await;
        assert!(applied.stderr.contains(warning), "{}", applied.stderr);
        assert!(!applied.stderr.contains("anew"), "{}", applied.stderr);
        applied.expect();
    }
}
