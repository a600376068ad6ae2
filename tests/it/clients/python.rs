//! A Python client made from `proto/` with grpcio-tools.

use kanat_tests::python::Python;
use kanat_tests::{FakeTarget, TestApp, app};
use serde_json::Value;

#[tokio::test]
async fn a_python_client_creates_deploys_and_runs_a_flow() {
    let python = Python::prepare().await.unwrap();
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let address = app.base.trim_start_matches("http://");
    let printed = python
        .run("client.py", &[address, app::KEY, &target.url()])
        .await
        .unwrap();
    let told: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(told["status"], "delivered");
    assert_eq!(told["lastEvent"], "delivered");
    assert_eq!(told["unknown"], "NOT_FOUND");
    assert_eq!(told["anonymous"], "UNAUTHENTICATED");
    let delivered = r#"{"id":9007199254740993,"country":"DE","total":"149.50"}"#;
    assert_eq!(told["output"], delivered);
    let received = target.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].path.as_str(), "/orders/9007199254740993");
    assert_eq!(&received[0].body[..], delivered.as_bytes());
    assert_eq!(received[0].header("idempotency-key"), told["messageId"]);
}
