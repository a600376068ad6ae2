//! `POST /batch-jobs/{id}/cancel`: no more records begin, and those under way end.

use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, finished, records, start};

#[tokio::test]
async fn a_cancelled_job_begins_no_more_records_and_counts_those_under_way() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let id = start(&app.api, &flow, &records(50), 3).await;
    target.arrivals(3).await;
    let path = format!("/api/v1/batch-jobs/{id}/cancel");
    let job = app.api.post(&path, &json!({})).await.expect(200);
    assert_eq!((&job["status"], &job["processed"]), (&json!("cancelled"), &json!(0)));
    app.api.post(&path, &json!({})).await.expect_error(400, "FAILED_PRECONDITION");
    target.release();
    let done = finished(&app.api, &id).await;
    assert_eq!((&done["status"], &done["succeeded"], &done["total"]), (&json!("cancelled"), &json!(3), &json!(50)));
    assert_eq!(target.received().len(), 3);
}
