//! The egress guard at the processes: what calls of flows and connectors may reach, by which
//! settings.

use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::{Value, json};

use crate::metrics::address;
use crate::webhook::passthrough;

const PUBLIC: (&str, &str) = ("KANAT_PUBLIC_URL", "https://hooks.example.com");
const LOCAL: (&str, &str) = ("KANAT_EGRESS", "local");
const ALLOWED: &str = "local addresses are allowed";

/// Returns what a test of a connector at `base_url` says.
async fn test(api: &Rest, base_url: &str) -> Value {
    let body = json!({
        "catalogId": "http",
        "name": format!("{base_url} of test"),
        "config": {"base_url": base_url},
    });
    let made = api
        .post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
    let path = format!(
        "/api/v1/connectors/instances/{}/test",
        made["id"].as_str().unwrap()
    );
    api.post(&path, &json!({})).await.expect(200)
}

async fn is_refused(api: &Rest, base_url: &str, reason: &str) {
    let told = test(api, base_url).await;
    let message = told["message"].as_str().unwrap();
    assert!(
        told["ok"] == false && message.contains("egress guard") && message.contains(reason),
        "{base_url}: {told}"
    );
}

#[tokio::test]
async fn a_service_with_a_public_url_calls_no_local_address_unless_its_settings_say_so() {
    let target = FakeTarget::start().await;
    let alone = TestApp::start().await;
    assert_eq!(test(&alone.api, &target.url()).await["ok"], true);
    assert_eq!(alone.log().matches(ALLOWED).count(), 1, "{}", alone.log());
    let guarded = TestApp::start_with(&[PUBLIC]).await;
    is_refused(&guarded.api, &target.url(), "a loopback address").await;
    assert!(!guarded.log().contains(ALLOWED), "{}", guarded.log());
    let told = TestApp::start_with(&[PUBLIC, LOCAL]).await;
    assert_eq!(test(&told.api, &target.url()).await["ok"], true);
    let warned = told
        .log()
        .lines()
        .any(|line| line.contains("WARN") && line.contains(ALLOWED));
    assert!(warned, "{}", told.log());
}

#[tokio::test]
async fn no_setting_opens_metadata_services() {
    let app = TestApp::start_with(&[LOCAL, ("KANAT_EGRESS_ALLOW", "0.0.0.0/0,::/0")]).await;
    for address in [
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "[fd00:ec2::254]",
        "[fd20:ce::254]",
    ] {
        is_refused(&app.api, &format!("http://{address}"), "metadata").await;
    }
}

#[tokio::test]
async fn calls_of_users_reach_the_listeners_of_the_process_by_webhook_addresses_alone() {
    let everything = ("KANAT_EGRESS_ALLOW", "0.0.0.0/0,::/0");
    let app = TestApp::start_with(&[everything, ("KANAT_METRICS_LISTEN", "127.0.0.1:0")]).await;
    let metrics = address(&app.log());
    let metrics_port = metrics.rsplit(':').next().unwrap();
    let own_port = app.base.rsplit(':').next().unwrap();
    for port in [metrics_port, own_port] {
        for host in [
            "127.0.0.1",
            "localhost",
            "127.1.2.3",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
        ] {
            is_refused(
                &app.api,
                &format!("http://{host}:{port}"),
                "this service listens there",
            )
            .await;
        }
    }
    // Deliveries go there, so the test of an instance calls it, too.
    let webhooks = format!("http://127.0.0.1:{own_port}/webhooks/receive");
    for base_url in [webhooks.clone(), format!("{webhooks}/")] {
        let tested = test(&app.api, &base_url).await;
        assert_eq!(tested["ok"], true, "{base_url}: {tested}");
    }
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, second) = app.api.deployed(&passthrough("second")).await;
    let (base, path) = second.split_at(second.find("/webhooks/").unwrap());
    app.api.http_instance("next", base).await;
    let first = passthrough("first")
        .replace("erp", "next")
        .replace("/in", path);
    let (_, first) = app.api.deployed(&first).await;
    let id = app.api.webhook(&first, &json!({"n": 1})).await;
    app.api.message_becomes(&id, "delivered").await;
    target.arrivals(1).await;
}
