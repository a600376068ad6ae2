//! Lists: filters, pages, cursors, and whose messages they show.

use kanat_tests::rest::text as text_of;
use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;
use tokio::task::JoinSet;

const FLOW: &str = r"flow: listed
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
when: source.n < 100
on_error:
  retry: 0x fixed(1s)
";

#[tokio::test]
async fn filters_by_status_time_and_text_newest_first() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|received, _| {
        if received.json()["n"] == 3 {
            status(400)
        } else {
            ok()
        }
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let mut ids = Vec::new();
    for (n, word) in [
        (1, "pear"),
        (2, "100% plum"),
        (3, "apple"),
        (100, "filtered"),
    ] {
        ids.push(
            app.api
                .webhook(&url, &json!({ "n": n, "word": word }))
                .await,
        );
    }
    for (id, status) in ids
        .iter()
        .zip(["delivered", "delivered", "dead_letter", "filtered"])
    {
        app.api.message_becomes(id, status).await;
    }
    let list = |query: String| {
        let api = app.api.clone();
        let path = format!("/api/v1/messages?flowId={flow}{query}");
        async move {
            let body = api.get(&path).await.expect(200);
            let found = body["data"].as_array().unwrap().iter();
            found
                .map(|m| m["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        }
    };
    let newest_first: Vec<_> = ids.iter().rev().cloned().collect();
    assert_eq!(list(String::new()).await, newest_first);
    assert_eq!(
        list("&status=delivered".to_owned()).await,
        [ids[1].clone(), ids[0].clone()]
    );
    assert_eq!(
        list("&status=dead_letter".to_owned()).await,
        [ids[2].clone()]
    );
    assert_eq!(list("&search=pear".to_owned()).await, [ids[0].clone()]);
    assert_eq!(
        list("&search=100%25".to_owned()).await,
        [ids[1].clone()],
        "a percent sign is no wildcard"
    );
    assert_eq!(list(format!("&search={}", ids[2])).await, [ids[2].clone()]);
    assert_eq!(
        list("&limit=2&offset=1".to_owned()).await,
        newest_first[1..3]
    );
    let received_at = app.api.message(&ids[3]).await["receivedAt"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        list(format!("&since={received_at}"))
            .await
            .contains(&ids[3])
    );
    assert_eq!(
        list("&since=2100-01-01T00:00:00Z".to_owned()).await,
        Vec::<String>::new()
    );

    let details = app
        .api
        .get("/api/v1/messages")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(details[0]["field"], "flowId");
    let details = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}&status=lost"))
        .await;
    assert_eq!(
        details.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "status"
    );
    app.api
        .get(&format!("/api/v1/messages?flowId={flow}&cursor=later"))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    let both = app
        .api
        .get(&format!(
            "/api/v1/messages?flowId={flow}&cursor=later&offset=1"
        ))
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(both[0]["field"], "cursor");
    assert_eq!(both[1]["field"], "offset");
    let page = app
        .api
        .get(&format!("/api/v1/messages?flowId={flow}&limit=1"))
        .await
        .expect(200);
    assert_eq!(page["pagination"]["total"], 4);
    assert_eq!(page["pagination"]["limit"], 1);
}

#[tokio::test]
async fn a_cursor_walks_every_message_once_while_more_arrive() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let mut before = Vec::new();
    for n in 0..10 {
        before.push(app.api.webhook(&url, &json!({ "n": n })).await);
    }
    let mut seen = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let at = cursor
            .map(|cursor| format!("&cursor={cursor}"))
            .unwrap_or_default();
        let page = app
            .api
            .get(&format!("/api/v1/messages?flowId={flow}&limit=3{at}"))
            .await
            .expect(200);
        seen.extend(
            page["data"]
                .as_array()
                .unwrap()
                .iter()
                .map(|m| m["id"].as_str().unwrap().to_owned()),
        );
        app.api.webhook(&url, &json!({ "n": 99 })).await;
        cursor = page["pagination"]["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    before.reverse();
    assert_eq!(seen, before);
}

#[tokio::test]
async fn another_environment_sees_none_of_it() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&id, "delivered").await;
    let production = app.api.with_header("x-environment", "production");
    production
        .get(&format!("/api/v1/messages/{id}"))
        .await
        .expect_error(404, "NOT_FOUND");
    let list = production
        .get(&format!("/api/v1/messages?flowId={flow}"))
        .await;
    assert!(
        list.status == 404 || list.json()["pagination"]["total"] == 0,
        "{}",
        list.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_of_large_messages_has_fewer_of_them() {
    let app = TestApp::start().await;
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    let (flow, url) = app.api.deployed(FLOW).await;
    // More than a page may have, all together.
    let text = "x".repeat(1_040_000);
    let mut sent = JoinSet::new();
    for n in 0..34 {
        let api = app.api.clone();
        let url = url.clone();
        let payload = json!({ "n": 100 + n, "text": text });
        sent.spawn(async move { api.webhook(&url, &payload).await });
    }
    let mut ids = sent.join_all().await;

    let mut found = Vec::new();
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/api/v1/messages?flowId={flow}&limit=500{cursor}");
        let page = app.api.get(&path).await.expect(200);
        assert_eq!(page["pagination"]["total"], 34);
        let listed = page["data"].as_array().unwrap();
        pages.push(listed.len());
        found.extend(listed.iter().map(|message| text_of(&message["id"])));
        let Some(next) = page["pagination"]["nextCursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(pages, [32, 2]);
    ids.sort();
    found.sort();
    assert_eq!(found, ids);
}
