//! `--url` at a server that is no Kanat service: no command takes its answers for a service's.

use kanat_tests::cli::Cli;
use kanat_tests::target::{Reply, ok};
use kanat_tests::{FakeTarget, TestApp};

const STRANGER: &str = "the answer does not come from a Kanat service; is --url right?";

#[tokio::test]
async fn answers_of_another_server_are_no_success() {
    let json = FakeTarget::scripted(|_, _| ok()).await;
    let empty = FakeTarget::scripted(|_, _| Reply::Answer(200, Vec::new(), String::new())).await;
    let none = FakeTarget::scripted(|_, _| Reply::Answer(404, Vec::new(), String::new())).await;
    let list = FakeTarget::scripted(|_, _| {
        let id = vec![("x-request-id".to_owned(), "r1".to_owned())];
        Reply::Answer(200, id, "[]".to_owned())
    })
    .await;
    for server in [&json, &empty, &none] {
        let cli = Cli::new()
            .with("KANAT_URL", &server.url())
            .with("KANAT_API_KEY", "kanat_ak_elsewhere");
        for command in [
            "flow list",
            "lookup create colours",
            "flow delete flw_1 --yes",
            "message retry msg_1",
            "whoami",
        ] {
            let arguments: Vec<_> = command.split(' ').collect();
            let told = cli.run(&arguments).await.fails(1);
            assert!(told.contains(STRANGER), "{command}: {told}");
        }
    }
    let cli = Cli::new()
        .with("KANAT_URL", &list.url())
        .with("KANAT_API_KEY", "kanat_ak_elsewhere");
    let told = cli.run(&["flow", "list"]).await.fails(1);
    assert!(told.contains(STRANGER), "{told}");
}

#[tokio::test]
async fn every_answer_of_a_service_has_the_id_of_its_request() {
    let app = TestApp::start().await;
    let made = app
        .api
        .post(
            "/api/v1/lookup-tables",
            &serde_json::json!({ "name": "colours" }),
        )
        .await;
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/lookup-tables/{id}");
    for (method, path, succeeds) in [
        ("DELETE", path.as_str(), true),
        ("DELETE", path.as_str(), false),
        ("GET", "/api/v1/nothing", false),
        ("DELETE", "/api/v1/search", false),
        ("GET", "/nothing", false),
        ("GET", "/", false),
    ] {
        let request = app.api.request(method, path);
        let answer = kanat_tests::Rest::send(request).await;
        assert_eq!(answer.status < 300, succeeds, "{method} {path}");
        assert!(!answer.header("x-request-id").is_empty(), "{method} {path}");
    }
    let refused = app.api.without_key().get("/api/v1/flows").await;
    assert_eq!(refused.status, 401);
    assert!(!refused.header("x-request-id").is_empty());
}
