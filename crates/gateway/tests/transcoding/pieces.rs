//! Client streams: a body that becomes many messages.

use crate::echo::{call, guarded_gateway, send_to};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tonic::Status;

const JOBS: &str = "/api/v1/batch-jobs";

#[tokio::test]
async fn a_body_becomes_messages_of_its_items_and_other_fields() {
    let answer = call(
        "POST",
        JOBS,
        &[],
        r#"{"flowId":"f","records":[{"n": 1.10},[2],"x"],"concurrency":7}"#,
    )
    .await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let job = answer.json();
    assert_eq!(job["id"], r#"{"n": 1.10} [2] "x""#);
    assert_eq!(job["flowId"], "f");
    assert_eq!(job["concurrency"], 7);
    assert_eq!(job["total"], 1, "one message");
    for body in ["", "{}"] {
        assert_eq!(
            call("POST", JOBS, &[], body).await.json()["total"],
            1,
            "there is one message at least"
        );
    }
    // Fields that come behind the list are known with the last message.
    let records = vec!["{}"; 2500].join(",");
    let late = call(
        "POST",
        JOBS,
        &[],
        format!(r#"{{"records":[{records}],"flow_id":"late"}}"#),
    )
    .await
    .json();
    assert_eq!(late["flowId"], "late");
    assert_eq!(late["total"], 3);
}

#[tokio::test]
async fn faults_of_an_item_are_reported_by_its_index() {
    for (body, field, told) in [
        (
            r#"{"records":[{},{"a":}]}"#,
            "records[1].a",
            "found `}`, expected a value",
        ),
        (r#"{"records":[{},{}"#, "records[1]", "ends in the midst"),
        (
            r#"{"records":{}}"#,
            "records",
            "expected a list, found an object",
        ),
        (
            r#"{"records":[],"record":1}"#,
            "record",
            "unknown field; did you mean \"records\"",
        ),
        (
            r#"{"flowId":1,"records":[{}]}"#,
            "flowId",
            "expected a string, found a number",
        ),
        (
            r#"{"flowId":"a","records":[{}],"flow_id":"b"}"#,
            "flow_id",
            "given twice",
        ),
        ("[]", "body", "expected an object"),
    ] {
        let faults = call("POST", JOBS, &[], body).await.faults(400);
        assert_eq!(faults[0].0, field, "{body}");
        assert!(faults[0].1.contains(told), "{body}: {faults:?}");
    }
    let large = format!(r#"{{"records":[{{}},"{}"]}}"#, "x".repeat(5000));
    assert_eq!(
        call("POST", JOBS, &[], large).await.faults(400)[0].0,
        "records[1]"
    );
    let larger = format!(r#"{{"records":[{}{{}}]}}"#, "{},".repeat(30_000));
    assert_eq!(call("POST", JOBS, &[], larger).await.status, 413);
    let html = call("POST", JOBS, &[("content-type", "text/html")], "{}").await;
    assert_eq!(html.status, 415);
    assert_eq!(
        call("POST", &format!("{JOBS}?flowId=x"), &[], "{}")
            .await
            .faults(400)[0]
            .0,
        "flowId"
    );
}

#[tokio::test]
async fn a_service_may_refuse_before_the_body_has_come() {
    let early = call(
        "POST",
        JOBS,
        &[],
        format!(
            r#"{{"records":[{}"stop",{}1]}}"#,
            "1,".repeat(999),
            "1,".repeat(5000)
        ),
    )
    .await;
    assert_eq!(early.status.as_u16(), 404);
    assert_eq!(early.json()["error"].as_str(), Some("that is enough"));
}

#[tokio::test]
async fn a_caller_without_access_learns_nothing_of_the_body() {
    let gateway = guarded_gateway(|_| Err(Status::unauthenticated("the key is unknown")));
    for body in ["{\"records\":[}", "{\"records\":[{}]}"] {
        let request = Request::post(JOBS)
            .header("authorization", "Bearer key")
            .body(Full::new(Bytes::from(body)));
        assert_eq!(
            send_to(&gateway, request.unwrap()).await.status,
            401,
            "{body}"
        );
    }
}
