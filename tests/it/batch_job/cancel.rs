//! `POST /batch-jobs/{id}/cancel`: no more records begin, and those under way end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use kanat_tests::rest::text;
use kanat_tests::target::{Reply, ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, finished, records, start};

#[tokio::test]
async fn a_cancelled_job_begins_no_more_records_and_counts_those_in_progress() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let id = start(&app.api, &flow, &records(50), 3).await;
    target.arrivals(3).await;
    let path = format!("/api/v1/batch-jobs/{id}/cancel");
    let job = app.api.post(&path, &json!({})).await.expect(200);
    assert_eq!(&job["status"], &json!("cancelled"));
    assert_eq!(&job["processed"], &json!(0));
    app.api
        .post(&path, &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    target.release();
    let done = finished(&app.api, &id).await;
    assert_eq!(&done["status"], &json!("cancelled"));
    assert_eq!(&done["succeeded"], &json!(3));
    assert_eq!(&done["total"], &json!(50));
    assert_eq!(target.received().len(), 3);
}

#[tokio::test]
async fn what_a_cancelled_retry_did_not_begin_is_in_its_own_retry() {
    let app = TestApp::start().await;
    let failing = AtomicBool::new(true);
    let hanging = AtomicBool::new(true);
    let modes = Arc::new((failing, hanging));
    let told = Arc::clone(&modes);
    let target =
        FakeTarget::scripted(
            move |_, _| match (told.0.load(SeqCst), told.1.load(SeqCst)) {
                (true, _) => status(422),
                (false, true) => Reply::Hang,
                (false, false) => ok(),
            },
        )
        .await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app
        .api
        .deployed(&FLOW.replace("1x fixed(10ms)", "0x fixed(10ms)"))
        .await;
    let first = start(&app.api, &flow, &records(10), 2).await;
    assert_eq!(finished(&app.api, &first).await["failed"], 10);
    modes.0.store(false, SeqCst);
    let retry = async |id: &str| {
        app.api
            .post(&format!("/api/v1/batch-jobs/{id}/retry"), &json!({}))
            .await
            .expect(202)
    };
    let second = text(&retry(&first).await["id"]);
    target.arrivals(12).await;
    app.api
        .post(&format!("/api/v1/batch-jobs/{second}/cancel"), &json!({}))
        .await
        .expect(200);
    modes.1.store(false, SeqCst);
    target.release();
    assert_eq!(finished(&app.api, &second).await["succeeded"], 2);
    let third = retry(&second).await;
    assert_eq!(&third["retryOf"], &json!(second));
    assert_eq!(&third["total"], &json!(8));
    assert_eq!(
        finished(&app.api, &text(&third["id"])).await["succeeded"],
        8
    );
    let mut numbers: Vec<_> = target.received()[10..]
        .iter()
        .map(|call| call.json()["n"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>(), "each once more");
}
