//! No request panics, and every one gets an answer that says what became of it.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use http_body_util::Full;
use kanat_proto::plan::v1::{Field, Mapping, Verify, field};
use proptest::prelude::*;

use super::node::{Node, flow, verified};
use super::target::Target;

const NAMES: [&str; 14] = [
    "content-type",
    "content-encoding",
    "content-length",
    "authorization",
    "x-signature",
    "x-hub-signature-256",
    "x-shopify-hmac-sha256",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "stripe-signature",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "traceparent",
];
const VALUES: [&str; 14] = [
    "application/json",
    "application/x-www-form-urlencoded",
    "text/plain; charset=iso-8859-1",
    "application/octet-stream",
    "gzip",
    "Basic QWxhZGRpbjpvcGVuOnNlc2FtZQ==",
    "sha256=00",
    "t=1,v1=00",
    "v1,AAAA",
    "v0=00",
    "0",
    "-9223372036854775808",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    ";charset=;=;\"",
];
const SCHEMES: [&str; 11] = [
    "token",
    "hmac-sha256",
    "hmac-sha1",
    "hmac-sha512",
    "standard-webhooks",
    "github",
    "stripe",
    "shopify",
    "slack",
    "meta",
    "basic",
];
const ANSWERS: [u16; 12] = [200, 202, 400, 401, 403, 404, 405, 408, 413, 415, 431, 503];

fn header() -> impl Strategy<Value = (HeaderName, HeaderValue)> {
    let name = proptest::sample::select(&NAMES[..]).prop_map(HeaderName::from_static);
    let value = prop_oneof![
        proptest::sample::select(&VALUES[..]).prop_map(|text| text.as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    (name, value).prop_filter_map("a header value", |(name, value)| {
        Some((name, HeaderValue::from_bytes(&value).ok()?))
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        r#"[\[\]{}:,"0-9eE+.a-f\\ -]{0,60}"#.prop_map(String::into_bytes),
        "([a-c%+]{0,4}=?[a-c%+]{0,4}&){0,8}".prop_map(String::into_bytes),
        Just(
            br#"{"type":"url_verification","challenge":"x","id":1,"items":[{"n":1e400}]}"#.to_vec()
        ),
    ]
}

fn any_request() -> impl Strategy<Value = Request<Full<Bytes>>> {
    let token = prop_oneof![
        proptest::sample::select(&SCHEMES[..])
            .prop_map(|scheme| format!("/webhooks/receive/t-{scheme}")),
        Just("/webhooks/receive/t-plain".to_owned()),
        "/[a-z/.%0-9]{0,20}",
    ];
    let method =
        proptest::sample::select(&["POST", "POST", "POST", "GET", "PUT", "HEAD", "WILD"][..]);
    let query = "(\\?[a-z.=&%+0-9]{0,30})?";
    (
        method,
        token,
        query,
        proptest::collection::vec(header(), 0..6),
        body(),
    )
        .prop_filter_map("a request", |(method, path, query, headers, body)| {
            let mut request = Request::builder()
                .method(method)
                .uri(format!("{path}{query}"))
                .body(Full::new(Bytes::from(body)))
                .ok()?;
            request.headers_mut().extend(headers);
            Some(request)
        })
}

#[test]
fn every_request_gets_an_answer() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (node, target) = runtime.block_on(async {
        let node = Node::start().await;
        let target = Target::start().await;
        let expressions = [
            ("a", "source.items[0].n | decimal(2)"),
            ("b", "trigger.query"),
            ("c", "source | json"),
        ];
        let fields = expressions.map(|(name, text)| Field {
            name: name.to_owned(),
            value: Some(field::Value::Expression(text.to_owned())),
        });
        for name in SCHEMES.iter().chain(&["plain"]) {
            let mut plan = flow(name);
            plan.mapping = Some(Mapping {
                fields: fields.to_vec(),
            });
            plan.ordering_key = "source.id".to_owned();
            let verify = Verify {
                scheme: (*name).to_owned(),
                secrets: vec!["c2VjcmV0".to_owned()],
                username: "Aladdin".to_owned(),
                password: "open:sesame".to_owned(),
                verify_token: "t".to_owned(),
                ..Verify::default()
            };
            let plan = if *name == "plain" {
                plan
            } else {
                verified(plan, verify)
            };
            node.deploy(&plan, &target.url).await;
        }
        (node, target)
    });
    let config = ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(request in any_request())| {
        let shown = format!("{request:?}");
        let answer = runtime.block_on(node.send(request));
        prop_assert!(
            ANSWERS.contains(&answer.status.as_u16()),
            "{} for {shown}",
            answer.status
        );
        let is_text = answer.header("content-type").starts_with("text/plain");
        prop_assert!(
            is_text || serde_json::from_str::<serde_json::Value>(&answer.text).is_ok(),
            "{}",
            answer.text
        );
    });
    runtime.block_on(async {
        node.stop().await;
        target.stop().await;
    });
}
