//! Records that succeed and are not sent: those for which the flow's condition is false, and
//! repeats of an earlier one.

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

#[tokio::test]
async fn records_whose_key_came_before_are_counted_as_repeats() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app
        .api
        .deployed(&format!("{FLOW}idempotency_key: source.id\n"))
        .await;
    let first = json!([{ "id": "a", "n": 1 }, { "id": "b", "n": 2 }, { "id": "b", "n": 3 }]);
    let id = start(&app.api, &flow, first.as_array().unwrap(), 1).await;
    let done = finished(&app.api, &id).await;
    assert_eq!(&done["succeeded"], &json!(3));
    assert_eq!(&done["repeats"], &json!(1));
    let again = json!([{ "id": "a", "n": 4 }, { "id": "c", "n": 5 }, { "id": "b", "n": 6 }]);
    let id = start(&app.api, &flow, again.as_array().unwrap(), 1).await;
    let done = finished(&app.api, &id).await;
    assert_eq!(&done["succeeded"], &json!(3));
    assert_eq!(&done["repeats"], &json!(2));
    assert_eq!(target.received().len(), 3);
    let status = Cli::of(&app).run(&["batch", "status", &id]).await.expect();
    let line = status.lines().find(|line| line.starts_with("Repeats:"));
    assert!(line.is_some_and(|line| line.ends_with(" 2")), "{status}");
}
