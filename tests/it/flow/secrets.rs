//! Secrets of connectors in definitions: where they may stand, and where they could be read.

use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::{Value, json};

const TOKEN: &str = "s3cret/token+of-the-shop";
/// The secret in base64.
const ENCODED: &str = "czNjcmV0L3Rva2VuK29mLXRoZS1zaG9w";

async fn shop(api: &Rest, target: &FakeTarget) {
    let config = json!({
        "base_url": target.url(), "auth": "bearer", "token": TOKEN, "webhook_secret": "whs-s3cret",
        "headers": {"X-Api-Key": "key-s3cret", "X-Source": "kanat"},
    });
    let body = json!({"catalogId": "http", "name": "shop", "config": config});
    api.post("/api/v1/connectors/instances", &body)
        .await
        .expect(201);
}

/// A flow with these lines after those of its target.
fn flow(name: &str, target: &str, more: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source: {{connector: shop, trigger: webhook}}
target: {{connector: shop, method: POST, {target}}}
{more}"
    )
}

const PLAIN: &str = "endpoint: /in";

/// Definitions that would show a secret, each with the path of the field that does.
fn exposed() -> Vec<(String, &'static str)> {
    vec![
        (
            flow("a", PLAIN, "mapping: {a: instance.token}\n"),
            "mapping.a",
        ),
        (
            flow("b", PLAIN, "mapping: {a: 'instance.token | base64'}\n"),
            "mapping.a",
        ),
        (
            flow("c", PLAIN, "mapping: {a: '{{ instance.token }}'}\n"),
            "mapping.a",
        ),
        (
            flow(
                "d",
                PLAIN,
                "mapping: {a: 'source.x | default(instance.webhook_secret)'}\n",
            ),
            "mapping.a",
        ),
        (
            flow(
                "e",
                PLAIN,
                "mapping: {a: 'instance.headers[\"X-Api-Key\"]'}\n",
            ),
            "mapping.a",
        ),
        (
            flow("f", PLAIN, "mapping: {a: 'instance | json'}\n"),
            "mapping.a",
        ),
        (
            flow(
                "g",
                PLAIN,
                "mapping: {a: {each: source.items, map: {k: instance.token}}}\n",
            ),
            "mapping.a.map.k",
        ),
        (
            flow(
                "h",
                PLAIN,
                "mapping: {a: 'instance.token | adapter(show)'}\n",
            ),
            "mapping.a",
        ),
        (
            flow("i", PLAIN, "when: instance.token == source.guess\n"),
            "when",
        ),
        (
            flow("j", PLAIN, "ordering_key: instance.token\n"),
            "ordering_key",
        ),
        (
            flow("k", PLAIN, "idempotency_key: instance.token\n"),
            "idempotency_key",
        ),
        (
            flow("l", "endpoint: '/in/{{ instance.token }}'", ""),
            "target.endpoint",
        ),
        (
            flow(
                "m",
                "endpoint: '/in?a={{ instance.token | substring(0, 1) }}'",
                "",
            ),
            "target.endpoint",
        ),
        (
            flow(
                "n",
                "endpoint: /in, headers: {X-A: '{{ instance.token | substring(0, 1) }}'}",
                "",
            ),
            "target.headers.X-A",
        ),
        (
            flow(
                "o",
                "endpoint: /in, headers: {X-A: '{{ instance.token == source.guess }}'}",
                "",
            ),
            "target.headers.X-A",
        ),
        (
            flow("p", PLAIN, "").replace(
                "trigger: webhook",
                "trigger: webhook, verify: {scheme: token, \
                 secret: '{{ instance.token | substring(0, 1) }}'}",
            ),
            "source.verify.secret",
        ),
    ]
}

#[tokio::test]
async fn a_definition_that_would_show_a_secret_is_refused_with_its_place() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    shop(&app.api, &target).await;
    let draft = app.api.flow(&flow("draft", PLAIN, "")).await;
    for (yaml, field) in exposed() {
        let body = json!({ "yamlConfig": yaml });
        let refused = app
            .api
            .post("/api/v1/flows", &body)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(refused[0]["field"], field, "{yaml}: {refused}");
        let message = refused[0]["message"].as_str().unwrap();
        assert!(
            message.starts_with("line ") && message.contains("found the secret instance"),
            "{message}"
        );
        let path = format!("/api/v1/flows/{draft}");
        app.api
            .patch(&path, &body)
            .await
            .expect_error(400, "INVALID_ARGUMENT");
        let checked = app
            .api
            .post("/api/v1/flows/validate", &body)
            .await
            .expect(200);
        assert_eq!(checked["valid"], false, "{checked}");
        assert_eq!(checked["errors"][0]["path"], field, "{checked}");
    }
    for open in [
        "instance.base_url",
        "instance.headers[\"X-Source\"]",
        "instance.auth",
    ] {
        app.api
            .flow(&flow(
                open,
                PLAIN,
                &format!("mapping: {{a: '{open} | uppercase'}}\n"),
            ))
            .await;
    }
}

#[tokio::test]
async fn a_deploy_refuses_a_secret_that_a_draft_could_not_know_of() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    let id = app
        .api
        .flow(&flow("early", PLAIN, "mapping: {a: instance.token}\n"))
        .await;
    shop(&app.api, &target).await;
    let path = format!("/api/v1/flows/{id}");
    for (call, body) in [("deploy", json!({})), ("test", json!({"sampleData": {}}))] {
        let refused = app.api.post(&format!("{path}/{call}"), &body).await;
        assert_eq!(
            refused.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
            "mapping.a",
            "{call}"
        );
    }
    let warnings = app.api.get(&path).await.expect(200)["warnings"].clone();
    assert_eq!(warnings[0]["path"], "mapping.a", "{warnings}");
}

/// Returns the request that a message of this flow sends, and its record.
async fn sent(
    app: &TestApp,
    target: &FakeTarget,
    yaml: &str,
) -> (kanat_tests::target::ReceivedRequest, Value) {
    target.forget();
    let (_, url) = app.api.deployed(yaml).await;
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    let message = app.api.message_becomes(&id, "delivered").await;
    (target.received().remove(0), message)
}

#[tokio::test]
async fn a_secret_goes_to_its_own_connector_and_its_other_forms_show_no_more_than_it_does() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    shop(&app.api, &target).await;
    let header = "endpoint: /in, headers: {X-Mine: '{{ instance.token | base64 }}', X-All: 'a {{ \
                  instance.token }}'}";
    let (received, message) = sent(&app, &target, &flow("header", header, "")).await;
    assert_eq!(received.header("x-mine"), ENCODED);
    assert_eq!(received.header("x-all"), format!("a {TOKEN}"));
    let query = "endpoint: '/in?b={{ instance.token | base64 }}&t={{ instance.token }}'";
    let (received, other) = sent(&app, &target, &flow("query", query, "")).await;
    assert!(received.path.contains(ENCODED), "{}", received.path);
    let step = r"steps:
  - name: tell
    action: http.post
    connector: shop
    params:
      path: /step
      body: {b: '{{ instance.token | base64 }}', t: '{{ instance.token }}'}
";
    let (received, third) = sent(&app, &target, &flow("step", PLAIN, step)).await;
    assert!(
        received
            .body
            .windows(ENCODED.len())
            .any(|window| window == ENCODED.as_bytes()),
        "{received:?}"
    );
    let draft = app.api.flow(&flow("tested", header, step)).await;
    let tested = app
        .api
        .post(
            &format!("/api/v1/flows/{draft}/test"),
            &json!({"sampleData": {}}),
        )
        .await
        .expect(200);
    for shown in [message, other, third, tested] {
        let shown = shown.to_string();
        assert!(
            !shown.contains(ENCODED) && !shown.contains("token+of"),
            "{shown}"
        );
        assert!(shown.contains("********"), "{shown}");
    }
}

#[tokio::test]
async fn a_version_of_an_earlier_build_goes_on_and_is_warned_of() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    shop(&app.api, &target).await;
    let (id, url) = app
        .api
        .deployed(&flow("former", PLAIN, "mapping: {a: instance.auth}\n"))
        .await;
    app.terminate().await;
    let script = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\nfor table in ('flow', \
                  'flow_version'):\n    db.execute(f\"UPDATE {table} SET yaml_config = \
                  replace(yaml_config, 'instance.auth', 'instance.token')\")\ndb.commit()\n";
    let config = app.data_dir().join("config.db");
    let changed = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(config)
        .status()
        .unwrap();
    assert!(changed.success());
    app.restart().await;
    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    let path = format!("/api/v1/flows/{id}");
    let is_told = |flow: &Value| {
        flow["warnings"]
            .to_string()
            .contains("found the secret instance.token in mapping")
    };
    assert!(is_told(&app.api.get(&path).await.expect(200)));
    kanat_tests::until("the log tells of it", || async {
        app.log()
            .contains("\\\"former\\\" shows a secret, and runs until its next deploy")
            .then_some(())
    })
    .await;
    let renamed = app
        .api
        .patch(&path, &json!({"name": "renamed"}))
        .await
        .expect(200);
    assert!(is_told(&renamed), "{renamed}");
    let better = flow("former", PLAIN, "mapping: {a: source.a}\n");
    let drafted = app
        .api
        .patch(&path, &json!({ "yamlConfig": better }))
        .await
        .expect(200);
    assert!(
        drafted["warnings"]
            .to_string()
            .contains("version 1, which runs"),
        "{drafted}"
    );
    let deployed = app
        .api
        .post(&format!("{path}/deploy"), &json!({}))
        .await
        .expect(200);
    assert!(
        !deployed.to_string().contains("found the secret"),
        "{deployed}"
    );
    let back = app
        .api
        .post(&format!("{path}/rollback"), &json!({"versionNumber": 1}))
        .await;
    assert_eq!(
        back.expect_error(400, "INVALID_ARGUMENT")[0]["field"],
        "mapping.a"
    );
}

/// A flow whose only step posts this body to the shop.
fn posting(name: &str, body: &str) -> String {
    format!(
        r"flow: {name}
version: 1
source: {{trigger: manual}}
steps:
  - {{name: s, action: http.post, connector: shop, params: {{path: /x, body: {body}}}}}
"
    )
}

/// Returns the answer of a test of a flow for a sample.
async fn tested(api: &Rest, yaml: &str, sample: &Value) -> String {
    let path = format!("/api/v1/flows/{}/test", api.flow(yaml).await);
    let body = api.post(&path, &json!({ "sampleData": sample })).await;
    body.expect(200)["trace"].to_string()
}

#[tokio::test]
async fn the_end_of_what_is_shown_shows_no_part_of_a_secret() {
    let app = TestApp::start().await;
    shop(&app.api, &FakeTarget::start().await).await;
    let token = r#""{{ instance.token }}""#;
    let padded = format!(
        "{{{{ instance.token | concat('{}') | base64 }}}}",
        "A".repeat(150)
    );
    for (index, length) in [16_000, 16_100, 16_200, 16_300].into_iter().enumerate() {
        let padding = "x".repeat(length);
        let rest = "y".repeat(600);
        let body = format!(
            "{{a: {token}, b: {token}, c: {token}, d: {token}, p: {padding}, z: \"{padded}\", y: \
             {rest}}}"
        );
        let shown = tested(
            &app.api,
            &posting(&format!("cut-{index}"), &body),
            &json!({}),
        )
        .await;
        // The first letters of the token in base64.
        assert!(
            shown.contains("xxxx") && !shown.contains("czNj"),
            "{length}: {shown}"
        );
    }
}

#[tokio::test]
async fn who_chooses_texts_does_not_choose_what_is_hidden_with_them() {
    let app = TestApp::start().await;
    shop(&app.api, &FakeTarget::start().await).await;
    let guess = "{{ source.guess | default(instance.token) }}";
    let body = format!("{{z: \"PADDING-{{{{ instance.token }}}}\", g: \"{guess}\"}}");
    let yaml = posting("guesses", &body);
    let id = app.api.flow(&yaml).await;
    let mut shown = Vec::new();
    for guess in ["PADDING-s3c", "PADDING-xyz"] {
        let path = format!("/api/v1/flows/{id}/test");
        let given = json!({"sampleData": {"guess": guess}});
        let trace = app.api.post(&path, &given).await.expect(200)["trace"].to_string();
        assert!(trace.contains(guess), "{trace}");
        shown.push(trace.contains("PADDING-********"));
    }
    assert_eq!(shown, [true, true]);
    let refused = posting(
        "dice",
        "{a: \"{{ uuid() | concat(instance.token) | base64 }}\"}",
    );
    let refused = app
        .api
        .post("/api/v1/flows", &json!({ "yamlConfig": refused }))
        .await;
    refused.expect_error(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn addresses_show_no_secret_in_their_own_spelling() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    for (index, token) in ["tilde~/part~value+1", "correct horse-battery staple"]
        .into_iter()
        .enumerate()
    {
        let name = format!("shop-{index}");
        let config = json!({"base_url": target.url(), "auth": "bearer", "token": token});
        let body = json!({"catalogId": "http", "name": name, "config": config});
        app.api
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        let yaml = format!(
            r#"flow: spelled-{index}
version: 1
source: {{trigger: manual}}
target: {{connector: {name}, method: POST, endpoint: "/x?k={{{{ instance.token }}}}&n=1"}}
"#
        );
        let shown = tested(&app.api, &yaml, &json!({})).await;
        assert!(shown.contains("/x?k=********&n=1"), "{shown}");
    }
}
