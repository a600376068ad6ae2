//! Responses of the data plane's port.

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{Full, StreamBody};
use kanat_model::message::Status;
use kanat_proto::plan::v1::Verify;
use kanat_proto::plan::v1::trigger::Kind;

use super::node::{Answer, Node, flow, verified, webhook};
use super::target::Target;

fn request(method: Method, path: &str) -> Request<Full<Bytes>> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(Full::default())
        .unwrap()
}

fn assert_error(answer: &Answer, status: u16, code: &str, text: &str) {
    let body: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
    assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
    assert_eq!(body["code"].as_str(), Some(code), "{}", answer.text);
    assert!(
        body["error"].as_str().unwrap().contains(text),
        "{}",
        answer.text
    );
    assert_eq!(
        body["requestId"].as_str(),
        Some(answer.header("x-request-id"))
    );
    assert_eq!(body["details"], serde_json::json!([]));
}

#[tokio::test]
async fn health_and_readiness_answer_and_the_rest_is_not_found() {
    let node = Node::start().await;
    let target = Target::start().await;
    node.deploy(&flow("a"), &target.url).await;
    let health = node.send(request(Method::GET, "/health")).await;
    assert_eq!(health.status.as_u16(), 200);
    assert_eq!(health.text.as_str(), r#"{"status":"ok"}"#);
    let ready = node.send(request(Method::GET, "/ready")).await;
    assert_eq!(ready.status.as_u16(), 200);
    assert_eq!(ready.text.as_str(), r#"{"status":"ready"}"#);
    for path in [
        "/",
        "/webhooks",
        "/webhooks/receive/",
        "/webhooks/receive/a/b",
        "/v1/x",
    ] {
        assert_error(
            &node.send(request(Method::GET, path)).await,
            404,
            "NOT_FOUND",
            "nothing",
        );
    }
    let answer = node.send(request(Method::POST, "/health")).await;
    assert_error(&answer, 405, "UNIMPLEMENTED", "GET");
    assert_eq!(answer.header("allow"), "GET, HEAD");
    let answer = node
        .send(request(Method::PUT, "/webhooks/receive/t-a"))
        .await;
    assert_error(&answer, 405, "UNIMPLEMENTED", "POST");
    assert_eq!(answer.header("allow"), "POST");
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_node_without_plans_asks_to_come_back() {
    let node = Node::without_plans().await;
    let answer = node.post("t-a", "{}").await;
    assert_error(&answer, 503, "UNAVAILABLE", "no plans");
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(node.send(request(Method::GET, "/ready")).await.status, 503);
    assert!(!node.plane.ready());
    node.stop().await;
}

#[tokio::test]
async fn an_unknown_and_an_expired_token_are_not_found() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("old");
    if let Some(Kind::Webhook(webhook)) = plan
        .trigger
        .as_mut()
        .and_then(|trigger| trigger.kind.as_mut())
    {
        webhook.tokens[0].expires_at = 1;
    }
    node.deploy(&plan, &target.url).await;
    for token in ["t-old", "t-none", "%00", "t-old%20"] {
        assert_error(
            &node.post(token, "{}").await,
            404,
            "NOT_FOUND",
            "no deployed flow",
        );
    }
    assert_eq!(node.stored(), 0);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn malformed_json_is_refused_with_its_place_and_not_stored() {
    let node = Node::start().await;
    let target = Target::start().await;
    node.deploy(&flow("a"), &target.url).await;
    let answer = node.post("t-a", "{\n  \"a\": oops\n}").await;
    assert_error(&answer, 400, "INVALID_ARGUMENT", "line 2");
    let deep = "[".repeat(10_000);
    assert_eq!(node.post("t-a", deep).await.status, 400);
    assert_eq!(node.stored(), 0);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_declared_or_chunked_and_not_stored() {
    let node = Node::with(|options| options.body_limit = 1000).await;
    let target = Target::start().await;
    node.deploy(&flow("a"), &target.url).await;
    assert_error(
        &node.post("t-a", vec![b' '; 1001]).await,
        413,
        "INVALID_ARGUMENT",
        "1000 bytes",
    );
    let chunks = (0..20).map(|_| {
        Ok::<_, std::io::Error>(hyper::body::Frame::data(Bytes::from_static(&[b' '; 100])))
    });
    let chunked = webhook("t-a", "").map(|_| StreamBody::new(futures::stream::iter(chunks)));
    assert_error(
        &node.send(chunked).await,
        413,
        "INVALID_ARGUMENT",
        "1000 bytes",
    );
    assert_eq!(node.stored(), 0);
    assert_eq!(
        node.post("t-a", format!("{{}}{}", " ".repeat(998)))
            .await
            .status,
        202
    );
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn an_encoding_that_is_not_known_is_refused() {
    let node = Node::start().await;
    let target = Target::start().await;
    node.deploy(&flow("a"), &target.url).await;
    let mut zstd = webhook("t-a", "{}");
    zstd.headers_mut()
        .insert("content-encoding", "zstd".parse().unwrap());
    assert_error(&node.send(zstd).await, 415, "INVALID_ARGUMENT", "gzip");
    let mut headers = webhook("t-a", "{}");
    for n in 0..9 {
        headers
            .headers_mut()
            .append("x-long", format!("{n}").repeat(8000).parse().unwrap());
    }
    assert_error(
        &node.send(headers).await,
        431,
        "RESOURCE_EXHAUSTED",
        "headers",
    );
    assert_eq!(node.stored(), 0);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_repeated_idempotency_key_gets_the_first_messages_id() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("once");
    plan.idempotency_key = "source.id".to_owned();
    node.deploy(&plan, &target.url).await;
    let long = "x".repeat(5000);
    for id in ["1", &long] {
        let first = node
            .accepted("t-once", format!("{{\"id\":\"{id}\"}}"))
            .await;
        let again = node.post("t-once", format!("{{\"id\":\"{id}\"}}")).await;
        assert_eq!(again.status.as_u16(), 202);
        assert_eq!(again.id("duplicate"), first.clone());
        assert_eq!(node.finished(&first).await.status, Status::Delivered);
    }
    assert_eq!(target.received().len(), 2);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_bad_signature_is_refused_and_not_stored() {
    let node = Node::start().await;
    let target = Target::start().await;
    let verify = Verify {
        scheme: "github".into(),
        secrets: vec!["{{ instance.webhook_secret }}".into()],
        ..Verify::default()
    };
    let mut plan = verified(flow("signed"), verify);
    plan.source_instance = "ci_signed".to_owned();
    let config = format!(
        r#"{{"base_url":"{}","webhook_secret":"It's a Secret to Everybody"}}"#,
        target.url
    );
    node.control.instance("ci_signed", &config).await;
    node.control.flow(&plan).await;
    let signed = |signature: &str, delivery: &str| {
        Request::post("/webhooks/receive/t-signed")
            .header("x-hub-signature-256", signature)
            .header("x-github-delivery", delivery)
            .header("content-type", "text/plain")
            .body(Full::new(Bytes::from_static(b"Hello, World!")))
            .unwrap()
    };
    let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let bad = node.send(signed(&good.replace("75", "57"), "1")).await;
    assert_error(&bad, 401, "UNAUTHENTICATED", "wrong");
    let missing = node.post("t-signed", "{}").await;
    assert_error(&missing, 401, "UNAUTHENTICATED", "x-hub-signature-256");
    assert_eq!(node.stored(), 0);

    let first = node.send(signed(good, "1")).await.id("accepted");
    assert_eq!(node.send(signed(good, "1")).await.id("duplicate"), first);
    assert_ne!(node.send(signed(good, "2")).await.id("accepted"), first);
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn challenges_of_meta_and_slack_are_answered_and_not_stored() {
    let node = Node::start().await;
    let target = Target::start().await;
    let meta = Verify {
        scheme: "meta".into(),
        secrets: vec!["app-secret".into()],
        verify_token: "letmein".into(),
        ..Verify::default()
    };
    node.deploy(&verified(flow("meta"), meta), &target.url)
        .await;
    let asks = |token: &str| {
        format!(
            "/webhooks/receive/t-meta?hub.mode=subscribe&hub.verify_token={token}&hub.challenge=42"
        )
    };
    let answer = node.send(request(Method::GET, &asks("letmein"))).await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.text.as_str(), "42");
    assert_error(
        &node.send(request(Method::GET, &asks("x"))).await,
        401,
        "UNAUTHENTICATED",
        "wrong",
    );

    let slack = Verify {
        scheme: "slack".into(),
        secrets: vec!["s".into()],
        ..Verify::default()
    };
    node.deploy(&verified(flow("slack"), slack), &target.url)
        .await;
    let body = r#"{"type":"url_verification","challenge":"abc"}"#;
    assert_eq!(node.post("t-slack", body).await.status, 401);
    let answer = node.send(slack_signed(body)).await;
    assert_eq!(answer.status.as_u16(), 200);
    assert_eq!(answer.text.as_str(), "abc");
    assert_eq!(node.stored(), 0);
    node.stop().await;
    target.stop().await;
}

fn slack_signed(body: &'static str) -> Request<Full<Bytes>> {
    use hmac::{KeyInit, Mac};
    let stamp = (kanat_model::Timestamp::now().as_millis() / 1000).to_string();
    let mut mac = <hmac::Hmac<sha2::Sha256> as KeyInit>::new_from_slice(b"s").unwrap();
    mac.update(format!("v0:{stamp}:{body}").as_bytes());
    let mut request = webhook("t-slack", body);
    request
        .headers_mut()
        .insert("x-slack-request-timestamp", stamp.parse().unwrap());
    let signature = format!("v0={}", hex::encode(mac.finalize().into_bytes()));
    request
        .headers_mut()
        .insert("x-slack-signature", signature.parse().unwrap());
    request
}

#[tokio::test]
async fn what_let_the_sender_in_is_not_stored() {
    let node = Node::start().await;
    let target = Target::start().await;
    let mut plan = flow("shown");
    plan.paused = true;
    let verify = Verify {
        scheme: "token".into(),
        secrets: vec!["s3cret".into()],
        header: "X-Key".into(),
        ..Verify::default()
    };
    node.deploy(&verified(plan, verify), &target.url).await;
    let mut request = webhook("t-shown", "{}");
    for name in ["x-key", "authorization", "cookie"] {
        request
            .headers_mut()
            .insert(name, "s3cret".parse().unwrap());
    }
    request
        .headers_mut()
        .insert("x-shop", "eu".parse().unwrap());
    let id = node.send(request).await.id("accepted");
    let content = node
        .log
        .content(&super::node::tenant(), &id)
        .await
        .unwrap()
        .unwrap();
    let document = String::from_utf8(content.request.to_vec()).unwrap();
    assert!(
        !document.contains("s3cret") && document.contains(r#""x-shop":"eu""#),
        "{document}"
    );
    node.stop().await;
    target.stop().await;
}

#[tokio::test]
async fn a_request_id_is_taken_or_made() {
    let node = Node::start().await;
    let mut given = request(Method::GET, "/health");
    given
        .headers_mut()
        .insert("x-request-id", "mine-1".parse().unwrap());
    assert_eq!(node.send(given).await.header("x-request-id"), "mine-1");
    for bad in ["", "a b", &"x".repeat(200)] {
        let mut given = request(Method::GET, "/health");
        given
            .headers_mut()
            .insert("x-request-id", bad.parse().unwrap());
        assert!(
            node.send(given)
                .await
                .header("x-request-id")
                .starts_with("req_")
        );
    }
    node.stop().await;
}
