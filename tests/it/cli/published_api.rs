//! `kanat api`, `kanat key` and `kanat version`: published, opened, called and ended from a shell.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;
use serde_json::Value;

use crate::published_api::quote;

#[tokio::test]
async fn an_api_is_published_and_called_from_the_shell() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let cli = Cli::of(&app);
    let said = cli
        .run(&[
            "api",
            "create",
            "quotes",
            "shops/{shop}/quotes",
            "--name",
            "quotes",
        ])
        .await
        .stderr;
    assert!(said.contains("kanat key create quotes"), "{said}");
    assert!(
        cli.run(&["api", "list"])
            .await
            .expect()
            .contains("shops/{shop}/quotes")
    );
    let made = cli
        .run(&[
            "key", "create", "quotes", "acme", "--rate", "5", "-o", "json",
        ])
        .await
        .json();
    assert_eq!(made["rateLimitPerSecond"], 5);
    let key = made["key"].as_str().unwrap();

    let call = ["api", "call", "quotes", "--param", "shop=a/b", "--key"];
    let accepted = cli
        .run(&[&call[..], &[key, "-o", "json"]].concat())
        .await
        .json();
    app.api
        .message_becomes(accepted["messageId"].as_str().unwrap(), "delivered")
        .await;
    let refused = cli
        .run(&[&call[..], &["kanat_ck_wrong"]].concat())
        .await
        .fails(1);
    assert!(
        refused.contains("kanat key create") && !refused.contains("kanat login"),
        "{refused}"
    );
    assert!(
        cli.run(&["api", "call", "quotes", "--key", key])
            .await
            .fails(2)
            .contains("--param shop=VALUE")
    );

    let rotated = cli
        .run(&[
            "key", "rotate", "quotes", "acme", "--grace", "24h", "-o", "json",
        ])
        .await
        .json();
    assert_eq!(rotated["rotatedFrom"], made["id"]);
    let rotate = ["key", "rotate", "quotes", "acme"];
    let asked = cli.run(&rotate).await.fails(1);
    assert!(
        asked.contains("at once") && asked.contains("--yes"),
        "{asked}"
    );
    let rotated = cli.run(&[&rotate[..], &["--yes"]].concat()).await;
    assert!(
        rotated.stderr.contains("the former key is taken no more"),
        "{}",
        rotated.stderr
    );
    let rotated = cli.run(&[&rotate[..], &["--grace", "1h"]].concat()).await;
    assert!(
        rotated.stderr.contains("the former key is taken until 20"),
        "{}",
        rotated.stderr
    );
    assert!(
        cli.run(&["key", "suspend", "quotes", "acme"])
            .await
            .expect()
            .contains("inactive")
    );
    assert!(
        cli.run(&["key", "resume", "quotes", "acme"])
            .await
            .expect()
            .contains("active")
    );
    let second = cli
        .run(&["key", "create", "quotes", "acme", "-o", "json"])
        .await
        .json();
    for command in [
        &["key", "revoke", "quotes", "acme", "--yes"][..],
        &["key", "suspend", "quotes", "acme"],
    ] {
        let which = cli.run(command).await.fails(1);
        assert!(
            which.contains("2 keys of quotes") && which.contains(second["id"].as_str().unwrap()),
            "{which}"
        );
    }
    let plain = cli
        .run(&["key", "create", "quotes", "shell"])
        .await
        .expect();
    assert!(
        plain.starts_with("kanat_ck_") && plain.lines().count() == 1,
        "{plain}"
    );
    let revoke = ["key", "revoke", "quotes", made["id"].as_str().unwrap()];
    assert!(cli.run(&revoke).await.fails(1).contains("--yes"));
    cli.run(&[&revoke[..], &["--yes"]].concat()).await.expect();
    let keys = cli.run(&["key", "list", "quotes"]).await.expect();
    assert!(keys.contains("inactive") && keys.contains("acme"), "{keys}");

    let said = cli
        .run(&["version", "create", "quotes", "v2", "--response", "source"])
        .await
        .expect();
    assert!(said.contains("/v2/shops/{shop}/quotes"), "{said}");
    cli.run(&[
        "version",
        "deprecate",
        "quotes",
        "v1",
        "--sunset",
        "2099-12-31",
    ])
    .await
    .expect();
    assert!(
        cli.run(&["version", "retire", "quotes", "v1"])
            .await
            .fails(1)
            .contains("2099-12-31")
    );
    let early = ["version", "retire", "quotes", "v1", "--force"];
    let asked = cli.run(&early).await.fails(1);
    assert!(
        asked.contains("although it was to answer until 2099-12-31") && asked.contains("--yes"),
        "{asked}"
    );
    cli.run(&[&early[..], &["--yes"]].concat()).await.expect();
    assert!(
        cli.run(&["version", "list", "quotes"])
            .await
            .expect()
            .contains("retired")
    );
    assert!(
        cli.run(&["api", "show", "quotes"])
            .await
            .expect()
            .contains("2099-12-31")
    );
    assert!(
        cli.run(&["api", "document", "quotes"])
            .await
            .expect()
            .contains("\"openapi\": \"3.1.0\"")
    );
    let moved = ["api", "update", "quotes", "--path", "offers"];
    let refused = cli.run(&moved).await.fails(1);
    assert!(refused.contains("get 404 from now on"), "{refused}");
    let method = ["api", "update", "quotes", "--method", "PUT"];
    let refused = cli.run(&method).await.fails(1);
    assert!(refused.contains("get 405 from now on"), "{refused}");
    let update = [
        "api",
        "update",
        "quotes",
        "--deadline",
        "5s",
        "--on-timeout",
        "discard",
        "--response-status",
        "201",
    ];
    let cors = ["--cors-origin", "https://shop.example", "-o", "json"];
    let updated = cli.run(&[&update[..], &cors[..]].concat()).await.json();
    assert_eq!(updated["deadline"], "5s");
    assert_eq!(updated["onTimeout"], "discard");
    assert_eq!(updated["responseStatus"], 201);
    assert_eq!(updated["cors"]["origins"][0], "https://shop.example");
    assert!(
        cli.run(&["api", "update", "quotes"])
            .await
            .fails(2)
            .contains("--help")
    );
    let shown = cli.run(&["api", "show", "quotes"]).await.expect();
    assert!(
        shown.contains("the flow's result by a response mapping"),
        "{shown}"
    );
    assert!(shown.contains("anything: it has no schema"), "{shown}");
    cli.run(&["api", "delete", "quotes", "--yes"])
        .await
        .expect();
    assert!(
        cli.run(&["api", "show", "quotes"])
            .await
            .fails(1)
            .contains("kanat api list")
    );
}

#[tokio::test]
async fn an_api_that_no_call_reaches_is_reported_and_not_called() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let staging = app.api.with_header("x-environment", "staging");
    staging.deployed(&quote("quotes")).await;
    let cli = Cli::of(&app);
    let create = ["api", "create", "quotes", "open/quotes", "--auth", "none"];
    let named = ["--name", "open", "--response-schema", "true"];
    let create = [&create[..], &named[..]].concat();
    cli.run(&create).await.expect();
    let there = ["--env", "staging"];
    let advice = "`kanat environment update staging --base-url https://HOST`";
    let created = cli.run(&[&there[..], &create[..]].concat()).await;
    assert_eq!(created.stdout, "published API open is created\n");
    assert!(created.stderr.contains(advice), "{}", created.stderr);
    for command in [&["api", "show", "open"][..], &["api", "list"]] {
        let shown = cli.run(&[&there[..], command].concat()).await;
        assert!(!shown.stdout.contains(&app.base), "{}", shown.stdout);
        assert!(shown.stderr.contains(advice), "{}", shown.stderr);
    }
    let call = [&there[..], &["api", "call", "open"]].concat();
    let refused = cli.run(&call).await.fails(1);
    assert!(
        refused.contains("nothing reaches") && refused.contains(advice),
        "{refused}"
    );
    let version = ["version", "create", "open", "v2"];
    let created = cli.run(&[&there[..], &version[..]].concat()).await;
    assert_eq!(created.stdout, "version v2 of open is created\n");
    cli.run(&["api", "call", "open"]).await.expect();
}

#[tokio::test]
async fn a_schema_is_a_file_or_a_word() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let cli = Cli::of(&app);
    let create = [
        "api",
        "create",
        "quotes",
        "quotes",
        "--name",
        "quotes",
        "--response",
        "source",
    ];
    let answer = ["--response-status", "201", "--response-header", "x-shop=eu"];
    let conduct = [
        "--strict-response",
        "false",
        "--on-timeout",
        "discard",
        "--cors-origin",
        "*",
        "-o",
        "json",
    ];
    let created = cli
        .run(&[&create[..], &answer[..], &conduct[..]].concat())
        .await
        .json();
    assert_eq!(created["responseSchema"], true, "a mapping alone sets it");
    assert_eq!(created["responseStatus"], 201);
    assert_eq!(created["responseHeaders"]["x-shop"], "eu");
    assert_eq!(created["strictResponse"], false);
    assert_eq!(created["onTimeout"], "discard");
    assert_eq!(created["cors"]["origins"][0], "*");
    cli.file("true", r#"{"type": "object"}"#);
    let update = ["api", "update", "quotes", "-o", "json", "--response-schema"];
    let updated = cli.run(&[&update[..], &["./true"]].concat()).await.json();
    assert_eq!(updated["responseSchema"]["type"], "object");
    let updated = cli
        .run(&[&update[..], &["true", "--schema", "false"]].concat())
        .await
        .json();
    assert_eq!(updated["responseSchema"], true);
    assert_eq!(updated["requestSchema"], false);
}

#[tokio::test]
async fn a_consumer_stands_for_all_its_keys_that_work() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    app.api.deployed(&quote("quotes")).await;
    let create = ["api", "create", "quotes", "quotes", "--name", "quotes"];
    cli.run(&create).await.expect();
    let make = ["key", "create", "quotes", "leak1", "-o", "json"];
    let former = cli.run(&make).await.json();
    let rotate = [
        "key", "rotate", "quotes", "leak1", "--grace", "1h", "-o", "json",
    ];
    let latest = cli.run(&rotate).await.json();
    let status = async |key: &Value| {
        let call = [
            "api",
            "call",
            "quotes",
            "--key",
            key["key"].as_str().unwrap(),
        ];
        cli.run(&call).await.code
    };
    let ids = [&former, &latest].map(|key| key["id"].as_str().unwrap());
    let suspend = ["key", "suspend", "quotes", "leak1"];
    cli.run(&suspend).await.expect();
    assert_eq!(status(&former).await, Some(1));
    assert_eq!(status(&latest).await, Some(1));
    let resume = ["key", "resume", "quotes", "leak1"];
    cli.run(&resume).await.expect();
    assert_eq!(status(&former).await, Some(0));
    assert_eq!(status(&latest).await, Some(0));

    let revoke = ["key", "revoke", "quotes", "leak1"];
    let asked = cli.run(&revoke).await.fails(1);
    assert!(ids.iter().all(|id| asked.contains(id)), "{asked}");
    let revoked = cli.run(&[&revoke[..], &["--yes"]].concat()).await.expect();
    assert!(ids.iter().all(|id| revoked.contains(id)), "{revoked}");
    assert_eq!(status(&former).await, Some(1));
    assert_eq!(status(&latest).await, Some(1));
    let none = cli.run(&[&revoke[..], &["--yes"]].concat()).await.fails(1);
    assert!(none.contains("no key of quotes in use"), "{none}");
}

#[tokio::test]
async fn a_call_at_an_address_that_nothing_answers_names_its_origin() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    app.api.deployed(&quote("quotes")).await;
    let create = ["api", "create", "quotes", "quotes", "--name", "quotes"];
    cli.run(&create).await.expect();
    let environments = cli.run(&["environment", "list", "-o", "json"]).await.json();
    let name = environments["data"][0]["name"].as_str().unwrap();
    let base = "https://quotes.invalid";
    let update = ["environment", "update", name, "--base-url", base];
    cli.run(&update).await.expect();
    let call = ["api", "call", "quotes", "--key", "kanat_ck_a"];
    let told = cli.run(&call).await.fails(1);
    assert!(
        told.contains("cannot reach https://quotes.invalid: "),
        "{told}"
    );
    assert!(
        told.contains("comes from the baseUrl of environment"),
        "{told}"
    );
    assert!(!told.contains("kanat up"), "{told}");
}

#[tokio::test]
async fn an_update_that_cannot_be_is_refused_before_the_question() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    app.api.deployed(&quote("quotes")).await;
    let create = ["api", "create", "quotes", "quotes", "--name", "quotes"];
    cli.run(&create).await.expect();
    for (flag, value) in [
        ("--method", "FETCH"),
        ("--auth", "password"),
        ("--validation", "loose"),
    ] {
        let update = ["api", "update", "quotes", "--path", "other", flag, value];
        let told = cli.run(&update).await.fails(2);
        assert!(told.contains(flag) && !told.contains("--yes"), "{told}");
    }
}

#[tokio::test]
async fn an_api_is_shown_with_the_pages_that_may_call_and_with_its_answer() {
    let app = TestApp::start().await;
    app.api.deployed(&quote("quotes")).await;
    let plain = serde_json::json!({
        "flowName": "quotes", "path": "plain", "name": "plain", "requestSchema": true,
    });
    let apis = "/api/v1/published-apis";
    app.api.post(apis, &plain).await.expect(201);
    let cli = Cli::of(&app);
    let shown = cli.run(&["api", "show", "plain"]).await.expect();
    for absent in ["CORS", "Answer status", "Response mapping"] {
        assert!(!shown.contains(absent), "{shown}");
    }
    let whole = serde_json::json!({
        "flowName": "quotes", "path": "whole", "name": "whole", "requestSchema": true,
        "responseSchema": true,
        "responseMapping": {
            "price": "source.total",
            "lines": { "each": "source.items", "map": { "sku": "item.sku" } },
        },
        "responseStatus": 201,
        "responseHeaders": { "X-Kind": "quote of {{ source.id }}" },
        "strictResponse": true,
        "cors": {
            "origins": ["https://shop.example", "https://b.example"],
            "headers": ["X-Shop"], "exposedHeaders": ["X-Kind"],
            "credentials": true, "maxAgeSeconds": 60,
        },
    });
    app.api.post(apis, &whole).await.expect(201);
    let shown = cli.run(&["api", "show", "whole"]).await.expect();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for line in [
        "CORS origins: https://shop.example, https://b.example",
        "CORS headers: X-Shop",
        "CORS exposes: X-Kind",
        "CORS credentials: true",
        "CORS max age: 60 s",
        "Answer status: 201",
        "Answer headers: X-Kind: quote of {{ source.id }}",
        "Strict answer: true",
        "Response mapping",
        r#""price": "source.total""#,
        r#""sku": "item.sku""#,
    ] {
        assert!(words.contains(line), "{line}: {shown}");
    }
    let one = serde_json::json!({
        "flowName": "quotes", "path": "one", "name": "one", "requestSchema": true,
        "responseSchema": true, "responseMapping": "source.total", "cors": { "origins": ["*"] },
    });
    app.api.post(apis, &one).await.expect(201);
    let shown = cli.run(&["api", "show", "one"]).await.expect();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("Response mapping source.total"), "{shown}");
    assert!(words.contains("CORS max age: 600 s"), "{shown}");
}

#[tokio::test]
async fn what_cannot_work_as_it_is_given_is_refused_or_warned_of() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    app.api.deployed(&quote("quotes")).await;
    let create = ["api", "create", "quotes", "orders/{id}", "--method", "GET"];
    cli.run(&[&create[..], &["--auth", "none"]].concat())
        .await
        .expect();
    let call = ["api", "call", "GET /orders/{id}", "--param"];
    let body = [&call[..], &["id=7", "--data", "{}"]].concat();
    let refused = cli.run(&body).await.fails(2);
    assert!(refused.contains("GET has no body"), "{refused}");
    let empty = cli.run(&[&call[..], &["id="]].concat()).await.fails(2);
    let said = "the parameter id of the path is empty";
    assert!(empty.contains(said), "{empty}");
    let colon = ["api", "create", "quotes", "orders/:id"];
    let refused = cli.run(&colon).await.fails(1);
    assert!(refused.contains("is written as {id}"), "{refused}");
    let variable = ["environment", "create", "qa", "--variable", "api_token=a"];
    let made = cli.run(&variable).await;
    let said = "variables are no secrets: api_token";
    assert!(made.stderr.contains(said), "{}", made.stderr);
}

#[tokio::test]
async fn an_answer_of_the_api_is_shown_whatever_its_status_is() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    app.api.deployed(&quote("quotes")).await;
    let create = ["api", "create", "quotes", "taken", "--auth", "none"];
    let answer = ["--response", "source.total", "--response-status", "409"];
    cli.run(&[&create[..], &answer].concat()).await.expect();
    let data = cli.file("order.json", r#"{"total": "room 7 is taken"}"#);
    let call = ["api", "call", "POST /taken", "--data", &data];
    let answered = cli.run(&call).await;
    assert_eq!(answered.stdout, "\"room 7 is taken\"\n");
    answered.fails(1);
}
