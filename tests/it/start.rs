//! The start of a service: what it says of its folder and its owner's key, and what its address
//! answers.

use kanat_tests::app::KEY;
use kanat_tests::cli::Cli;
use kanat_tests::split::Split;
use kanat_tests::{FakeTarget, Rest, TestApp};

use crate::webhook::passthrough;

#[tokio::test]
async fn a_bootstrap_key_that_is_not_used_is_reported_and_so_is_the_folder() {
    let mut app = TestApp::start().await;
    assert!(
        app.log()
            .contains(&format!("the data folder is {}", app.data_dir().display())),
        "{}",
        app.log()
    );
    app.terminate().await;
    app.restart().await;
    assert!(
        !app.log().contains("the bootstrap API key is not used"),
        "{}",
        app.log()
    );
    app.terminate().await;
    let another = format!("kanat_ak_{}", "x".repeat(39));
    app.restart_with(&[("KANAT_BOOTSTRAP_API_KEY", &another)])
        .await;
    assert!(
        app.log().contains("the bootstrap API key is not used"),
        "{}",
        app.log()
    );
    app.api
        .with_key(&another)
        .get("/api/v1/flows")
        .await
        .expect_error(401, "UNAUTHENTICATED");
    app.api.get("/api/v1/flows").await.expect(200);
}

#[tokio::test]
async fn a_lost_owner_key_is_replaced_while_the_service_is_stopped() {
    let mut app = TestApp::start().await;
    let cli = Cli::new();
    let folder = app.data_dir();
    let reset = ["api-key", "reset", "--data-dir", folder.to_str().unwrap()];
    let refused = cli.run(&reset).await.fails(2);
    assert!(
        refused.contains("another kanat process uses the data folder"),
        "{refused}"
    );
    let own = app
        .api
        .post(
            "/api/v1/api-keys",
            &serde_json::json!({"name": "own", "role": "owner"}),
        )
        .await
        .expect(201);

    app.terminate().await;
    let first = cli.run(&reset).await.expect();
    let second = cli.run(&reset).await;
    assert!(second.stderr.contains("is revoked"), "{}", second.stderr);
    let second = second.expect();
    app.restart().await;
    for revoked in [KEY, first.trim()] {
        app.api
            .with_key(revoked)
            .get("/api/v1/flows")
            .await
            .expect_error(401, "UNAUTHENTICATED");
    }
    for good in [second.trim(), own["key"].as_str().unwrap()] {
        app.api
            .with_key(good)
            .get("/api/v1/flows")
            .await
            .expect(200);
    }
    let nowhere = cli
        .run(&["api-key", "reset", "--data-dir", "nowhere"])
        .await
        .fails(2);
    assert!(
        nowhere.contains("there is no config.db in nowhere")
            && !cli.home().join("nowhere").exists(),
        "{nowhere}"
    );
}

#[tokio::test]
async fn webhook_addresses_that_other_machines_cannot_call_are_warned_of() {
    const WARNING: &str =
        "there is no --public-url: webhook addresses begin with http://127.0.0.1:";
    let open = ("KANAT_DATA_PLANE_LISTEN", "0.0.0.0:0");
    let app = TestApp::start_with(&[open]).await;
    assert!(app.log().contains(WARNING), "{}", app.log());
    let app = TestApp::start_with(&[open, ("KANAT_PUBLIC_URL", "https://hooks.example.com")]).await;
    assert!(!app.log().contains(WARNING), "{}", app.log());
}

#[tokio::test]
async fn a_browser_finds_a_page_and_a_program_an_error_with_its_request_id() {
    let app = TestApp::start().await;
    let split = Split::new();
    let control = split.control_plane("one").await;
    for base in [&app.base, &control.base] {
        let api = Rest::new(base, KEY).without_key();
        let page = api
            .with_header("accept", "text/html,*/*;q=0.8")
            .get("/")
            .await;
        assert_eq!(page.status, 200);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert!(
            page.text.contains(&format!("kanat login --url {base}")),
            "{}",
            page.text
        );
        assert!(
            page.text.contains(env!("CARGO_PKG_VERSION")) && page.text.contains("docs"),
            "{}",
            page.text
        );
        for path in [
            "/",
            "/nothing/here",
            "/inbound/nothing",
            "/webhooks/receive/unknown",
            "/api/v1/nothing",
        ] {
            let unknown = api.with_header("x-request-id", "mine").get(path).await;
            assert_eq!(unknown.header("x-request-id"), "mine", "{path}");
            assert_eq!(unknown.expect(404)["requestId"], "mine", "{path}");
        }
    }
    let node = split.node("lonely", &[&control]).await;
    assert_eq!(
        Rest::new(&node.base, KEY)
            .get("/api/v1/flows")
            .await
            .expect(404)["code"],
        "NOT_FOUND"
    );
}

#[tokio::test]
async fn pages_of_allowed_origins_may_call_rest_and_grpc_web_and_others_may_not() {
    let app = TestApp::start_with(&[(
        "KANAT_ALLOWED_ORIGINS",
        "https://app.example.com, http://localhost:3000",
    )])
    .await;
    let grpc = "/kanat.v1.FlowService/ListFlows";
    let asks = |api: &Rest, origin: &str, path: &str| {
        let request = api
            .without_key()
            .request("OPTIONS", path)
            .header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        Rest::send(request.header("access-control-request-headers", "authorization,x-grpc-web"))
    };
    for path in ["/api/v1/flows", grpc] {
        let allowed = asks(&app.api, "https://app.example.com", path).await;
        assert_eq!(allowed.status, 204, "{path}");
        assert_eq!(
            allowed.header("access-control-allow-origin"),
            "https://app.example.com",
            "{path}"
        );
        assert_eq!(
            allowed.header("access-control-allow-headers"),
            "authorization,x-grpc-web",
            "{path}"
        );
        assert!(
            allowed
                .header("access-control-allow-methods")
                .contains("PATCH"),
            "{path}"
        );
        let refused = asks(&app.api, "https://other.example.com", path).await;
        assert_eq!(refused.status, 204, "{path}");
        assert_eq!(refused.header("access-control-allow-origin"), "", "{path}");
    }
    let page = app.api.with_header("origin", "http://localhost:3000");
    let read = page.get("/api/v1/flows").await;
    assert_eq!(
        read.header("access-control-allow-origin"),
        "http://localhost:3000"
    );
    assert!(
        read.header("access-control-expose-headers")
            .contains("etag")
    );
    let refused = page.without_key().get("/api/v1/flows").await;
    assert_eq!(refused.status, 401);
    assert_eq!(
        refused.header("access-control-allow-origin"),
        "http://localhost:3000"
    );
    let call = page
        .request("POST", grpc)
        .header("content-type", "application/grpc-web+proto")
        .body(vec![0; 5]);
    let called = Rest::send(call).await;
    assert_eq!(called.status, 200);
    assert_eq!(
        called.header("access-control-allow-origin"),
        "http://localhost:3000"
    );

    // Nobody may where nothing is said.
    let app = TestApp::start().await;
    let asked = asks(&app.api, "https://app.example.com", "/api/v1/flows").await;
    assert_eq!(asked.status, 204);
    assert_eq!(asked.header("access-control-allow-origin"), "");
    let read = app
        .api
        .with_header("origin", "https://app.example.com")
        .get("/api/v1/flows")
        .await;
    assert_eq!(read.header("access-control-allow-origin"), "");
    assert_eq!(read.header("vary"), "");
}

#[tokio::test]
async fn a_lost_configuration_is_not_replaced_by_an_empty_one_unasked() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("orders")).await;
    let id = app.api.webhook(&url, &serde_json::json!({})).await;
    app.api.message_becomes(&id, "delivered").await;
    app.terminate().await;
    let folder = app.data_dir();
    let lost = ["config.db", "config.db-wal", "config.db-shm", "master.key"];
    for name in lost {
        let _ = std::fs::remove_file(folder.join(name));
    }
    let cli = Cli::new();
    for _ in 0..2 {
        let up = [
            "up",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            folder.to_str().unwrap(),
        ];
        let refused = cli.run(&up).await.fails(1);
        assert!(
            refused.contains("there is no configuration, but the message log has messages"),
            "{refused}"
        );
        assert!(refused.contains("--accept-empty-config"), "{refused}");
    }
    // What a refused start left would be read together with the file that is put back.
    for name in lost {
        assert!(!folder.join(name).exists(), "{name}");
    }
    app.restart_with(&[("KANAT_ACCEPT_EMPTY_CONFIG", "true")])
        .await;
    assert_eq!(
        app.api.get("/api/v1/flows").await.expect(200)["pagination"]["total"],
        0
    );
    app.terminate().await;
    app.restart_with(&[("KANAT_ACCEPT_EMPTY_CONFIG", "false")])
        .await;
}

#[tokio::test]
async fn a_lost_master_key_is_not_replaced_by_another_one() {
    let mut app = TestApp::start().await;
    app.terminate().await;
    let folder = app.data_dir();
    let key = folder.join("master.key");
    let away = folder.join("key-of-the-backup");
    std::fs::rename(&key, &away).unwrap();
    let up = [
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        folder.to_str().unwrap(),
    ];
    let refused = Cli::new().run(&up).await.fails(2);
    assert!(
        refused.contains("master.key is missing: restore it"),
        "{refused}"
    );
    assert!(!key.exists());
    std::fs::rename(&away, &key).unwrap();
    app.restart().await;
}
