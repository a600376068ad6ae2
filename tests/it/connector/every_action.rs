//! Every action of every entry of the catalog, run as a step with params made of its request
//! schema, against a server that checks what arrives: method, path, each param in its place, and
//! the credentials.

mod arrival;
pub mod sample;

use std::fmt::Write;

use kanat_tests::target::{ReceivedRequest, Reply};
use kanat_tests::{FakeTarget, Rest, TestApp, until};
use serde_json::{Map, Value, json};

use arrival::check;

const TOKEN: &str = "granted-by-oauth2";

/// Gives tokens at `/token`, and answers everything else as the most demanding of the providers
/// does.
fn provide(call: &ReceivedRequest, _: usize) -> Reply {
    let body = match call.path.as_str() {
        "/token" => {
            json!({
                "access_token": TOKEN,
                "token_type": "Bearer",
                "expires_in": 3600,
                "refresh_token": "r",
            })
        }
        _ => json!({"ok": true}),
    };
    Reply::Answer(
        200,
        vec![("content-type".to_owned(), "application/json".to_owned())],
        body.to_string(),
    )
}

/// A config of all that an entry asks for, with the addresses of `provider`.
fn config(entry: &Value, provider: &str) -> Value {
    let schema = &entry["configSchema"];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut config = Map::new();
    for name in required.iter().map(|name| name.as_str().unwrap()) {
        config.insert(
            name.to_owned(),
            sample::of(&schema["properties"][name], name),
        );
    }
    config.insert("base_url".to_owned(), base(entry, provider).into());
    match entry["authentication"].as_str().unwrap() {
        "oauth2" => {
            config.insert("client_id".to_owned(), "client".into());
            config.insert("client_secret".to_owned(), "client-secret".into());
            config.insert(
                "authorization_url".to_owned(),
                format!("{provider}/authorize").into(),
            );
            config.insert("token_url".to_owned(), format!("{provider}/token").into());
        }
        "configurable" => {
            config.insert("auth".to_owned(), "bearer".into());
            config.insert("token".to_owned(), "configured-token".into());
        }
        _ => {}
    }
    Value::Object(config)
}

fn base(entry: &Value, provider: &str) -> String {
    format!("{provider}/at/{}", entry["id"].as_str().unwrap())
}

/// A person agrees, and comes back with a code.
async fn connect(api: &Rest, id: &str) {
    let path = format!("/api/v1/connectors/oauth/start?catalogId={id}&instanceName={id}");
    let state = api.get(&path).await.expect(200)["state"]
        .as_str()
        .unwrap()
        .to_owned();
    let back = format!("/inbound/oauth/callback?code=agreed&state={state}");
    api.without_key().get(&back).await.expect(200);
}

/// Runs all actions of an entry, in one message.
async fn run(api: &Rest, entry: &Value, provider: &FakeTarget) -> usize {
    let id = entry["id"].as_str().unwrap();
    let config = config(entry, &provider.url());
    api.post(
        "/api/v1/connectors/instances",
        &json!({"catalogId": id, "name": id, "config": config}),
    )
    .await
    .expect(201);
    let by_oauth2 = entry["authentication"] == "oauth2";
    if by_oauth2 {
        connect(api, id).await;
    }
    let actions = api
        .get(&format!("/api/v1/connectors/catalog/{id}/actions"))
        .await
        .expect(200)["data"]
        .clone();
    let mut yaml = format!(
        r"flow: all-of-{id}
version: 1
source: {{ trigger: webhook }}
steps:
"
    );
    let mut expected = Vec::new();
    for action in actions.as_array().unwrap() {
        let slug = action["slug"].as_str().unwrap();
        let params = sample::of(&action["requestSchema"], slug);
        writeln!(
            yaml,
            "  - {{ name: {slug}, action: {id}.{slug}, connector: {id}, params: {params} }}"
        )
        .unwrap();
        expected.push((action, params));
    }
    yaml.push_str("on_error: { retry: 0x fixed(1s) }\n");
    let (_, url) = api.deployed(&yaml).await;
    let message = api.webhook(&url, &json!({})).await;
    let message = until(&format!("the message of {id} ends"), || async {
        let message = api.message(&message).await;
        ["delivered", "dead_letter"]
            .contains(&message["status"].as_str().unwrap())
            .then_some(message)
    })
    .await;
    assert_eq!(message["status"], "delivered", "{id}: {}", message["error"]);

    let root = format!("/at/{id}");
    let calls: Vec<ReceivedRequest> = provider
        .received()
        .into_iter()
        .filter(|call| call.path.starts_with(&root))
        .collect();
    assert_eq!(calls.len(), expected.len(), "{id}");
    let token = by_oauth2.then_some(TOKEN);
    for (call, (action, params)) in calls.iter().zip(&expected) {
        check(call, &root, action, params);
        arrival::check_credentials(call, &entry["configSchema"], &config, token);
    }
    calls.len()
}

#[tokio::test]
async fn every_action_of_every_entry_can_be_called_and_puts_its_params_where_they_belong() {
    let app = TestApp::start().await;
    let provider = FakeTarget::scripted(provide).await;
    let entries = app
        .api
        .get("/api/v1/connectors/catalog?limit=100")
        .await
        .expect(200)["data"]
        .clone();
    let entries = entries.as_array().unwrap();
    assert!(entries.len() >= 16);
    let calls =
        futures::future::join_all(entries.iter().map(|entry| run(&app.api, entry, &provider)))
            .await;
    println!(
        "{} actions of {} entries",
        calls.iter().sum::<usize>(),
        entries.len()
    );
}
