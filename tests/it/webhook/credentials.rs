//! Credentials of senders: a run may use them, also after a restart; nobody reads them.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use kanat_tests::target::status;
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;

const HEADERS: [&str; 16] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
    "x-gitlab-token",
    "x-shop-token",
    "x-secret",
    "x-password",
    "api-token",
    "x-vault-token",
    "x-session-id",
    "x-hub-signature-256",
    "x-client-credential",
];

fn value(name: &str) -> String {
    format!("s3cret-of-{name}")
}

fn flow(name: &str, mapping: &str) -> String {
    let target =
        "target: {connector: erp, endpoint: /in, method: POST}\non_error: {retry: 0x fixed(1s)}\n";
    format!(
        r#"flow: {name}
version: 1
source: {{trigger: webhook}}
{target}ordering_key: 'trigger.headers["x-session-id"]'
mapping: {mapping}
"#
    )
}

#[tokio::test]
async fn credentials_of_senders_are_used_by_runs_before_and_after_a_restart_and_stand_nowhere() {
    let mut app = TestApp::start().await;
    let calls = AtomicUsize::new(0);
    let target = FakeTarget::scripted(move |_, _| {
        status(if calls.fetch_add(1, Relaxed) < 2 {
            500
        } else {
            200
        })
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let fields =
        HEADERS.map(|name| format!("{}: 'trigger.headers[\"{name}\"]'", name.replace('-', "_")));
    let reads = format!(
        "{{{}, q: trigger.query.api_key, t: trigger.query.token}}",
        fields.join(", ")
    );
    let (_, reading) = app.api.deployed(&flow("reads", &reads)).await;
    let (_, other) = app
        .api
        .deployed(&flow("reads-not", "{a: 'trigger.headers[\"x-source\"]'}"))
        .await;
    let mut sender = app.api.without_key().with_header("x-source", "kanat");
    for name in HEADERS {
        sender = sender.with_header(name, &value(name));
    }
    let mut ids = Vec::new();
    for url in [&reading, &other] {
        let url = format!("{url}?api_key={}&token={}", value("query"), value("token"));
        let accepted = sender.post(&url, &json!({"n": 1})).await.expect(202);
        ids.push(accepted["messageId"].as_str().unwrap().to_owned());
    }
    let mut seen = Vec::new();
    for id in &ids {
        seen.push(app.api.message_becomes(id, "dead_letter").await.to_string());
    }
    app.kill().await;
    for (path, bytes) in app.files() {
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("s3cret-of-"), "{}", path.display());
    }
    app.restart().await;
    target.forget();
    for id in &ids {
        app.api
            .post(&format!("/api/v1/messages/{id}/retry"), &json!({}))
            .await
            .expect(202);
        seen.push(app.api.message_becomes(id, "delivered").await.to_string());
    }
    let again = app
        .api
        .post(&format!("/api/v1/messages/{}/replay", ids[0]), &json!({}))
        .await
        .expect(202);
    seen.push(
        app.api
            .message_becomes(again["messageId"].as_str().unwrap(), "delivered")
            .await
            .to_string(),
    );
    let received = target.arrivals(3).await;
    for run in [&received[0], &received[2]] {
        let sent = run.json();
        for name in HEADERS {
            assert_eq!(sent[name.replace('-', "_")], value(name), "{sent}");
        }
        assert_eq!(sent["q"], value("query"));
        assert_eq!(sent["t"], value("token"));
    }
    assert_eq!(received[1].json(), json!({"a": "kanat"}));
    seen.push(app.api.get("/api/v1/messages?flowId=-").await.text);
    seen.push(app.log());
    for text in seen {
        assert!(!text.contains("s3cret-of-"), "{text}");
    }
}

#[tokio::test]
async fn an_adapter_is_given_the_credentials_of_the_sender_and_its_console_shows_none() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let code = "function transform(input, context) { \
                console.log(context.trigger.headers['x-vault-token']); return {got: \
                context.trigger.headers['x-vault-token']}; }";
    let body = json!({"name": "shows", "type": "transform", "code": code});
    app.api.post("/api/v1/adapters", &body).await.expect(201);
    let yaml = r"flow: adapted
version: 1
source: {trigger: webhook}
adapter: shows
target: {connector: erp, endpoint: /in, method: POST}
";
    let (_, url) = app.api.deployed(yaml).await;
    let sender = app
        .api
        .without_key()
        .with_header("x-vault-token", "s3cret-of-the-vault");
    let accepted = sender.post(&url, &json!({"n": 1})).await.expect(202);
    let message = app
        .api
        .message_becomes(accepted["messageId"].as_str().unwrap(), "delivered")
        .await
        .to_string();
    assert_eq!(
        target.received()[0].json(),
        json!({"got": "s3cret-of-the-vault"})
    );
    assert!(
        !message.contains("s3cret") && message.contains("********"),
        "{message}"
    );
}

#[tokio::test]
async fn no_error_shows_the_beginning_of_a_long_credential() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let flow = flow("numbers", "{a: 'trigger.headers.authorization | number'}");
    let (_, url) = app.api.deployed(&flow).await;
    let credential = format!("Bearer eyJhbGciOiJSUzI1NiJ9.{}", "part-".repeat(190));
    let sender = app.api.without_key();
    let sender = sender.with_header("authorization", &credential);
    let accepted = sender.post(&url, &json!({"n": 1})).await.expect(202);
    let id = accepted["messageId"].as_str().unwrap();
    let message = app.api.message_becomes(id, "dead_letter").await.to_string();
    assert!(
        message.contains("given") && !message.contains("eyJ") && !message.contains("part-"),
        "{message}"
    );
}
