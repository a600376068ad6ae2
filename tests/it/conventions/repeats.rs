//! Calls with an `Idempotency-Key` that are repeated, also after a crash.

use super::*;

#[tokio::test]
async fn the_same_idempotency_key_gets_the_first_answer_again() {
    let app = TestApp::start().await;
    let api = app.api.with_header("idempotency-key", "create-once");
    let body = json!({"name": "once"});
    let first = api.post("/api/v1/lookup-tables", &body).await.expect(201);
    let again = api.post("/api/v1/lookup-tables", &body).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.expect(201), first);
    let other = api
        .post("/api/v1/lookup-tables", &json!({"name": "other"}))
        .await;
    assert_eq!(other.status, 409, "{}", other.text);
    assert_eq!(
        app.api.get("/api/v1/lookup-tables").await.expect(200)["pagination"]["total"],
        1
    );
}

#[tokio::test]
async fn an_answer_that_is_given_again_shows_no_key() {
    let app = TestApp::start().await;
    app.api
        .deployed(&crate::published_api::quote("price"))
        .await;
    let api = json!({ "flowName": "price", "path": "price", "responseSchema": true });
    let api = app
        .api
        .post("/api/v1/published-apis", &api)
        .await
        .expect(201);
    let keys = format!(
        "/api/v1/published-apis/{}/keys",
        api["id"].as_str().unwrap()
    );
    let calls = [
        ("/api/v1/api-keys", json!({ "name": "ours" })),
        (keys.as_str(), json!({ "consumer": "acme" })),
    ];
    for (n, (path, body)) in calls.into_iter().enumerate() {
        let once = app.api.with_header("idempotency-key", &format!("key-{n}"));
        let mut first = once.post(path, &body).await.expect(201);
        assert!(
            first["key"].as_str().unwrap().starts_with("kanat_"),
            "{first}"
        );
        assert_eq!(first.get("keyShown"), None, "{first}");
        let again = once.post(path, &body).await.expect(201);
        first["key"] = json!(null);
        first["keyShown"] = json!(false);
        assert_eq!(again, first);
    }
}

#[tokio::test]
async fn a_kept_answer_belongs_to_one_credential() {
    let app = TestApp::start().await;
    let admin = json!({ "name": "admin", "role": "admin" });
    let admin = app.api.post("/api/v1/api-keys", &admin).await.expect(201)["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let body = json!({ "name": "once" });
    let owner = app.api.with_header("idempotency-key", "same");
    let first = owner.post("/api/v1/lookup-tables", &body).await.expect(201);
    owner
        .with_key(&admin)
        .post("/api/v1/lookup-tables", &body)
        .await
        .expect_error(409, "ALREADY_EXISTS");
    assert_eq!(
        owner.post("/api/v1/lookup-tables", &body).await.expect(201),
        first
    );
}

#[tokio::test]
async fn an_idempotency_key_has_no_blanks() {
    let app = TestApp::start().await;
    for key in ["a b", "a\tb"] {
        let answer = app
            .api
            .with_header("idempotency-key", key)
            .post("/api/v1/lookup-tables", &json!({"name": "x"}))
            .await;
        answer.expect_error(400, "INVALID_ARGUMENT");
    }
    assert_eq!(
        app.api.get("/api/v1/lookup-tables").await.expect(200)["pagination"]["total"],
        0
    );
}

#[tokio::test]
async fn a_decision_and_a_key_of_a_call_that_was_cut_off_stand_once() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| kanat_tests::target::status(503)).await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = crate::webhook::passthrough("failing") + "on_error: { retry: 0x fixed(1s) }\n";
    let (_, url) = app.api.deployed(&yaml).await;
    let mut dead = Vec::new();
    for n in 0..2 {
        let message = app.api.webhook(&url, &json!({ "n": n })).await;
        app.api.message_becomes(&message, "dead_letter").await;
        dead.push(message);
    }
    let calls = [
        (format!("/api/v1/messages/{}/retry", dead[0]), json!({})),
        (format!("/api/v1/messages/{}/discard", dead[1]), json!({})),
        (
            "/api/v1/api-keys".to_owned(),
            json!({ "name": "reports", "role": "viewer" }),
        ),
        (
            "/api/v1/lookup-tables".to_owned(),
            json!({ "name": "countries" }),
        ),
        (
            "/api/v1/flows".to_owned(),
            json!({ "yamlConfig": crate::webhook::passthrough("made") }),
        ),
    ];
    for (n, (path, body)) in calls.iter().enumerate() {
        app.terminate().await;
        app.restart_with(&[("KANAT_FAILPOINT", "call.done:1")])
            .await;
        let api = app.api.with_header("idempotency-key", &format!("cut-{n}"));
        Rest::try_send(api.request("POST", path).json(body))
            .await
            .unwrap_err();
        app.ended().await;
        app.restart_with(&[("KANAT_FAILPOINT", "")]).await;
        if n == 0 {
            app.api.message_becomes(&dead[0], "dead_letter").await;
        }
        let again = api.post(path, body).await;
        assert!(
            [200, 201, 202].contains(&again.status),
            "{path}: {} {}",
            again.status,
            again.text
        );
    }
    assert_eq!(app.api.message(&dead[0]).await["attempts"], 2);
    assert_eq!(target.received().len(), 3, "each once, and one retry");
    assert_eq!(app.api.message(&dead[1]).await["status"], "discarded");
    let keys = app.api.get("/api/v1/api-keys").await.expect(200);
    let made: Vec<_> = keys["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|key| key["name"] == "reports")
        .collect();
    assert_eq!(made.len(), 1);
    let api = app.api.with_header("idempotency-key", "cut-2");
    let again = api.post("/api/v1/api-keys", &calls[2].1).await.expect(201);
    assert_eq!(&again["keyShown"], &json!(false));
    assert_eq!(&again["key"], &serde_json::Value::Null);
}

#[tokio::test]
async fn a_change_of_a_call_that_was_cut_off_is_made_once() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (flow, _) = app
        .api
        .deployed(&crate::webhook::passthrough("orders"))
        .await;
    let adapter = json!({ "name": "spare", "code": "function transform(input) { return input; }" });
    let adapter = app.api.post("/api/v1/adapters", &adapter).await.expect(201);
    let draft = |text: &str| {
        json!({
            "yamlConfig": format!("# {text}\n{}", crate::webhook::passthrough("orders")),
        })
    };
    let path = format!("/api/v1/flows/{flow}");
    app.api.put(&path, &draft("first")).await.expect(200);
    let adapter = format!("/api/v1/adapters/{}", adapter["id"].as_str().unwrap());
    let calls = [
        ("POST", format!("{path}/deploy"), json!({})),
        (
            "POST",
            format!("{path}/rotate-webhook-token"),
            json!({ "gracePeriod": "1h" }),
        ),
        ("PUT", path.clone(), draft("second")),
        ("DELETE", adapter, json!({})),
    ];
    for (n, (method, path, body)) in calls.iter().enumerate() {
        app.terminate().await;
        app.restart_with(&[("KANAT_FAILPOINT", "call.done:1")])
            .await;
        let api = app
            .api
            .with_header("idempotency-key", &format!("change-{n}"));
        Rest::try_send(api.request(method, path).json(body))
            .await
            .unwrap_err();
        app.ended().await;
        app.restart_with(&[("KANAT_FAILPOINT", "")]).await;
        let flow = app.api.get(&calls[2].1).await.expect(200);
        if n == 0 {
            // Another draft, which the repeat of the deploy is not about.
            app.api
                .put(&calls[2].1, &draft("another"))
                .await
                .expect(200);
        }
        let api = app
            .api
            .with_header("idempotency-key", &format!("change-{n}"));
        let again = Rest::send(api.request(method, path).json(body)).await;
        assert!(
            [200, 204].contains(&again.status),
            "{method} {path}: {} {}",
            again.status,
            again.text
        );
        let now = app.api.get(&calls[2].1).await.expect(200);
        assert_eq!(now["version"], 2, "{method} {path}");
        assert_eq!(now["webhookUrl"], flow["webhookUrl"], "{method} {path}");
        if n > 0 {
            assert_eq!(now["updatedAt"], flow["updatedAt"], "{method} {path}");
        }
    }
    assert_eq!(app.api.get(&path).await.expect(200)["draft"], true);
}
