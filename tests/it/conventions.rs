//! Rules of every call of `/api/v1`: ids, tags, bodies and their limits.

mod repeats;

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
async fn malformed_json_is_refused_with_line_and_column() {
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
        json!([{
            "field": "stauts",
            "message": "unknown query parameter; did you mean \"status\"",
        }])
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
