//! `GET /connectors/instances/{id}/schemas` and `POST .../schemas/check`: shapes of the answers of
//! endpoints, derived from the answers that arrived.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::{Value, json};

#[tokio::test]
async fn an_instance_that_nobody_called_has_none() {
    let app = TestApp::start().await;
    let id = app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let path = format!("/api/v1/connectors/instances/{id}/schemas");
    assert_eq!(app.api.get(&path).await.expect(200)["data"], json!([]));
    let checked = app
        .api
        .post(&format!("{path}/check"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&checked["changed"], &json!(false));
    assert_eq!(&checked["data"], &json!([]));
}

const FLOW: &str = r"
flow: asks-the-desk
version: 1
source: { trigger: webhook }
steps:
  - { name: ticket, action: support-ticketing.get-ticket, connector: desk, params: { ticketId: 7 } }
on_error: { retry: 0x fixed(1s) }
";

#[tokio::test]
async fn a_changed_answer_is_reported_by_path() {
    let app = TestApp::start().await;
    let changed = Arc::new(AtomicBool::new(false));
    let is_changed = Arc::clone(&changed);
    let desk = FakeTarget::scripted(move |_, _| {
        let ticket = match is_changed.load(Ordering::SeqCst) {
            false => json!({"id": 7, "status": "open", "tags": ["a"], "note": "hush"}),
            true => json!({"id": "7", "status": "open", "tags": ["a"], "priority": "high"}),
        };
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Reply::Answer(200, headers, json!({"ticket": ticket}).to_string())
    })
    .await;
    let config = json!({
        "subdomain": "acme",
        "email": "a@b.example",
        "api_token": "t",
        "base_url": desk.url(),
    });
    let new = json!({"catalogId": "support-ticketing", "name": "desk", "config": config});
    let id = app
        .api
        .post("/api/v1/connectors/instances", &new)
        .await
        .expect(201)["id"]
        .clone();
    let path = format!(
        "/api/v1/connectors/instances/{}/schemas",
        id.as_str().unwrap()
    );
    let (_, url) = app.api.deployed(FLOW).await;

    // A few samples first, then a few of the other shape, until each has been told.
    let seen = async |samples: u64| {
        let message = app.api.webhook(&url, &json!({})).await;
        app.api.message_becomes(&message, "delivered").await;
        until("the node has told of it", || async {
            let found = app.api.get(&path).await.expect(200)["data"][0].clone();
            (found["samples"].as_u64() == Some(samples)).then_some(found)
        })
        .await
    };
    let tracked = seen(1).await;
    assert_eq!(tracked["endpoint"], "GET /api/v2/tickets/{ticketId}");
    assert_eq!(
        tracked["schema"]["properties"]["ticket"]["properties"]["id"],
        json!({"type": "integer"})
    );
    assert!(!tracked.to_string().contains("hush"), "{tracked}");
    seen(2).await;
    let same = app
        .api
        .post(&format!("{path}/check"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&same["changed"], &json!(false));
    assert_eq!(&same["data"][0]["status"], &json!("unchanged"));

    changed.store(true, Ordering::SeqCst);
    seen(3).await;
    let other = app
        .api
        .post(&format!("{path}/check"), &json!({}))
        .await
        .expect(200);
    assert_eq!(other["changed"], true);
    let changes: Vec<_> = other["data"][0]["changes"].as_array().unwrap().clone();
    assert_eq!(
        changes,
        [
            json!({"kind": "type_changed", "path": "ticket.id", "from": "integer", "to": "string"}),
            json!({"kind": "removed", "path": "ticket.note", "from": "string"}),
            json!({"kind": "added", "path": "ticket.priority", "to": "string"}),
        ]
    );
    let after = app
        .api
        .post(&format!("{path}/check"), &json!({}))
        .await
        .expect(200);
    assert_eq!(&after["changed"], &json!(false));
    assert_eq!(&after["data"][0]["status"], &json!("unseen"));
}

const LISTS: &str = r"
flow: lists-users
version: 1
source: { trigger: webhook }
steps:
  - { name: users, action: support-ticketing.list-users, connector: desk, params: {} }
on_error: { retry: 0x fixed(1s) }
";

#[tokio::test]
async fn a_check_asks_the_endpoints_that_need_no_params() {
    let app = TestApp::start().await;
    let state = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let now = Arc::clone(&state);
    let desk = FakeTarget::scripted(move |_, _| match now.load(Ordering::SeqCst) {
        0 => Reply::Answer(
            200,
            Vec::new(),
            json!({"users": [{"id": 7, "name": "Ann", "hush": "s3cret"}]}).to_string(),
        ),
        1 => Reply::Answer(
            200,
            Vec::new(),
            json!({"users": [{"id": "7", "name": "Ann", "role": "end"}]}).to_string(),
        ),
        _ => Reply::Answer(403, Vec::new(), "{}".to_owned()),
    })
    .await;
    let config = json!({
        "subdomain": "acme",
        "email": "a@b.example",
        "api_token": "t",
        "base_url": desk.url(),
    });
    let new = json!({"catalogId": "support-ticketing", "name": "desk", "config": config});
    let id = app
        .api
        .post("/api/v1/connectors/instances", &new)
        .await
        .expect(201)["id"]
        .clone();
    let path = format!(
        "/api/v1/connectors/instances/{}/schemas",
        id.as_str().unwrap()
    );
    let (_, url) = app.api.deployed(LISTS).await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    until("the node has told of it", || async {
        (app.api.get(&path).await.expect(200)["pagination"]["total"] == 1).then_some(())
    })
    .await;
    let check = async || {
        app.api
            .post(&format!("{path}/check"), &json!({}))
            .await
            .expect(200)
    };
    let same = check().await;
    assert_eq!(&same["changed"], &json!(false));
    assert_eq!(&same["data"][0]["status"], &json!("unchanged"));
    let asked = desk.received();
    assert_eq!(asked.len(), 2, "the second was the check");
    assert_eq!(asked[1].method.as_str(), "GET", "the second was the check");
    assert_eq!(
        asked[1].header("authorization"),
        asked[0].header("authorization")
    );

    state.store(1, Ordering::SeqCst);
    let other = check().await;
    let changes: Vec<_> = other["data"][0]["changes"].as_array().unwrap().clone();
    assert_eq!(
        changes,
        [
            json!({"kind": "removed", "path": "users[*].hush", "from": "string"}),
            json!({
                "kind": "type_changed", "path": "users[*].id", "from": "integer", "to": "string",
            }),
            json!({"kind": "added", "path": "users[*].role", "to": "string"}),
        ],
        "{other}"
    );
    state.store(2, Ordering::SeqCst);
    let refused = check().await;
    assert_eq!(refused["data"][0]["status"], "unseen");
    assert_eq!(refused["data"][0]["error"], "it answered 403");
    assert!(!app.log().contains("s3cret"));
}

const PATHS: &str = r#"
flow: asks-several-paths
version: 1
source: { trigger: webhook }
steps:
  - { name: order, action: http.get, connector: erp, params: { path: "orders/{{ source.id }}" } }
  - name: note
    action: http.post
    connector: erp
    params: { path: /notes, body: { id: "{{ source.id }}" } }
on_error: { retry: 0x fixed(1s) }
"#;

#[tokio::test]
async fn each_path_of_an_open_action_is_tracked_by_itself_and_a_check_knows_what_came_a_moment_ago()
{
    let app = TestApp::start().await;
    let changed = Arc::new(AtomicBool::new(false));
    let is_changed = Arc::clone(&changed);
    let erp = FakeTarget::scripted(move |request, _| {
        let body = match (
            request.path.starts_with("/api/orders/"),
            is_changed.load(Ordering::SeqCst),
        ) {
            (true, _) => json!({"total": 1}),
            (false, false) => json!({"note": "a"}),
            (false, true) => json!({"note": "a", "author": "b"}),
        };
        Reply::Answer(
            200,
            vec![("content-type".to_owned(), "application/json".to_owned())],
            body.to_string(),
        )
    })
    .await;
    let id = app
        .api
        .http_instance("erp", &format!("{}/api", erp.url()))
        .await;
    let path = format!("/api/v1/connectors/instances/{id}/schemas");
    let (_, url) = app.api.deployed(PATHS).await;
    let send = async |id: u32| {
        let message = app.api.webhook(&url, &json!({"id": id})).await;
        app.api.message_becomes(&message, "delivered").await;
    };
    let check = async || {
        app.api
            .post(&format!("{path}/check"), &json!({}))
            .await
            .expect(200)
    };
    send(7).await;
    let checked = check().await;
    let endpoints: Vec<_> = checked["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["endpoint"].as_str().unwrap())
        .collect();
    assert_eq!(
        endpoints,
        ["GET /api/orders/{source.id}", "POST /api/notes"],
        "{checked}"
    );
    let statuses = |checked: &Value| -> Vec<Value> {
        checked["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|found| found["status"].clone())
            .collect()
    };
    assert_eq!(
        statuses(&checked),
        ["unchanged", "unchanged"],
        "they have answered: {checked}"
    );
    send(8).await;
    changed.store(true, Ordering::SeqCst);
    send(9).await;
    let checked = check().await;
    assert_eq!(statuses(&checked), ["unchanged", "changed"], "{checked}");
    assert_eq!(
        checked["data"][1]["changes"],
        json!([{"kind": "added", "path": "author", "to": "string"}])
    );
}
