//! Addresses and versions: what is found where, and what deprecated and retired versions say.

use kanat_model::message::Status;
use serde_json::json;

use super::*;

const SUNSET: i64 = 1_893_456_000_000;

#[tokio::test]
async fn paths_lead_to_versions_and_methods() {
    let node = Node::start().await;
    node.control.flow(&api_flow("a")).await;
    let mut orders = api("a", "POST", "shops/{shop}/orders");
    orders.versions.push(version(2, "a"));
    node.control.api(&orders).await;
    node.control
        .api(&PublishedApi {
            id: "api_b".into(),
            ..api("a", "GET", "shops/{name}/orders")
        })
        .await;

    for (path, expected) in [
        ("/v1/shops/a%2Fb/orders", "v1"),
        ("/v2/shops/x/orders", "v2"),
        ("/shops/x/orders", "v2"),
    ] {
        let answer = node.ask("POST", path, &[JSON], r#"{"a":1}"#).await;
        assert_eq!(answer.status, 202, "{path}: {}", answer.text);
        let message = node.finished(&answer.id("accepted")).await;
        assert_eq!(message.status, Status::Delivered, "{:?}", message.error);
        assert_eq!(message.trigger.as_str(), "api", "{:?}", message.error);
        let content = node
            .log
            .content(&super::super::node::tenant(), &message.id)
            .await
            .unwrap()
            .unwrap();
        let trigger: serde_json::Value = serde_json::from_slice(&content.request).unwrap();
        assert_eq!(trigger["api"], json!({"id": "api_a", "version": expected}));
        assert_eq!(
            trigger["path_params"]["shop"],
            if expected == "v1" { "a/b" } else { "x" }
        );
    }
    for nothing in [
        "/v3/shops/x/orders",
        "/shops/x",
        "/shops/x/orders/1",
        "/shops//orders",
        "/inbound/shops/x/orders",
    ] {
        let answer = node.ask("POST", nothing, &[JSON], "{}").await;
        assert_eq!(answer.status.as_u16(), 404, "{nothing}");
        assert_eq!(
            answer.json()["code"].as_str(),
            Some("NOT_FOUND"),
            "{nothing}"
        );
    }
    let answer = node.ask("POST", "/v3/shops/x/orders", &[JSON], "{}").await;
    assert_eq!(
        answer.json()["error"].as_str(),
        Some("this API has no version v3: call v2")
    );
    let answer = node.ask("DELETE", "/v1/shops/x/orders", &[], "").await;
    assert_eq!(answer.status.as_u16(), 405);
    assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS, POST");
    // Version 2 has no GET.
    let answer = node.ask("GET", "/v2/shops/x/orders", &[], "").await;
    assert_eq!(answer.status.as_u16(), 405);
    assert_eq!(answer.header("allow"), "OPTIONS, POST");
    let answer = node.ask("OPTIONS", "/shops/x/orders", &[], "").await;
    assert_eq!(answer.status.as_u16(), 204);
    assert_eq!(answer.header("allow"), "GET, HEAD, OPTIONS, POST");
    node.stop().await;
}

#[tokio::test]
async fn a_deprecated_version_says_so_on_every_answer() {
    let node = Node::start().await;
    node.control.flow(&api_flow("dep")).await;
    let mut api = api("dep", "POST", "orders/{id}");
    api.auth = "api_key".to_owned();
    api.versions[0].status = "deprecated".to_owned();
    api.versions[0].sunset_at = SUNSET;
    api.versions[0].request_schema = r#"{"type":"object","required":["a"]}"#.to_owned();
    api.versions.push(version(2, "dep"));
    node.control.api(&api).await;
    node.control.key(&key(&api, "k")).await;

    let host = ("host", "api.example.com:8080");
    let bearer = ("authorization", "Bearer k");
    for (expected, headers, body) in [
        (202, vec![host, JSON, bearer], r#"{"a":1}"#),
        (401, vec![host, JSON], r#"{"a":1}"#),
        (
            401,
            vec![host, JSON, ("authorization", "Bearer x")],
            r#"{"a":1}"#,
        ),
        (422, vec![host, JSON, bearer], "{}"),
        (400, vec![host, JSON, bearer], "{"),
        (415, vec![host, ("content-type", "text/plain"), bearer], "x"),
        (
            400,
            vec![host, JSON, bearer, ("idempotency-key", "")],
            r#"{"a":1}"#,
        ),
    ] {
        let answer = node.ask("POST", "/v1/orders/7", &headers, body).await;
        assert_eq!(answer.status, expected, "{}", answer.text);
        assert_eq!(answer.header("deprecation"), "true");
        assert_eq!(answer.header("sunset"), "Tue, 01 Jan 2030 00:00:00 GMT");
        assert_eq!(
            answer.header("link"),
            "<http://api.example.com:8080/v2/orders/7>; rel=\"successor-version\"",
            "{expected}"
        );
    }
    for (method, expected) in [("GET", 405), ("OPTIONS", 204)] {
        let answer = node.ask(method, "/v1/orders/7", &[host], "").await;
        assert_eq!(answer.status.as_u16(), expected, "{method}");
        assert_eq!(answer.header("deprecation"), "true", "{method}");
        assert!(
            answer.header("link").ends_with("rel=\"successor-version\"")
                && !answer.header("sunset").is_empty()
        );
        let current = node.ask(method, "/v2/orders/7", &[host], "").await;
        assert_eq!(current.status.as_u16(), expected, "{method}");
        assert_eq!(current.header("deprecation"), "", "{method}");
    }
    let large = node
        .ask(
            "POST",
            "/v1/orders/7",
            &[JSON, bearer],
            &"x".repeat(2 << 20),
        )
        .await;
    assert_eq!(large.status.as_u16(), 413);
    assert_eq!(large.header("deprecation"), "true");
    node.control
        .key(&ConsumerKey {
            daily_limit: 1,
            ..key(&api, "once")
        })
        .await;
    let spent = [host, JSON, ("authorization", "Bearer once")];
    assert_eq!(
        node.ask("POST", "/v1/orders/7", &spent, r#"{"a":1}"#)
            .await
            .status,
        202
    );
    let limited = node.ask("POST", "/v1/orders/7", &spent, r#"{"a":1}"#).await;
    assert_eq!(limited.status.as_u16(), 429, "{}", limited.text);
    assert_eq!(limited.header("deprecation"), "true", "{}", limited.text);
    assert!(
        limited
            .header("link")
            .ends_with("rel=\"successor-version\"")
            && !limited.header("sunset").is_empty()
    );
    let current = node
        .ask("POST", "/v2/orders/7", &[JSON, bearer], "{}")
        .await;
    assert_eq!(current.status.as_u16(), 202);
    assert_eq!(current.header("deprecation"), "");
    assert_eq!(current.header("sunset"), "");
    node.stop().await;
}

#[tokio::test]
async fn a_retired_version_is_gone_and_points_to_the_active_one() {
    let node = Node::start().await;
    node.control.flow(&api_flow("ret")).await;
    let mut api = api("ret", "POST", "orders");
    api.versions[0].status = "retired".to_owned();
    node.control.api(&api).await;
    let answer = node.ask("POST", "/orders", &[JSON], "{}").await;
    let body = answer.json();
    assert_eq!(answer.status.as_u16(), 410);
    assert_eq!(&body["currentVersion"], &json!(null));
    assert_eq!(&body["currentUrl"], &json!(null));

    api.versions.push(version(2, "ret"));
    node.control.api(&api).await;
    let answer = node
        .ask("POST", "/v1/orders", &[JSON, ("host", "kanat.test")], "{}")
        .await;
    let body = answer.json();
    assert_eq!(answer.status, 410);
    assert_eq!(body["currentVersion"], "v2");
    assert_eq!(body["currentUrl"], "http://kanat.test/v2/orders");
    assert_eq!(body["error"], "version v1 of this API is retired: call v2");
    assert_eq!(node.ask("POST", "/orders", &[JSON], "{}").await.status, 202);
    // Where none is active, it is the one that calls without a version reach, as the API says of
    // itself.
    api.versions[1].status = "deprecated".to_owned();
    node.control.api(&api).await;
    assert_eq!(
        node.ask("POST", "/v1/orders", &[JSON], "{}").await.json()["currentVersion"],
        "v2"
    );
    node.stop().await;
}

#[tokio::test]
async fn a_node_without_plans_says_nothing_of_what_there_is() {
    let node = Node::without_plans().await;
    let answer = node.ask("POST", "/v1/orders", &[JSON], "{}").await;
    assert_eq!(answer.status.as_u16(), 503);
    assert_eq!(answer.header("retry-after"), "1");
    node.stop().await;
}

#[tokio::test]
async fn keys_open_their_own_api_while_they_are_good() {
    let node = Node::start().await;
    node.control.flow(&api_flow("keys")).await;
    let mut api = api("keys", "POST", "keyed");
    api.auth = "api_key".to_owned();
    node.control.api(&api).await;
    let good = key(&api, "good");
    node.control.key(&good).await;
    node.control
        .key(&ConsumerKey {
            suspended: true,
            ..key(&api, "suspended")
        })
        .await;
    node.control
        .key(&ConsumerKey {
            expires_at: 1,
            ..key(&api, "expired")
        })
        .await;
    node.control
        .key(&ConsumerKey {
            api_id: "api_other".into(),
            ..key(&api, "other")
        })
        .await;

    let ask = async |key: &str| {
        node.ask("POST", "/keyed", &[JSON, ("authorization", key)], "{}")
            .await
    };
    for refused in [
        "Bearer suspended",
        "Bearer expired",
        "Bearer other",
        "Bearer nobody",
        "Basic good",
        "good",
        "Bearer ",
    ] {
        let answer = ask(refused).await;
        assert_eq!(answer.status.as_u16(), 401, "{refused}");
        assert_eq!(
            answer.json()["code"].as_str(),
            Some("UNAUTHENTICATED"),
            "{refused}"
        );
        assert!(
            answer.header("www-authenticate").starts_with("Bearer"),
            "{refused}"
        );
    }
    let answer = ask("bearer good").await;
    assert_eq!(answer.status, 202);
    let id = answer.id("accepted");
    let content = node
        .log
        .content(&super::super::node::tenant(), &id)
        .await
        .unwrap()
        .unwrap();
    let trigger: serde_json::Value = serde_json::from_slice(&content.request).unwrap();
    assert_eq!(&trigger["headers"]["authorization"], &json!(null));
    assert_eq!(&trigger["api"]["consumer"], &json!("shop"));
    assert_eq!(node.stored(), 1);
    // The same key with another text.
    node.control
        .key(&ConsumerKey {
            id: good.id.clone(),
            ..key(&api, "better")
        })
        .await;
    assert_eq!(ask("Bearer good").await.status.as_u16(), 401);
    assert_eq!(ask("Bearer better").await.status.as_u16(), 202);
    node.stop().await;
}
