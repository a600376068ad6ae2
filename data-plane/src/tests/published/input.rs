//! Input of calls and its validation.

use flate2::Compression;
use flate2::write::GzEncoder;
use kanat_model::message::Status;
use serde_json::json;
use std::io::Write;

use super::*;

const SCHEMA: &str = r#"{
    "type": "object",
    "required": ["id", "items"],
    "properties": {
        "id": {"type": "integer"},
        "items": {
            "type": "array",
            "items": {"type": "object", "properties": {"qty": {"type": "integer"}}}
        }
    }
}"#;

async fn node_with(name: &str, change: impl FnOnce(&mut PublishedApi)) -> Node {
    let node = Node::start().await;
    node.control.flow(&api_flow(name)).await;
    let mut api = api(name, "POST", "things/{thing}");
    api.versions[0].request_schema = SCHEMA.to_owned();
    change(&mut api);
    node.control.api(&api).await;
    node
}

#[tokio::test]
async fn a_strict_api_refuses_before_anything_is_stored() {
    let node = node_with("strict", |_| {}).await;
    let answer = node
        .ask("POST", "/things/1", &[JSON], r#"{"items":[{"qty":"x"}]}"#)
        .await;
    let body = answer.json();
    assert_eq!(answer.status, 422);
    let mut fields: Vec<_> = body["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| detail["field"].as_str().unwrap())
        .collect();
    fields.sort_unstable();
    assert_eq!(fields, ["id", "items[0].qty"]);
    assert!(body["error"].is_string());
    // No body is null, which is no object.
    assert_eq!(
        node.ask("POST", "/things/1", &[JSON], "").await.json()["details"][0]["field"],
        "(root)"
    );
    assert_eq!(node.stored(), 0);
    assert_eq!(
        node.ask("POST", "/things/1", &[JSON], r#"{"id":1,"items":[]}"#)
            .await
            .status,
        202
    );
    node.stop().await;
}

#[tokio::test]
async fn a_lenient_api_notes_what_is_wrong_and_goes_on() {
    let node = node_with("lenient", |api| api.strict = false).await;
    let answer = node.ask("POST", "/things/1", &[JSON], r#"{"id":1}"#).await;
    let id = answer.id("accepted");
    assert_eq!(node.finished(&id).await.status, Status::Delivered);
    let trace = node.trace(&id).await;
    let noted = trace
        .iter()
        .find(|record| record.stage == "validated")
        .unwrap();
    assert_eq!(noted.name.as_str(), "requestSchema");
    assert_eq!(noted.status.as_str(), "warning");
    assert!(noted.error.as_ref().unwrap().contains("items"), "{noted:?}");
    node.stop().await;
}

#[tokio::test]
async fn forms_and_compressed_bodies_are_read_by_the_schema_too() {
    let node = node_with("forms", |api| {
        api.versions[0].request_schema =
            r#"{"type":"object","properties":{"id":{"type":"integer"}}}"#.to_owned();
    })
    .await;
    let form = ("content-type", "application/x-www-form-urlencoded");
    let answer = node
        .ask("POST", "/things/1", &[form], "id=7&name=a+b")
        .await;
    let message = node.finished(&answer.id("accepted")).await;
    assert_eq!(message.payload, r#"{"id":7,"name":"a b"}"#);
    assert_eq!(
        node.ask("POST", "/things/1", &[form], "id=x").await.status,
        422
    );

    let plain = br#"{"id":7}"#;
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(plain).unwrap();
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 9, 22);
    brotli.write_all(plain).unwrap();
    for (coding, body) in [
        ("gzip", gzip.finish().unwrap()),
        ("br", brotli.into_inner()),
    ] {
        let request = Request::post("/things/1").header("content-type", "application/json");
        let request = request
            .header("content-encoding", coding)
            .body(Full::new(Bytes::from(body)))
            .unwrap();
        let answer = node.send(request).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        assert_eq!(
            node.finished(&answer.id("accepted")).await.payload,
            plain.as_slice()
        );
    }
    for (content_type, body) in [
        ("text/plain", "{}"),
        ("application/xml", "<a/>"),
        ("multipart/form-data", "x"),
    ] {
        assert_eq!(
            node.ask("POST", "/things/1", &[("content-type", content_type)], body)
                .await
                .status,
            415
        );
    }
    let answer = node.ask("POST", "/things/1", &[JSON], "{\"id\":\n").await;
    assert_eq!(answer.status, 400);
    assert!(
        answer.json()["error"].as_str().unwrap().contains("line 2"),
        "{}",
        answer.text
    );
    node.stop().await;
}

#[tokio::test]
async fn get_and_delete_take_query_and_path_by_the_schema() {
    let node = node_with("query", |api| {
        api.method = "GET".to_owned();
        api.versions[0].request_schema = r#"{"type":"object","required":["thing"],"properties":{
            "thing":{"type":"integer"},"open":{"type":"boolean"},
            "tags":{"type":"array","items":{"type":"string"}}}}"#
            .to_owned();
    })
    .await;
    let answer = node
        .ask("GET", "/things/7?open=true&tags=a&thing=9&q=1", &[], "")
        .await;
    let message = node.finished(&answer.id("accepted")).await;
    let payload: serde_json::Value = serde_json::from_slice(&message.payload).unwrap();
    assert_eq!(
        payload,
        json!({"open": true, "tags": ["a"], "q": "1", "thing": 7})
    );
    let refused = node.ask("GET", "/things/x", &[], "").await;
    assert_eq!(refused.status.as_u16(), 422);
    assert_eq!(
        refused.json()["details"][0]["field"].as_str(),
        Some("thing")
    );
    let head = node.ask("HEAD", "/things/7", &[], "").await;
    assert_eq!(head.status.as_u16(), 202);
    assert_eq!(head.text.as_str(), "");
    assert!(head.header("content-length").parse::<usize>().unwrap() > 0);
    node.stop().await;
}

#[tokio::test]
async fn a_repeated_idempotency_key_makes_no_second_message() {
    let node = node_with("again", |_| {}).await;
    let key = ("idempotency-key", "order-7");
    let first = node
        .ask("POST", "/things/1", &[JSON, key], r#"{"id":1,"items":[]}"#)
        .await;
    let again = node
        .ask("POST", "/things/1", &[JSON, key], r#"{"id":1,"items":[]}"#)
        .await;
    assert_eq!(first.status.as_u16(), 202);
    assert_eq!(again.status.as_u16(), 202);
    assert_eq!(first.text, again.text);
    assert_eq!(again.header("idempotency-replayed"), "true");
    let other = node
        .ask("POST", "/things/1", &[JSON, key], r#"{"id":2,"items":[]}"#)
        .await;
    assert_eq!(other.status, 409, "{}", other.text);
    let next = node
        .ask(
            "POST",
            "/things/1",
            &[JSON, ("idempotency-key", "order-8")],
            r#"{"id":1,"items":[]}"#,
        )
        .await;
    assert_ne!(next.id("accepted"), first.id("accepted"));
    node.stop().await;
}

#[tokio::test]
async fn pages_of_allowed_origins_may_read_answers_and_errors() {
    let node = node_with("cors", |api| {
        api.cors = Some(v1::Cors {
            origins: vec!["https://shop.example".to_owned()],
            headers: vec!["X-Shop".to_owned()],
            exposed_headers: vec!["Retry-After".to_owned()],
            credentials: true,
            max_age_seconds: 600,
        });
    })
    .await;
    let origin = ("origin", "https://shop.example");
    for (body, expected) in [(r#"{"id":1,"items":[]}"#, 202), ("{}", 422)] {
        let answer = node.ask("POST", "/things/1", &[JSON, origin], body).await;
        assert_eq!(answer.status.as_u16(), expected);
        assert_eq!(answer.header("access-control-allow-origin"), origin.1);
        assert_eq!(answer.header("access-control-allow-credentials"), "true");
        assert_eq!(
            answer.header("access-control-expose-headers"),
            "Retry-After"
        );
        assert_eq!(answer.header("vary"), "origin");
    }
    let other = node
        .ask(
            "POST",
            "/things/1",
            &[JSON, ("origin", "https://evil.example")],
            "{}",
        )
        .await;
    assert_eq!(other.header("access-control-allow-origin"), "");
    assert_eq!(other.header("vary"), "origin");

    let wish = ("access-control-request-method", "POST");
    let preflight = node.ask("OPTIONS", "/things/1", &[origin, wish], "").await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), origin.1);
    assert_eq!(
        preflight.header("access-control-allow-methods"),
        "OPTIONS, POST"
    );
    let headers = "authorization, content-type, idempotency-key, X-Shop";
    assert_eq!(preflight.header("access-control-allow-headers"), headers);
    assert_eq!(preflight.header("access-control-max-age"), "600");
    let refused = node
        .ask(
            "OPTIONS",
            "/things/1",
            &[("origin", "https://evil.example"), wish],
            "",
        )
        .await;
    assert_eq!(refused.status.as_u16(), 204);
    assert_eq!(refused.header("access-control-allow-origin"), "");
    node.stop().await;
}
