//! What holds for every call of `/api/v1`: ids, tags, bodies and their limits.

use kanat_tests::split::Split;
use kanat_tests::{FakeTarget, Rest, TestApp, app};
use serde_json::json;

#[tokio::test]
async fn a_request_id_is_taken_or_made_and_comes_back() {
    let app = TestApp::start().await;
    let mine = app
        .api
        .with_header("x-request-id", "order-42")
        .get("/api/v1/flows/flw_nobody")
        .await;
    assert_eq!(mine.header("x-request-id"), "order-42");
    assert_eq!(mine.json()["requestId"], "order-42");
    let made = app.api.get("/api/v1/flows").await;
    assert!(
        made.header("x-request-id").starts_with("req_"),
        "{:?}",
        made.headers
    );
}

#[tokio::test]
async fn a_tag_saves_a_second_read() {
    let app = TestApp::start().await;
    let table = app
        .api
        .post("/api/v1/lookup-tables", &json!({"name": "tagged"}))
        .await
        .expect(201);
    let path = format!("/api/v1/lookup-tables/{}", table["id"].as_str().unwrap());
    let tag = app.api.get(&path).await.header("etag").to_owned();
    assert!(
        tag.starts_with('"') && tag.ends_with('"') && tag.len() > 2,
        "{tag}"
    );
    let again = app.api.with_header("if-none-match", &tag).get(&path).await;
    assert_eq!(again.status, 304);
    assert_eq!(again.text.as_str(), "");
    app.api
        .post(
            &format!("{path}/entries"),
            &json!({"key": "a", "value": "b"}),
        )
        .await
        .expect(201);
    app.api
        .with_header("if-none-match", &tag)
        .get(&path)
        .await
        .expect(200);
}

#[tokio::test]
async fn a_record_that_was_read_may_be_sent_back_as_an_update() {
    let app = TestApp::start().await;
    let created = async |path: &str, body: serde_json::Value| {
        let made = app.api.post(path, &body).await.expect(201);
        format!("{path}/{}", made["id"].as_str().unwrap())
    };
    let config =
        json!({"base_url": "https://erp.example.com", "auth": "bearer", "token": "s3cret"});
    let instance = created(
        "/api/v1/connectors/instances",
        json!({"catalogId": "http", "name": "erp", "config": config}),
    )
    .await;
    let code = "function transform(input, context) { return input; }";
    let adapter =
        json!({"name": "same", "type": "transform", "code": code, "description": "gives back"});
    let adapter = created("/api/v1/adapters", adapter).await;
    app.api.flow(&crate::published_api::quote("quotes")).await;
    let api = created(
        "/api/v1/published-apis",
        json!({"flowName": "quotes", "path": "quotes"}),
    )
    .await;
    let flows = app.api.get("/api/v1/flows").await.expect(200);
    let flow = format!("/api/v1/flows/{}", flows["data"][0]["id"].as_str().unwrap());
    for path in [
        &instance,
        &adapter,
        &api,
        &flow,
        &"/api/v1/environments/staging".to_owned(),
    ] {
        let read = app.api.get(path).await.expect(200);
        for update in [
            app.api.put(path, &read).await,
            app.api.patch(path, &read).await,
        ] {
            let sent = update.expect(200);
            for (field, value) in read.as_object().unwrap() {
                let is_moved = ["etag", "updatedAt", "version", "config", "plan", "versions"]
                    .contains(&field.as_str());
                assert!(
                    is_moved || sent[field] == *value,
                    "{path}: {field} is {} after {value}",
                    sent[field]
                );
            }
        }
        let mut misspelt = read.clone();
        misspelt["descriptoin"] = json!("x");
        let details = app
            .api
            .put(path, &misspelt)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], "descriptoin", "{path}");
    }
    // The record of another one is refused, and null takes a description away.
    let other = app.api.get(&instance).await.expect(200);
    app.api
        .put(
            &instance,
            &json!({"id": "ci_another", "name": other["name"]}),
        )
        .await
        .expect(400);
    assert_eq!(
        app.api
            .put(&adapter, &json!({"description": null}))
            .await
            .expect(200)["description"],
        ""
    );
}

#[tokio::test]
async fn malformed_json_is_told_by_line_and_column() {
    let app = TestApp::start().await;
    let answer = app
        .api
        .raw(
            "POST",
            "/api/v1/lookup-tables",
            "application/json",
            "{\n  \"name\" 7}",
        )
        .await;
    assert!(answer.text.contains("line 2, column 10"), "{}", answer.text);
    answer.expect_error(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_request_that_is_wrong_in_itself_is_judged_after_its_credential() {
    let app = TestApp::start().await;
    let path = "/api/v1/lookup-tables";
    let stranger = app.api.with_key("kanat_ak_nobody_ever_made_this_key");
    let viewer = app
        .api
        .post(
            "/api/v1/api-keys",
            &json!({"name": "reader", "role": "viewer"}),
        )
        .await
        .expect(201);
    let viewer = app.api.with_key(viewer["key"].as_str().unwrap());
    for wrong in ["{\"name\": ", "{\"nmae\": \"x\"}"] {
        stranger
            .raw("POST", path, "application/json", wrong)
            .await
            .expect_error(401, "UNAUTHENTICATED");
        viewer
            .raw("POST", path, "application/json", wrong)
            .await
            .expect_error(403, "PERMISSION_DENIED");
        let told = app
            .api
            .with_header("idempotency-key", "mended")
            .raw("POST", path, "application/json", wrong)
            .await;
        assert!(told.expect_error(400, "INVALID_ARGUMENT")[0]["field"].is_string());
    }
    // What was refused leaves the key free for the request as it was meant.
    app.api
        .with_header("idempotency-key", "mended")
        .post(path, &json!({"name": "x"}))
        .await
        .expect(201);
}

#[tokio::test]
async fn a_body_over_the_limit_is_413_chunked_too() {
    let app = TestApp::start().await;
    let body = json!({ "name": "large", "description": "x".repeat(1 << 20) }).to_string();
    let path = "/api/v1/lookup-tables";
    app.api
        .raw("POST", path, "application/json", body.clone())
        .await
        .expect_error(413, "INVALID_ARGUMENT");
    let chunks = body
        .into_bytes()
        .chunks(64 << 10)
        .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()))
        .collect::<Vec<_>>();
    let chunked = reqwest::Body::wrap_stream(futures::stream::iter(chunks));
    app.api
        .raw("POST", path, "application/json", chunked)
        .await
        .expect_error(413, "INVALID_ARGUMENT");
    assert_eq!(
        app.api.get(path).await.expect(200)["pagination"]["total"],
        0
    );
}

#[tokio::test]
async fn queries_are_checked_like_bodies() {
    let app = TestApp::start().await;
    let unknown = app
        .api
        .get("/api/v1/flows?stauts=active")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(
        unknown,
        json!([{"field": "stauts", "message": "unknown query parameter"}])
    );
    let typed = app
        .api
        .get("/api/v1/flows?limit=many")
        .await
        .expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(typed[0]["field"], "limit");
    let list = app
        .api
        .get("/api/v1/flows?limit=501&offset=3")
        .await
        .expect(200);
    assert_eq!(
        list["pagination"],
        json!({"total": 0, "limit": 500, "offset": 3})
    );
}

#[tokio::test]
async fn an_empty_filter_is_refused_and_never_means_everything() {
    let app = TestApp::start().await;
    let flow = app.api.flow(&crate::webhook::passthrough("filtered")).await;
    for (path, fields) in [
        ("adapters?", ["search", "type"].as_slice()),
        ("batch-jobs?", &["flowId"]),
        ("connectors/catalog?", &["category", "search"]),
        ("connectors/instances?", &["catalogId", "search"]),
        ("flows?", &["status", "search"]),
        ("lookup-tables?", &["search"]),
        (
            "messages?flowId=flw_1&",
            &["status", "since", "until", "search", "cursor"],
        ),
        ("messages/stream?", &["flowId", "status"]),
        ("published-apis?", &["search"]),
        ("schedules?", &["flowId"]),
    ] {
        for field in fields {
            let answer = app.api.get(&format!("/api/v1/{path}{field}=")).await;
            assert_eq!(
                answer.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
                *field,
                "{path}{field}="
            );
        }
    }
    for action in ["retry", "replay"] {
        let everything = json!({ "status": "", "since": "", "until": "", "search": "", "ids": [] });
        for (field, empty) in everything.as_object().unwrap() {
            let body = json!({ "flowId": flow, field: empty });
            let answer = app
                .api
                .post(&format!("/api/v1/messages/{action}"), &body)
                .await;
            assert_eq!(
                answer.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
                *field,
                "{body}"
            );
        }
        let one = json!({ "flowId": flow, "ids": [""] });
        app.api
            .post(&format!("/api/v1/messages/{action}"), &one)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
    }
    // What is no filter may be empty.
    app.api
        .post(
            "/api/v1/lookup-tables",
            &json!({ "name": "x", "description": "" }),
        )
        .await
        .expect(201);
}

#[tokio::test]
async fn a_nul_character_is_refused_by_the_name_of_its_field_on_both_databases() {
    let app = TestApp::start().await;
    let split = Split::new();
    let control = split.control_plane("control").await;
    for api in [&app.api, &control.api] {
        api.http_instance("erp", "http://127.0.0.1:9").await;
        let flow = api.flow(&crate::webhook::passthrough("nul")).await;
        for (path, field) in [
            ("flows/%00", "id"),
            ("flows?search=a%00b", "search"),
            ("lookup-tables?search=%00", "search"),
            ("messages?flowId=%00", "flowId"),
            ("messages/%00", "id"),
            ("connectors/catalog/%00", "catalogId"),
            ("environments/%00", "id"),
            ("published-apis/%00/keys?consumer=%00", "id"),
        ] {
            let answer = api.get(&format!("/api/v1/{path}")).await;
            assert_eq!(
                answer.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
                field,
                "{path}"
            );
        }
        for (path, body, field) in [
            ("lookup-tables", json!({ "name": "\0" }), "name"),
            (
                "lookup-tables/lt_1/entries",
                json!({ "key": "k", "value": "\0" }),
                "value",
            ),
            (
                "messages/replay",
                json!({ "flowId": flow, "ids": ["msg_1", "\0"] }),
                "ids[1]",
            ),
            (
                "flows/validate",
                json!({ "yamlConfig": "flow: \0" }),
                "yamlConfig",
            ),
        ] {
            let answer = api.post(&format!("/api/v1/{path}"), &body).await;
            assert_eq!(
                answer.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
                field,
                "{path}"
            );
        }
        // A stream of records is refused as a whole.
        let job = json!({ "flowId": "\0", "records": [{}] });
        api.post("/api/v1/batch-jobs", &job)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        // In a payload it is a character as any other.
        let run = json!({ "sampleData": { "text": "a\0b" } });
        api.post(&format!("/api/v1/flows/{flow}/test"), &run)
            .await
            .expect(200);
    }
}

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
async fn a_request_has_one_credential() {
    let app = TestApp::start().await;
    for other in [app::KEY, "kanat_ak_of_nobody"] {
        let request = app
            .api
            .request("GET", "/api/v1/flows")
            .header("authorization", format!("Bearer {other}"));
        Rest::send(request)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
    }
}

#[tokio::test]
async fn health_and_readiness_are_public() {
    let app = TestApp::start().await;
    let anyone = app.api.without_key();
    assert!(anyone.get("/health").await.expect(200)["status"].is_string());
    anyone.get("/ready").await.expect(200);
    let head = Rest::send(anyone.request("HEAD", "/health")).await;
    assert_eq!(head.status, 200);
    assert_eq!(head.text.as_str(), "");
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
