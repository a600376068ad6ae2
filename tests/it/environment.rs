//! Environments: three from the first start, kept apart; more of them, and where their consumers
//! call.

mod bound;
mod delete;
mod protected;
mod retention;
mod variables;

use kanat_tests::split::Split;
use kanat_tests::{Answer, FakeTarget, Rest, Service, TestApp, on_both_databases, until};
use serde_json::json;

on_both_databases!(
    Service;
    the_first_start_makes_three,
    environments_are_made_named_and_given_a_base_url,
    the_first_deploy_of_a_new_environment_is_live_when_it_is_answered,
    the_host_of_a_new_environment_is_its_own_when_it_is_answered,
);

on_both_databases!(
    Service with [("KANAT_PUBLIC_URL", "https://hooks.example.com")];
    an_environment_takes_no_calls_of_others_by_its_base_url,
);

async fn the_first_start_makes_three(service: &Service) {
    let elsewhere = service.elsewhere();
    let api = service.api();
    let body = elsewhere.get("/api/v1/environments").await.expect(200);
    let names: Vec<_> = body["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["development", "staging", "production"]);
    let unknown = api
        .with_header("x-environment", "nowhere")
        .get("/api/v1/flows")
        .await;
    assert!(
        unknown.status == 404 || unknown.status == 400,
        "{}",
        unknown.text
    );
    let near = api
        .with_header("x-environment", "prodction")
        .get("/api/v1/flows")
        .await;
    assert!(
        near.text.contains("did you mean \\\"production\\\""),
        "{}",
        near.text
    );
    near.expect_error(404, "NOT_FOUND");
}

async fn environments_are_made_named_and_given_a_base_url(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let path = "/api/v1/environments";
    let body = json!({"name": "canary", "baseUrl": "https://Canary.example.com/"});
    let made = api.post(path, &body).await.expect(201);
    assert!(
        made["id"].as_str().unwrap().starts_with("env_") && made["isDefault"] == false,
        "{made}"
    );
    assert_eq!(&made["name"], &json!("canary"));
    assert_eq!(&made["baseUrl"], &json!("https://canary.example.com"));
    api.post(path, &json!({"name": "canary"}))
        .await
        .expect_error(409, "ALREADY_EXISTS");
    let shared = api
        .post(
            path,
            &json!({"name": "other", "baseUrl": "https://canary.example.com"}),
        )
        .await;
    assert!(shared.text.contains("\\\"canary\\\""), "{}", shared.text);
    shared.expect_error(409, "ALREADY_EXISTS");
    let one = format!("{path}/{}", made["id"].as_str().unwrap());
    assert_eq!(elsewhere.get(&one).await.expect(200), made);
    assert_eq!(
        elsewhere.get(&format!("{path}/canary")).await.expect(200),
        made
    );
    assert_eq!(
        elsewhere.get(path).await.expect(200)["pagination"]["total"],
        4
    );

    let changed = api.patch(&one, &json!({"name": "early"})).await.expect(200);
    assert_eq!(&changed["name"], &json!("early"));
    assert_eq!(&changed["baseUrl"], &made["baseUrl"]);
    api.with_header("if-match", "\"1\"")
        .put(&one, &json!({"name": "late"}))
        .await
        .expect_error(409, "ABORTED");
    assert!(
        api.put(&one, &json!({"baseUrl": ""}))
            .await
            .expect(200)
            .get("baseUrl")
            .is_none()
    );
    api.patch(
        &format!("{path}/development"),
        &json!({"baseUrl": "https://canary.example.com"}),
    )
    .await
    .expect(200);
    for (body, field) in [
        (json!({"name": ""}), "name"),
        (json!({"name": "env_1"}), "name"),
        (json!({"baseUrl": "canary.example.com"}), "baseUrl"),
        (
            json!({"baseUrl": "https://canary.example.com/v1"}),
            "baseUrl",
        ),
    ] {
        let details = api
            .patch(&one, &body)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field, "{body}");
    }
    api.patch(&format!("{path}/nowhere"), &json!({"name": "x"}))
        .await
        .expect_error(404, "NOT_FOUND");

    // A flow of the new environment is its own.
    let canary = api.with_header("x-environment", "early");
    let flow = canary.flow(&crate::published_api::quote("quotes")).await;
    elsewhere
        .get(&format!("/api/v1/flows/{flow}"))
        .await
        .expect_error(404, "NOT_FOUND");
    let published = json!({"flowName": "quotes", "path": "quotes"});
    canary
        .post("/api/v1/published-apis", &published)
        .await
        .expect(201);

    // Who only builds cannot make places, and a key of one place cannot reach another.
    let key = async |body: serde_json::Value| {
        let made = api.post("/api/v1/api-keys", &body).await.expect(201);
        elsewhere.with_key(made["key"].as_str().unwrap())
    };
    let editor = key(json!({"name": "editor", "role": "editor"})).await;
    editor
        .post(path, &json!({"name": "mine"}))
        .await
        .expect_error(403, "PERMISSION_DENIED");
    editor
        .patch(&one, &json!({"name": "mine"}))
        .await
        .expect_error(403, "PERMISSION_DENIED");
    editor.get(&one).await.expect(200);
    let bound = key(json!({"name": "bound", "role": "admin", "environmentId": "staging"})).await;
    bound
        .post(path, &json!({"name": "mine"}))
        .await
        .expect_error(403, "PERMISSION_DENIED");
    bound
        .patch(&one, &json!({"name": "mine"}))
        .await
        .expect_error(403, "PERMISSION_DENIED");
    bound
        .patch(
            &format!("{path}/staging"),
            &json!({"baseUrl": "https://s.example"}),
        )
        .await
        .expect(200);
}

async fn the_first_deploy_of_a_new_environment_is_live_when_it_is_answered(service: &Service) {
    let target = FakeTarget::start().await;
    service.nodes().await;
    for n in 0..3 {
        let name = format!("qa-{n}");
        let body = json!({ "name": name });
        let made = service.api().post("/api/v1/environments", &body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        assert_eq!(made.header("x-config-applied"), "", "{}", made.text);
        let qa = service.elsewhere().with_header("x-environment", &name);
        qa.http_instance("erp", &target.url()).await;
        let (_, url) = qa.deployed(&crate::webhook::passthrough("first")).await;
        for url in service.webhooks(&url).await {
            qa.webhook(&url, &json!({})).await;
        }
    }
}

async fn the_host_of_a_new_environment_is_its_own_when_it_is_answered(service: &Service) {
    let api = service.api();
    let nodes = service.nodes().await;
    answers(api, "default").await;
    for n in 0..3 {
        let name = format!("qa-{n}");
        let host = format!("{name}.example.com");
        let body = json!({ "name": name, "baseUrl": format!("https://{host}") });
        let made = api.post("/api/v1/environments", &body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        assert_eq!(made.header("x-config-applied"), "");
        for node in &nodes {
            assert_eq!(
                call(node, &host).await.status,
                404,
                "it has no API, and the default environment's is not its"
            );
        }
        let qa = service.elsewhere().with_header("x-environment", &name);
        answers(&qa, &name).await;
        for node in &nodes {
            assert_eq!(call(node, &host).await.expect(200), json!({ "by": name }));
            assert_eq!(
                call(node, "127.0.0.1").await.expect(200),
                json!({ "by": "default" })
            );
        }
    }
}

#[tokio::test]
async fn the_host_of_the_public_url_is_the_default_environments() {
    let mut app = TestApp::start_with(&[("KANAT_PUBLIC_URL", "https://hooks.example.com")]).await;
    public_host_is_the_default_environments(&app.api, &app.base).await;
    app.terminate().await;
    app.restart_with(&[("KANAT_PUBLIC_URL", "https://in.example.com:8443")])
        .await;
    // The service starts with the plans that ran last, which name the former URL.
    until("the former host is nobody's", || async {
        (call(&app.base, "hooks.example.com").await.status == 404).then_some(())
    })
    .await;
    assert_eq!(call(&app.base, "in.example.com:8443").await.status, 200);

    let split = Split::new();
    let public = [("KANAT_PUBLIC_URL", "https://hooks.example.com")];
    let knows = split.control_plane_with("knows", &public).await;
    let other = split.control_plane("other").await;
    let node = split.node("a", &[&other]).await;
    public_host_is_the_default_environments(&knows.api, &node.base).await;
    other
        .api
        .patch(
            "/api/v1/environments/development",
            &json!({ "name": "dev" }),
        )
        .await
        .expect(200);
    assert_eq!(
        call(&node.base, "hooks.example.com").await.expect(200),
        json!({ "by": "default" })
    );
}

async fn public_host_is_the_default_environments(api: &Rest, node: &str) {
    answers(api, "default").await;
    assert_eq!(
        call(node, "any.example.com").await.expect(200),
        json!({ "by": "default" })
    );
    let base = json!({ "baseUrl": "https://staging.example.com" });
    api.patch("/api/v1/environments/staging", &base)
        .await
        .expect(200);
    assert_eq!(
        call(node, "hooks.example.com").await.expect(200),
        json!({ "by": "default" })
    );
    assert_eq!(call(node, "any.example.com").await.status, 404);
}

async fn an_environment_takes_no_calls_of_others_by_its_base_url(service: &Service) {
    let api = service.api();
    let node = service.nodes().await[0];
    answers(api, "default").await;
    let path = "/api/v1/environments";
    let production = json!({ "baseUrl": "https://prd.example.com" });
    api.patch(&format!("{path}/production"), &production)
        .await
        .expect(200);
    let body = json!({ "name": "bound", "role": "admin", "environmentId": "staging" });
    let bound = api.post("/api/v1/api-keys", &body).await.expect(201);
    let bound = service.elsewhere().with_key(bound["key"].as_str().unwrap());
    let set = async |base_url: &str| {
        let body = json!({ "baseUrl": base_url });
        bound.put(&format!("{path}/staging"), &body).await
    };
    for taken in [
        "http://prd.example.com",
        "http://prd.example.com:443",
        "https://PRD.example.com.",
        "https://hooks.example.com",
        "http://hooks.example.com:8443",
    ] {
        set(taken).await.expect_error(409, "ALREADY_EXISTS");
    }
    for wrong in [
        node,
        "http://127.0.0.1",
        "http://[::1]:8080",
        "http://localhost",
        "http://kanat:8080",
    ] {
        let details = set(wrong).await.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], "baseUrl", "{wrong}");
    }
    set("https://stg.example.com").await.expect(200);
    for host in ["hooks.example.com", "127.0.0.1", "localhost"] {
        assert_eq!(
            call(node, host).await.expect(200),
            json!({ "by": "default" })
        );
    }
    assert_eq!(call(node, "prd.example.com").await.status, 404);
    // What has no domain is the default environment's, also where that says so itself.
    let development = json!({ "baseUrl": "http://127.0.0.1:8080" });
    api.patch(&format!("{path}/development"), &development)
        .await
        .expect(200);
}

/// Publishes an API in the environment of `api` whose answer names the environment.
async fn answers(api: &Rest, by: &str) {
    api.deployed(&crate::published_api::quote("who")).await;
    let body = json!({
        "flowName": "who", "path": "who", "authType": "none", "responseSchema": true,
        "responseMapping": { "by": format!("'{by}'") },
    });
    api.post("/api/v1/published-apis", &body).await.expect(201);
}

/// Calls that API at a node, by the host of a request.
async fn call(node: &str, host: &str) -> Answer {
    let request = Rest::new(node, "")
        .without_key()
        .request("POST", "/who")
        .header("host", host);
    Rest::send(request.json(&json!({ "total": 1 }))).await
}
