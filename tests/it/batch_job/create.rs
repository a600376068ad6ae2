//! `POST /batch-jobs`: every record becomes one message, never more of them at a time than was
//! asked for.

use std::collections::HashMap;

use futures::stream;
use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, Rest, TestApp, memory};
use serde_json::{Value, json};

use super::{FLOW, finished, get, records, start};

#[tokio::test]
async fn each_record_becomes_one_message() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let body = json!({ "flowId": flow, "records": records(120), "concurrency": 7 });
    let job = app.api.post("/api/v1/batch-jobs", &body).await.expect(202);
    let id = job["id"].as_str().unwrap();
    assert!(id.starts_with("bat_"), "{id}");
    let expected = json!({
        "id": id,
        "flowId": flow,
        "status": "queued",
        "total": 120,
        "processed": 0,
        "succeeded": 0,
        "failed": 0,
        "concurrency": 7,
        "createdAt": job["createdAt"],
    });
    let present: serde_json::Map<String, Value> = job
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .collect();
    assert_eq!(Value::Object(present), expected);

    let done = finished(&app.api, id).await;
    assert_eq!(done["status"], "completed");
    assert_eq!(&done["succeeded"], &json!(120));
    assert_eq!(&done["failed"], &json!(0));
    assert!(done["startedAt"].as_str() <= done["finishedAt"].as_str());
    let mut numbers: Vec<u64> = target
        .received()
        .iter()
        .map(|call| call.json()["n"].as_u64().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..120).collect::<Vec<u64>>());
    let messages = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}&limit=500"))
        .await
        .expect(200);
    let messages = messages["data"].as_array().unwrap();
    assert_eq!(messages.len(), 120);
    assert!(
        messages
            .iter()
            .all(|m| m["trigger"] == "batch" && m["batchId"] == id),
        "{:?}",
        messages[0]
    );
}

#[tokio::test]
async fn records_of_one_ordering_key_are_delivered_in_their_order_whatever_the_concurrency() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let ordered = FLOW.replace("target:\n", "ordering_key: source.k\ntarget:\n");
    let (flow, _) = app.api.deployed(&ordered).await;
    let all: Vec<Value> = (0..60).map(|n| json!({ "k": n % 2, "n": n })).collect();
    let id = start(&app.api, &flow, &all, 20).await;
    assert_eq!(finished(&app.api, &id).await["succeeded"], 60);
    let delivered: Vec<u64> = target
        .received()
        .iter()
        .map(|call| call.json()["n"].as_u64().unwrap())
        .collect();
    for key in [0, 1] {
        let of_key: Vec<u64> = delivered.iter().copied().filter(|n| n % 2 == key).collect();
        assert_eq!(
            of_key,
            (0..60).filter(|n| n % 2 == key).collect::<Vec<u64>>()
        );
    }
}

#[tokio::test]
async fn as_many_records_run_at_once_as_the_job_asks_for() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| Reply::Hang).await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let id = start(&app.api, &flow, &records(40), 5).await;
    target.arrivals(5).await;
    // As many as may be are under way, and another one would have come by now: the job was looked
    // at again and again.
    for _ in 0..20 {
        let job = get(&app.api, &id).await;
        assert_eq!(&job["status"], &json!("running"));
        assert_eq!(&job["processed"], &json!(0));
        let path = format!("/api/v1/messages?flowId={flow}&limit=1");
        assert_eq!(
            app.api.get(&path).await.expect(200)["pagination"]["total"],
            5
        );
    }
    assert_eq!(target.received().len(), 5);
    target.release();
    assert_eq!(finished(&app.api, &id).await["succeeded"], 40);
}

#[tokio::test]
async fn a_job_survives_kills_and_its_counts_add_up() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let id = start(&app.api, &flow, &records(300), 8).await;
    for at in [60, 160] {
        target.arrivals(at).await;
        app.kill().await;
        app.restart().await;
    }
    let done = finished(&app.api, &id).await;
    assert_eq!(&done["status"], &json!("completed"));
    assert_eq!(&done["succeeded"], &json!(300));
    assert_eq!(&done["failed"], &json!(0));
    let mut calls: HashMap<String, (u64, usize)> = HashMap::new();
    // A port may have been another's before, whose callers still call.
    for call in target.received().iter().filter(|call| call.path == "/in") {
        calls
            .entry(call.header("idempotency-key").to_owned())
            .or_insert((call.json()["n"].as_u64().unwrap(), 0))
            .1 += 1;
    }
    // One message a record, and again only what was under way when the process died.
    let mut numbers: Vec<u64> = calls.values().map(|(n, _)| *n).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..300).collect::<Vec<u64>>());
    let again: usize = calls.values().map(|(_, calls)| calls - 1).sum();
    assert!(again <= 2 * 8, "{again} records were sent again");
}

#[tokio::test]
async fn what_is_wrong_with_a_job_is_named() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let draft = app.api.flow(FLOW).await;
    let refused = |body: Value| {
        let api = app.api.clone();
        async move { api.post("/api/v1/batch-jobs", &body).await }
    };
    let cases = [
        (json!({ "records": [{}] }), "flowId"),
        (json!({ "flowId": draft }), "records"),
        (json!({ "flowId": draft, "records": [] }), "records"),
        (json!({ "flowId": draft, "records": [{}, 7] }), "records[1]"),
        (
            json!({ "flowId": draft, "records": [{}], "concurrency": 0 }),
            "concurrency",
        ),
    ];
    for (body, field) in cases {
        let details = refused(body).await.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field);
    }
    refused(json!({ "flowId": "flw_none", "records": [{}] }))
        .await
        .expect_error(404, "NOT_FOUND");
    refused(json!({ "flowId": draft, "records": [{}] }))
        .await
        .expect_error(400, "FAILED_PRECONDITION");
}

#[tokio::test]
async fn a_job_takes_a_hundred_thousand_records_and_no_more() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let body = |count: usize| {
        format!(
            "{{\"flowId\":\"{flow}\",\"concurrency\":2,\"records\":[{}{{}}]}}",
            "{},".repeat(count - 1)
        )
    };
    let job = app
        .api
        .raw(
            "POST",
            "/api/v1/batch-jobs",
            "application/json",
            body(100_000),
        )
        .await
        .expect(202);
    assert_eq!(job["total"], 100_000);
    let refused = app
        .api
        .raw(
            "POST",
            "/api/v1/batch-jobs",
            "application/json",
            body(100_001),
        )
        .await;
    let details = refused.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(details[0]["field"], "records");
    assert!(
        details[0]["message"]
            .as_str()
            .unwrap()
            .contains("more than 100000"),
        "{details}"
    );
    let jobs = app.api.get("/api/v1/batch-jobs").await.expect(200);
    assert_eq!(jobs["pagination"]["total"], 1, "no job came of the second");
    let id = job["id"].as_str().unwrap();
    app.api
        .post(&format!("/api/v1/batch-jobs/{id}/cancel"), &json!({}))
        .await
        .expect(200);
}

/// A body with `count` records of 1,000 bytes and more, in chunks; `behind` ends it.
fn long_body(flow: &str, count: usize, behind: &'static str) -> reqwest::Body {
    let flow = flow.to_owned();
    let text = "x".repeat(1000);
    let head = stream::iter([format!("{{\"records\":[{{\"n\":0,\"text\":\"{text}\"}}")]);
    let records =
        stream::iter((1..count).map(move |n| format!(",{{\"n\":{n},\"text\":\"{text}\"}}")));
    let end = stream::iter([format!(
        "{behind}],\"concurrency\":3,\"flowId\":\"{flow}\"}}"
    )]);
    let chunks = futures::StreamExt::chain(futures::StreamExt::chain(head, records), end);
    reqwest::Body::wrap_stream(futures::StreamExt::map(chunks, Ok::<_, std::io::Error>))
}

#[tokio::test]
async fn records_go_to_the_disk_while_they_come_and_not_into_memory() {
    const COUNT: usize = 20_000;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    app.api
        .post(&format!("/api/v1/flows/{flow}/pause"), &json!({}))
        .await
        .expect(200);
    let post = async |body| {
        app.api
            .raw("POST", "/api/v1/batch-jobs", "application/json", body)
            .await
    };
    // What is wrong is said by the record, and nothing is left of those before it.
    let details = post(long_body(&flow, 3_000, ",{\"n\":}"))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(details[0]["field"], "records[3000].n");
    let early = format!(
        "{{\"flowId\":\"{flow}\",\"records\":[{}{{\"n\":}}]}}",
        "{},".repeat(1_500)
    );
    let details = post(reqwest::Body::from(early))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(
        details[0]["field"], "records[1500].n",
        "it knows its flow, and two pieces are stored"
    );
    let details = post(long_body(&flow, 3_000, ",7"))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(details[0]["field"], "records[3000]");
    assert_eq!(
        app.api.get("/api/v1/batch-jobs").await.expect(200)["pagination"]["total"],
        0
    );

    let before = memory::peak_kib(app.pid());
    let job = post(long_body(&flow, COUNT, "")).await.expect(202);
    let grown = memory::peak_kib(app.pid()).saturating_sub(before);
    assert_eq!(&job["total"], &json!(COUNT));
    assert_eq!(&job["concurrency"], &json!(3));
    // One piece of the records, 256 KiB, in each of the forms that it goes through, and what the
    // allocator keeps of them: 2 MiB at most, seen many times; 7 with a dozen other callers at the
    // same time.
    assert!(
        grown < 10_000,
        "20 MB of records took {grown} KiB of memory"
    );
    let id = job["id"].as_str().unwrap();
    app.api
        .post(&format!("/api/v1/batch-jobs/{id}/cancel"), &json!({}))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_job_under_a_key_is_started_once() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let api = app.api.with_header("idempotency-key", "import-of-monday");
    let body = |count| json!({ "flowId": flow, "records": records(count), "concurrency": 2 });
    let first = api
        .post("/api/v1/batch-jobs", &body(1_500))
        .await
        .expect(202);
    let again = api
        .post("/api/v1/batch-jobs", &body(1_500))
        .await
        .expect(202);
    assert_eq!(first, again);
    api.post("/api/v1/batch-jobs", &body(1_501))
        .await
        .expect_error(409, "ABORTED");
    assert_eq!(
        app.api.get("/api/v1/batch-jobs").await.expect(200)["pagination"]["total"],
        1
    );
    let id = first["id"].as_str().unwrap();
    app.api
        .post(&format!("/api/v1/batch-jobs/{id}/cancel"), &json!({}))
        .await
        .expect(200);
}

#[tokio::test]
async fn what_a_call_made_before_a_crash_is_not_made_again() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app.api.deployed(FLOW).await;
    let retried = super::start(&app.api, &flow, &[json!({})], 1).await;
    super::finished(&app.api, &retried).await;
    let job = json!({ "flowId": flow, "records": records(20), "concurrency": 2 });
    let calls = [
        ("/api/v1/batch-jobs".to_owned(), job, 20),
        (
            format!("/api/v1/flows/{flow}/run"),
            json!({ "payload": { "n": 1 } }),
            1,
        ),
        (format!("/api/v1/batch-jobs/{retried}/retry"), json!({}), 1),
    ];
    for (n, (path, body, messages)) in calls.into_iter().enumerate() {
        let before = messages_of(&app.api, &flow).await;
        app.terminate().await;
        app.restart_with(&[("KANAT_FAILPOINT", "call.done:1")])
            .await;
        let api = app.api.with_header("idempotency-key", &format!("call-{n}"));
        Rest::try_send(api.request("POST", &path).json(&body))
            .await
            .unwrap_err();
        app.ended().await;
        app.restart_with(&[("KANAT_FAILPOINT", "")]).await;
        let made = api.post(&path, &body).await;
        assert_eq!(made.status, 202, "{path}: {}", made.text);
        let made = made.json();
        assert_eq!(api.post(&path, &body).await.expect(202), made, "{path}");
        if path.starts_with("/api/v1/batch-jobs") {
            super::finished(&app.api, made["id"].as_str().unwrap()).await;
        }
        assert_eq!(
            messages_of(&app.api, &flow).await,
            before + messages,
            "{path}"
        );
    }
}

async fn messages_of(api: &Rest, flow: &str) -> u64 {
    let messages = api
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await
        .expect(200);
    messages["pagination"]["total"].as_u64().unwrap()
}
