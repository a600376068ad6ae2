//! `GET /batch-jobs/{id}/errors` and `POST /batch-jobs/{id}/retry`: what failed, why, and once
//! more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

use super::{FLOW, finished, records, start};

#[tokio::test]
async fn failed_records_are_listed_with_their_reason_and_tried_again_in_a_job_of_their_own() {
    let app = TestApp::start().await;
    let healed = Arc::new(AtomicBool::new(false));
    let target = {
        let healed = Arc::clone(&healed);
        FakeTarget::scripted(move |received, _| {
            let third = received.json()["n"]
                .as_u64()
                .is_some_and(|n| n.is_multiple_of(3));
            if third && !healed.load(Ordering::SeqCst) {
                status(422)
            } else {
                ok()
            }
        })
        .await
    };
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let mut all = records(9);
    all[4] = json!({ "text": "no, \"n\"" });
    let id = start(&app.api, &flow, &all, 4).await;
    let done = finished(&app.api, &id).await;
    assert_eq!(done["status"], "completed_with_errors");
    assert_eq!(&done["succeeded"], &json!(5));
    assert_eq!(&done["failed"], &json!(4));

    let path = format!("/api/v1/batch-jobs/{id}/errors");
    let errors = app.api.get(&path).await.expect(200);
    let found: Vec<_> = errors["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| (&e["index"], &e["error"]["kind"]))
        .collect();
    let status = json!("status");
    let mapping = json!("mapping");
    assert_eq!(
        found,
        [
            (&json!(0), &status),
            (&json!(3), &status),
            (&json!(4), &mapping),
            (&json!(6), &status)
        ]
    );
    assert_eq!(errors["pagination"]["total"], 4);
    assert_eq!(errors["data"][2]["record"], json!({ "text": "no, \"n\"" }));
    assert_eq!(errors["data"][2]["error"]["field"], "n");
    let message = app
        .api
        .message(errors["data"][0]["messageId"].as_str().unwrap())
        .await;
    assert_eq!(&message["status"], &json!("dead_letter"));
    assert_eq!(&message["batchId"], &json!(id));
    let second = app
        .api
        .get(&format!("{path}?limit=1&offset=1"))
        .await
        .expect(200);
    assert_eq!(&second["data"][0]["index"], &json!(3));
    assert_eq!(second["data"].as_array().unwrap().len(), 1);

    let csv = app
        .api
        .with_header("accept", "text/csv, application/json;q=0.5")
        .get(&path)
        .await;
    assert_eq!(csv.status, 200);
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    let lines: Vec<&str> = csv.text.lines().collect();
    assert_eq!(lines[0], "index,messageId,kind,error,field,record");
    assert_eq!(lines.len(), 5);
    assert!(
        lines[1].starts_with("0,msg_")
            && lines[1].contains(" answered 422")
            && lines[1].ends_with(r#","{""n"":0}""#),
        "{}",
        lines[1]
    );

    healed.store(true, Ordering::SeqCst);
    let retry = app
        .api
        .post(&format!("/api/v1/batch-jobs/{id}/retry"), &json!({}))
        .await
        .expect(202);
    assert_eq!(&retry["retryOf"], &json!(id));
    assert_eq!(&retry["total"], &json!(4));
    assert_eq!(&retry["concurrency"], &json!(4));
    let again = app
        .api
        .post(&format!("/api/v1/batch-jobs/{id}/retry"), &json!({}))
        .await;
    assert!(
        again.text.contains(retry["id"].as_str().unwrap()),
        "{}",
        again.text
    );
    again.expect_error(400, "FAILED_PRECONDITION");
    let done = finished(&app.api, retry["id"].as_str().unwrap()).await;
    assert_eq!(
        &done["succeeded"],
        &json!(3),
        "the record without a number fails again"
    );
    assert_eq!(
        &done["failed"],
        &json!(1),
        "the record without a number fails again"
    );
    let path =
        |id: &serde_json::Value| format!("/api/v1/batch-jobs/{}/retry", id.as_str().unwrap());
    app.api
        .post(&path(&json!(id)), &json!({}))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
    let once_more = app
        .api
        .post(&path(&retry["id"]), &json!({}))
        .await
        .expect(202);
    assert_eq!(&once_more["retryOf"], &retry["id"]);
    assert_eq!(&once_more["total"], &json!(1));
    assert_eq!(
        target
            .received()
            .iter()
            .filter(|received| received.json()["n"] == 3)
            .count(),
        3,
        "once more, in one retry"
    );
}

#[tokio::test]
async fn there_is_nothing_to_retry_where_nothing_failed() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let id = start(&app.api, &flow, &records(2), 2).await;
    finished(&app.api, &id).await;
    let refused = app
        .api
        .post(&format!("/api/v1/batch-jobs/{id}/retry"), &json!({}))
        .await;
    refused.expect_error(400, "FAILED_PRECONDITION");
    let none = app
        .api
        .get(&format!("/api/v1/batch-jobs/{id}/errors"))
        .await
        .expect(200);
    assert_eq!(&none["data"], &json!([]));
    assert_eq!(&none["pagination"]["total"], &json!(0));
}

#[tokio::test]
async fn a_retry_sends_what_failed_also_where_the_flow_knows_it_by_a_key() {
    let app = TestApp::start().await;
    let target =
        FakeTarget::scripted(|_, earlier| status(if earlier < 2 { 503 } else { 200 })).await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = crate::webhook::passthrough("keyed")
        + "idempotency_key: source.n\non_error: { retry: 0x fixed(1s) }\n";
    let (flow, _) = app.api.deployed(&yaml).await;
    let job = json!({ "flowId": flow, "records": [{ "n": 1 }, { "n": 2 }], "concurrency": 1 });
    let job = app.api.post("/api/v1/batch-jobs", &job).await.expect(202);
    let failed = finished(&app.api, job["id"].as_str().unwrap()).await;
    assert_eq!(failed["failed"], 2);
    let retry = format!("/api/v1/batch-jobs/{}/retry", job["id"].as_str().unwrap());
    let retry = app.api.post(&retry, &json!({})).await.expect(202);
    let done = finished(&app.api, retry["id"].as_str().unwrap()).await;
    assert_eq!(&done["succeeded"], &json!(2));
    assert_eq!(&done["failed"], &json!(0));
    assert_eq!(target.received().len(), 4);
}

#[tokio::test]
async fn a_record_that_was_not_run_says_which_message_came_before_and_how_it_ended() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let keyed = FLOW.replace("n: source.n | required", "n: source.n | decimal(0)");
    let (flow, _) = app
        .api
        .deployed(&format!("{keyed}idempotency_key: source.id\n"))
        .await;
    let wrong = json!({ "id": "a", "n": "x" });
    let first = start(&app.api, &flow, &[wrong], 1).await;
    finished(&app.api, &first).await;
    let errors = app
        .api
        .get(&format!("/api/v1/batch-jobs/{first}/errors"))
        .await
        .expect(200);
    let error = &errors["data"][0]["error"];
    let message = errors["data"][0]["messageId"].as_str().unwrap();
    let reason = error["message"].as_str().unwrap();
    assert!(!reason.starts_with("not run"), "{reason}");

    // The second record of the job has the key of its first one, too.
    let again = [
        json!({ "id": "a", "n": "4" }),
        json!({ "id": "b", "n": "y" }),
    ];
    let twice = [&again[..], &[json!({ "id": "b", "n": "5" })]].concat();
    let second = start(&app.api, &flow, &twice, 1).await;
    assert_eq!(&finished(&app.api, &second).await["failed"], &json!(3));
    let path = format!("/api/v1/batch-jobs/{second}/errors");
    let errors = app.api.get(&path).await.expect(200);
    let of = |index: usize| errors["data"][index]["error"]["message"].as_str().unwrap();
    let before = "not run: its idempotency_key came before, with";
    let told = format!("{before} {message}, which ended as dead_letter: {reason}");
    assert_eq!(of(0), told);
    assert_eq!(&errors["data"][0]["messageId"], &json!(message));
    assert!(!of(1).starts_with("not run"), "{}", of(1));
    let own = errors["data"][1]["messageId"].as_str().unwrap();
    assert_eq!(
        of(2),
        format!("{before} {own}, which ended as dead_letter: {}", of(1))
    );
    let csv = app.api.with_header("accept", "text/csv").get(&path).await;
    assert_eq!(csv.text.matches(before).count(), 2, "{}", csv.text);
    assert!(target.received().is_empty());
}
