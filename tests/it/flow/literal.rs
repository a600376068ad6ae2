//! Secrets that are written out in definitions: warned of, used, sealed, and shown to those alone
//! who may change them.

use kanat_tests::target::status;
use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::{Value, json};

const SECRETS: [&str; 4] = [
    "hook-s3cret-of-the-shop",
    "Bearer header-s3cret",
    "param-s3cret-of-the-desk",
    "query-s3cret",
];

const FLOW: &str = r"flow: careless
version: 1
source:
  trigger: webhook
  verify: {scheme: token, secret: hook-s3cret-of-the-shop}
steps:
  - name: tell
    action: http.post
    connector: erp
    params: {path: /step, body: {api_key: param-s3cret-of-the-desk, n: source.n}}
target:
  connector: erp
  endpoint: /in?access_token=query-s3cret
  headers: {Authorization: Bearer header-s3cret}
  method: POST
on_error: {retry: 0x fixed(1s)}
";

const PLACES: [&str; 4] = [
    "source.verify.secret",
    "steps[0].params.body.api_key",
    "target.endpoint",
    "target.headers.Authorization",
];

async fn viewer(app: &TestApp) -> Rest {
    let key = app
        .api
        .post(
            "/api/v1/api-keys",
            &json!({"name": "looks", "role": "viewer"}),
        )
        .await
        .expect(201);
    app.api.with_key(key["key"].as_str().unwrap())
}

fn shows_a_secret(text: &str) -> bool {
    SECRETS
        .iter()
        .any(|secret| text.contains(secret) || text.contains(&secret.replace(' ', "%20")))
}

#[tokio::test]
async fn a_secret_that_is_written_out_is_warned_of_and_masked_for_viewers() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let made = app
        .api
        .post("/api/v1/flows", &json!({ "yamlConfig": FLOW }))
        .await
        .expect(201);
    let path = format!("/api/v1/flows/{}", made["id"].as_str().unwrap());
    let warned: Vec<&Value> = made["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| &warning["path"])
        .collect();
    assert_eq!(warned, PLACES, "{made}");
    assert_eq!(made["yamlConfig"], FLOW);
    app.api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    let shown = app.api.get(&path).await.expect(200);
    assert_eq!(shown["yamlConfig"], FLOW);
    assert_eq!(shown["draft"], false);
    assert!(
        !shows_a_secret(&shown["config"].to_string())
            && !shows_a_secret(&shown["plan"].to_string()),
        "{shown}"
    );

    let viewer = viewer(&app).await;
    for read in [
        "",
        "/versions",
        "/versions/1",
        "/plan",
        "/versions/1/diff?to=draft",
    ] {
        let text = viewer
            .get(&format!("{path}{read}"))
            .await
            .expect(200)
            .to_string();
        assert!(!shows_a_secret(&text), "{read}: {text}");
    }
    let list = viewer.get("/api/v1/flows").await.expect(200);
    assert!(
        !shows_a_secret(&list.to_string()) && list.to_string().contains("********"),
        "{list}"
    );
    let version = app.api.get(&format!("{path}/versions/1")).await.expect(200);
    assert_eq!(version["yamlConfig"], FLOW);

    // What was read may be sent back, by whom it was masked for too, and the deployed text again is
    // no draft.
    let masked = viewer.get(&path).await.expect(200)["yamlConfig"].clone();
    for same in [json!(FLOW), masked] {
        let kept = app
            .api
            .patch(&path, &json!({ "yamlConfig": same }))
            .await
            .expect(200);
        assert_eq!(kept["yamlConfig"], FLOW);
        assert_eq!(kept["draft"], false);
    }
    let other = FLOW.replace("query-s3cret", "other");
    assert_eq!(
        app.api
            .patch(&path, &json!({ "yamlConfig": other }))
            .await
            .expect(200)["draft"],
        true
    );
    assert_eq!(
        app.api
            .patch(&path, &json!({ "yamlConfig": FLOW }))
            .await
            .expect(200)["draft"],
        false
    );
    let tested = app
        .api
        .post(&format!("{path}/test"), &json!({"sampleData": {"n": 1}}))
        .await
        .expect(200);
    assert!(!shows_a_secret(&tested.to_string()), "{tested}");
}

#[tokio::test]
async fn a_secret_that_is_written_out_is_used_by_every_run_and_in_the_clear_nowhere() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::scripted(|received, _| {
        status(if received.path == "/step" { 200 } else { 500 })
    })
    .await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let sender = app
        .api
        .without_key()
        .with_header("x-webhook-token", SECRETS[0]);
    let accepted = sender.post(&url, &json!({"n": 1})).await.expect(202);
    let message = accepted["messageId"].as_str().unwrap().to_owned();
    let dead = app.api.message_becomes(&message, "dead_letter").await;
    assert!(!shows_a_secret(&dead.to_string()), "{dead}");
    let used = |received: &[kanat_tests::target::ReceivedRequest]| {
        let last = received.last().unwrap();
        assert_eq!(last.header("authorization"), SECRETS[1]);
        assert!(
            last.path.ends_with("access_token=query-s3cret"),
            "{}",
            last.path
        );
    };
    used(&target.received());
    assert!(target.received()[0].json()["api_key"] == SECRETS[2]);
    assert_eq!(app.terminate().await, Some(0));
    assert!(!shows_a_secret(&app.log()));
    for (path, bytes) in app.files() {
        assert!(
            !shows_a_secret(&String::from_utf8_lossy(&bytes)),
            "{}",
            path.display()
        );
    }
    app.restart().await;
    target.forget();
    app.api
        .post(&format!("/api/v1/messages/{message}/retry"), &json!({}))
        .await
        .expect(202);
    used(&target.arrivals(1).await);
}

#[tokio::test]
async fn definitions_of_an_earlier_build_are_sealed_at_the_start() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let plain = FLOW.replace("query-s3cret", "{{ source.n }}");
    let (id, _) = app.api.deployed(&plain).await;
    app.terminate().await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/python/unseal_definitions.py");
    let config = app.data_dir().join("config.db");
    let changed = std::process::Command::new("python3")
        .arg(script)
        .arg(config)
        .arg(&plain)
        .status();
    assert!(changed.unwrap().success());
    app.restart().await;
    let viewer = viewer(&app).await;
    let path = format!("/api/v1/flows/{id}");
    kanat_tests::until("it is sealed", || async {
        let text = viewer.get(&path).await.expect(200).to_string();
        (!shows_a_secret(&text)).then_some(())
    })
    .await;
    let shown = app.api.get(&path).await.expect(200);
    assert_eq!(shown["yamlConfig"], plain);
    assert_eq!(shown["draft"], false);
}

#[tokio::test]
async fn what_repeats_a_secret_that_is_written_out_is_masked_too() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let flow = r"flow: repeats
version: 1
description: uses repeated-s3cret
source: {trigger: manual}
target:
  connector: erp
  endpoint: /x
  method: POST
  headers:
    X-Api-Key: &k repeated-s3cret
    X-Alias: *k
    X-Other: repeated-s3cret
";
    let id = app.api.flow(flow).await;
    let path = format!("/api/v1/flows/{id}");
    app.api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    let changed = flow.replace("endpoint: /x", "endpoint: /y");
    let description = json!({"description": "still repeated-s3cret", "yamlConfig": changed});
    app.api.patch(&path, &description).await.expect(200);
    let viewer = viewer(&app).await;
    for read in [
        path.clone(),
        format!("{path}/versions/1"),
        format!("{path}/plan"),
        format!("{path}/versions/1/diff?to=draft"),
        "/api/v1/flows?search=repeats".to_owned(),
    ] {
        let text = viewer.get(&read).await.expect(200).to_string();
        assert!(!text.contains("s3cret"), "{read}: {text}");
    }
}
