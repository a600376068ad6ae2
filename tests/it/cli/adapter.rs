//! `kanat adapter`, and what `kanat connector` says of OAuth2 and schemas.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;
use kanat_tests::oauth_provider::OauthProvider;

const CODE: &str = "function transform(input) {\n  console.log('seen');\n  return { sum: input.n \
                    + input.bad.value };\n}";

#[tokio::test]
async fn an_adapter_is_created_tried_changed_and_deleted() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    cli.file("code.js", CODE);
    cli.file("good.json", r#"{"n": 1, "bad": {"value": 2}}"#);
    cli.file("bad.json", r#"{"n": 1}"#);
    let created = cli
        .run(&[
            "adapter",
            "create",
            "sum",
            "--code",
            "code.js",
            "--description",
            "Sums",
        ])
        .await;
    assert_eq!(created.code, Some(0));
    assert_eq!(created.stdout.as_str(), "adapter sum is created\n");
    assert!(
        created.stderr.contains("kanat adapter test sum"),
        "{created:?}"
    );
    let tested = cli
        .run(&["adapter", "test", "sum", "--data", "good.json"])
        .await
        .expect();
    assert!(
        tested.contains("log: seen") && tested.contains("sum: 3"),
        "{tested}"
    );
    let failed = cli
        .run(&["adapter", "test", "sum", "--data", "bad.json"])
        .await
        .fails(1);
    assert!(failed.contains("line 3, column"), "{failed}");
    assert!(
        cli.run(&["adapter", "list"])
            .await
            .expect()
            .contains("Sums")
    );
    assert!(
        cli.run(&["adapter", "show", "sum"])
            .await
            .expect()
            .contains("function transform")
    );
    let templates = cli
        .run(&["adapter", "templates", "-o", "json"])
        .await
        .json();
    let template = templates["data"][0]["id"].as_str().unwrap();
    cli.run(&["adapter", "create", "begun", "--template", template])
        .await
        .expect();
    let unknown = cli
        .run(&["adapter", "create", "x", "--template", "nothing"])
        .await
        .fails(1);
    assert!(unknown.contains("kanat adapter templates"), "{unknown}");
    let updated = cli
        .run(&[
            "adapter",
            "update",
            "sum",
            "--description",
            "Adds",
            "-o",
            "json",
        ])
        .await
        .json();
    assert_eq!(updated["description"], "Adds");
    cli.run(&["adapter", "delete", "sum", "--yes"])
        .await
        .expect();
    assert!(
        cli.run(&["adapter", "show", "sum"])
            .await
            .fails(1)
            .contains("no adapter is called")
    );
}

#[tokio::test]
async fn an_instance_is_connected_and_its_endpoints_are_checked() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    app.api.http_instance("erp", "http://127.0.0.1:9").await;
    cli.run(&["connector", "schemas", "erp"]).await.expect();
    let set = [
        "--set",
        "concurrency=4",
        "--set",
        "requests_per_second=0.5",
        "--set",
        "webhook_secret=7",
        "-o",
        "json",
    ];
    let updated = cli
        .run(&[&["connector", "update", "erp"][..], &set].concat())
        .await
        .json();
    let set = ["concurrency", "requests_per_second"].map(|field| &updated["config"][field]);
    assert_eq!(serde_json::json!(set), serde_json::json!([4, 0.5]));
    let update = |flags: &[&str]| {
        [&["connector", "update", "erp", "-o", "json"][..], flags]
            .concat()
            .join(" ")
    };
    let headers = async |flags: &[&str]| {
        let line = update(flags);
        cli.run(&line.split(' ').collect::<Vec<_>>()).await.json()["config"]["headers"].clone()
    };
    let both = headers(&["--set", "headers.X-Tenant=north", "--set", "headers.X-A=1"]).await;
    assert_eq!(both, serde_json::json!({"X-Tenant": "north", "X-A": "1"}));
    assert_eq!(
        headers(&["--set", "headers.X-A=2"]).await,
        serde_json::json!({"X-Tenant": "north", "X-A": "2"})
    );
    assert_eq!(
        headers(&["--unset", "headers.X-A"]).await,
        serde_json::json!({"X-Tenant": "north"})
    );
    let plain = [
        "connector",
        "create",
        "http",
        "basic",
        "--set",
        "base_url=http://127.0.0.1:9",
        "--set",
        "username=u",
    ];
    cli.run(&[&plain[..], &["--set", "password=p"]].concat())
        .await
        .expect();
    let unsent = cli
        .run(&["connector", "update", "basic", "--set", "token=t"])
        .await;
    assert!(
        unsent
            .stderr
            .contains("token is kept and not sent: auth is basic, not bearer"),
        "{}",
        unsent.stderr
    );
    let refused = cli
        .run(&["connector", "update", "erp", "--set", "webhook_secret=null"])
        .await
        .fails(2);
    assert!(
        refused.contains("--unset webhook_secret takes it away"),
        "{refused}"
    );
    let bare = cli
        .run(&[
            "connector",
            "update",
            "erp",
            "--unset",
            "webhook_secret",
            "-o",
            "json",
        ])
        .await
        .json();
    assert_eq!(bare["config"]["webhook_secret"], serde_json::Value::Null);
    assert!(
        cli.run(&["connector", "check", "erp"])
            .await
            .expect()
            .contains("no endpoint")
    );
    let body = serde_json::json!({"catalogId": "oauth2", "name": "crm", "config": {
        "base_url": "http://127.0.0.1:9/api", "authorization_url": "http://127.0.0.1:9/authorize",
        "token_url": "http://127.0.0.1:9/token", "client_id": "c", "client_secret": "s",
    }});
    app.api
        .post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
    let told = cli.run(&["connector", "connect", "crm"]).await.expect();
    assert!(
        told.contains("http://127.0.0.1:9/authorize?") && told.contains("code_challenge="),
        "{told}"
    );
}

#[tokio::test]
async fn a_client_that_its_provider_refuses_is_reported_when_it_is_made() {
    let app = TestApp::start().await;
    let provider = OauthProvider::start(3600).await;
    let cli = Cli::of(&app);
    let config = provider.config();
    let mut create = vec![
        "connector".to_owned(),
        "create".to_owned(),
        "oauth2".to_owned(),
        "crm".to_owned(),
    ];
    for field in ["base_url", "token_url", "client_id"] {
        create.extend([
            "--set".to_owned(),
            format!("{field}={}", config[field].as_str().unwrap()),
        ]);
    }
    create.extend(
        [
            "--set",
            "client_secret=wrong",
            "--set",
            "grant_type=client_credentials",
        ]
        .map(str::to_owned),
    );
    let create: Vec<&str> = create.iter().map(String::as_str).collect();
    let created = cli.run(&create).await.stderr;
    assert!(
        created.contains("gives no access token: ") && created.contains("invalid_client"),
        "{created}"
    );
    let tested = cli.run(&["connector", "test", "crm"]).await.fails(1);
    assert!(tested.contains("invalid_client"), "{tested}");
}
