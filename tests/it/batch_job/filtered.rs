//! Records for which the flow's condition is false.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, finished, get, records, start};

#[tokio::test]
async fn filtered_records_succeed_and_are_counted() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app
        .api
        .deployed(&format!("{FLOW}when: source.n > 3\n"))
        .await;
    let mut all = records(6);
    all.push(json!({ "n": "9" }));
    let id = start(&app.api, &flow, &all, 10).await;
    let done = finished(&app.api, &id).await;
    assert_eq!(&done["status"], &json!("completed"));
    assert_eq!(&done["succeeded"], &json!(7));
    assert_eq!(&done["filtered"], &json!(5));
    assert_eq!(&get(&app.api, &id).await["error"], &json!(null));
    let status = Cli::of(&app).run(&["batch", "status", &id]).await.expect();
    let line = status
        .lines()
        .find(|line| line.starts_with("Filtered:"))
        .unwrap();
    assert!(line.ends_with(" 5"), "{status}");
}
