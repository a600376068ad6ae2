//! `DELETE /flows/{id}` under a running batch job.

use kanat_tests::cli::Cli;
use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, finished, records, start};

#[tokio::test]
async fn the_job_of_a_deleted_flow_is_named_before_and_ends_with_the_reason() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let id = start(&app.api, &flow, &records(30), 3).await;
    target.arrivals(3).await;

    let cli = Cli::of(&app);
    let told = cli
        .run(&["flow", "delete", "import", "--dry-run"])
        .await
        .expect();
    let job = format!("batch job {id} is running, and 30 of its 30 records would fail");
    assert!(told.contains(&job), "{told}");
    assert!(
        told.contains("messages under way, which would be broken off: 3"),
        "{told}"
    );

    let deleted = app.api.delete(&format!("/api/v1/flows/{flow}")).await;
    assert_eq!(deleted.status, 204);
    target.release();
    let done = finished(&app.api, &id).await;
    assert_eq!(&done["status"], &json!("completed_with_errors"));
    assert_eq!(&done["failed"], &json!(30));
    assert_eq!(&done["error"]["kind"], &json!("flow_deleted"));
    let reason = "the flow was deleted before the message was delivered";
    assert_eq!(&done["error"]["message"], &json!(reason));
    let errors = app
        .api
        .get(&format!("/api/v1/batch-jobs/{id}/errors?limit=500"))
        .await
        .expect(200);
    for error in errors["data"].as_array().unwrap() {
        assert_eq!(&error["error"]["kind"], &json!("flow_deleted"), "{error}");
        assert!(error["record"].is_object(), "{error}");
    }
    let status = cli.run(&["batch", "status", &id]).await.expect();
    assert_eq!(status.matches(reason).count(), 1, "{status}");
}
