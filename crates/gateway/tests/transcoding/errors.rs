//! Errors of services: one body for all, the codes of the contract, and nothing of the inside.

use serde_json::json;

use crate::echo::{call, get, guarded_gateway, send, send_to};

const TABLES: &str = "/api/v1/lookup-tables";

#[tokio::test]
async fn every_code_has_its_status() {
    let table = [
        (3, 400, "INVALID_ARGUMENT"),
        (16, 401, "UNAUTHENTICATED"),
        (7, 403, "PERMISSION_DENIED"),
        (5, 404, "NOT_FOUND"),
        (6, 409, "ALREADY_EXISTS"),
        (10, 409, "ABORTED"),
        (9, 400, "FAILED_PRECONDITION"),
        (8, 429, "RESOURCE_EXHAUSTED"),
        (12, 501, "UNIMPLEMENTED"),
        (14, 503, "UNAVAILABLE"),
        (4, 504, "DEADLINE_EXCEEDED"),
        (13, 500, "INTERNAL"),
    ];
    for (grpc, http, name) in table {
        let answer = call(
            "POST",
            TABLES,
            &[("x-request-id", "r1")],
            format!("{{\"name\":\"code {grpc}\"}}"),
        )
        .await;
        let message = if http == 500 {
            "internal error"
        } else {
            "as asked"
        };
        assert_eq!(answer.status, http);
        assert_eq!(
            answer.json(),
            json!({"error": message, "code": name, "details": [], "requestId": "r1"})
        );
    }
}

#[tokio::test]
async fn reveals_nothing_of_the_inside() {
    let answer = call("POST", TABLES, &[], r#"{"name":"inside"}"#).await;
    assert_eq!(answer.status, 500);
    assert!(!answer.text.contains("hunter2"), "{}", answer.text);
}

#[tokio::test]
async fn carries_the_fields_at_fault_in_the_spelling_of_the_caller() {
    let table = call("POST", TABLES, &[], r#"{"name":""}"#).await;
    assert_eq!(
        table.faults(400),
        [("name".to_owned(), "must not be empty".to_owned())]
    );
    let flow = call("POST", "/api/v1/flows", &[], "{}").await;
    assert_eq!(
        flow.faults(400),
        [("yamlConfig".to_owned(), "wrong".to_owned())]
    );
}

#[tokio::test]
async fn says_when_to_try_again() {
    let answer = call("POST", TABLES, &[], r#"{"name":"busy"}"#).await;
    assert_eq!(answer.status.as_u16(), 429);
    assert_eq!(answer.header("retry-after"), "2");
}

#[tokio::test]
async fn a_request_without_a_credential_goes_no_further() {
    let request = http::Request::post(TABLES)
        .body(http_body_util::Full::new("not json".into()))
        .unwrap();
    let answer = send(request).await;
    assert_eq!(answer.status.as_u16(), 401);
    assert_eq!(answer.header("www-authenticate"), "Bearer");
    assert_eq!(answer.json()["code"], "UNAUTHENTICATED");
}

#[tokio::test]
async fn makes_an_id_for_each_request() {
    let one = get("/nowhere").await;
    let two = get("/nowhere").await;
    assert!(one.header("x-request-id").starts_with("req_"));
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
    assert_eq!(one.json()["requestId"], one.header("x-request-id"));
}

#[tokio::test]
async fn faults_of_a_request_are_reported_to_callers_with_access() {
    let guarded = guarded_gateway(|key| match key {
        "Bearer stranger" => Err(tonic::Status::unauthenticated("who are you?")),
        "Bearer reader" => Err(tonic::Status::permission_denied("you may only read")),
        _ => Ok(()),
    });
    for (key, status) in [
        ("Bearer stranger", 401),
        ("Bearer reader", 403),
        ("Bearer owner", 400),
    ] {
        for (path, body) in [
            (TABLES, "not json"),
            (TABLES, r#"{"nam": 1}"#),
            ("/api/v1/flows?x=1", "{}"),
        ] {
            let request = http::Request::post(path).header("authorization", key);
            let request = request
                .body(http_body_util::Full::new(body.into()))
                .unwrap();
            let answer = send_to(&guarded, request).await;
            assert_eq!(
                answer.status, status,
                "{key} {path} {body}: {}",
                answer.text
            );
        }
    }
}
