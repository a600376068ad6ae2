//! Each secret is a unique text, which appears in no file, log at trace level, answer, export,
//! metric, trace or saved plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use kanat_tests::cli::Cli;
use kanat_tests::oauth_provider::OauthProvider;
use kanat_tests::rest::text;
use kanat_tests::split::Split;
use kanat_tests::target::{ReceivedRequest, Reply};
use kanat_tests::{FakeTarget, Rest, TestApp, until};
use serde_json::{Map, Value, json};
use sha2::Sha256;

use crate::connector::every_action::sample;

const JOIN_TOKEN: &str = "canary-join-token-8c1f";
const PROXY: &str = "http://proxy:canary-proxy-password-77d0@127.0.0.1:9";
const PASSWORD: &str = "canary-database-password-03be";

/// 32 bytes that are a text.
const MASTER_KEY: &str = "canary-master-key-of-32-bytes-41";

const FLOW: &str = r#"flow: canaries
version: 1
source:
  connector: canary-http
  trigger: webhook
  verify: { scheme: hmac-sha256, secret: "{{ instance.webhook_secret }}", header: X-Sig }
target: { connector: canary-http, endpoint: /in, method: POST }
on_error: { retry: 1x fixed(10ms) }
"#;

const LITERAL: &str = "canary-literal-secret-2fd1";
const HEADER: &str = "canary-header-of-a-sender-9ab3";

/// A definition in which a secret is written out.
const LITERAL_FLOW: &str = r"flow: literal
version: 1
source:
  trigger: webhook
  verify: { scheme: token, secret: canary-literal-secret-2fd1 }
target: { connector: canary-http, endpoint: /in, method: POST }
on_error: { retry: 0x fixed(1s) }
";

/// Texts that must show nowhere, by what they are.
#[derive(Default)]
struct Canaries(BTreeMap<String, String>);

impl Canaries {
    fn add(&mut self, name: &str, text: &str) {
        assert!(
            text.len() >= 12,
            "{name}: {text:?} may stand anywhere by chance"
        );
        self.0.insert(name.to_owned(), text.to_owned());
    }

    /// Names those that stand in `place`, as they are, in base64 or in hexadecimal digits.
    fn found(&self, place: &str, bytes: &[u8]) -> Vec<String> {
        // The search of texts is far quicker than one by windows of bytes.
        let all = String::from_utf8_lossy(bytes);
        let is_in = |text: &str| all.contains(text);
        // What stands before it in a longer text moves the digits of base64.
        let in_base64 = |text: &str| {
            (0..3).any(|skip| {
                let whole = &text.as_bytes()[skip..];
                is_in(&STANDARD.encode(&whole[..whole.len() / 3 * 3]))
            })
        };
        let found = self
            .0
            .iter()
            .filter(|(_, text)| is_in(text) || in_base64(text) || is_in(&hex::encode(text)));
        found
            .map(|(name, _)| format!("{name} in {place}"))
            .collect()
    }

    fn in_files(&self, folder: &Path) -> Vec<String> {
        let read = |path: PathBuf| {
            (
                path.display().to_string(),
                std::fs::read(path).unwrap_or_default(),
            )
        };
        files(folder)
            .into_iter()
            .map(read)
            .flat_map(|(place, bytes)| self.found(&place, &bytes))
            .collect()
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

/// Sends back what it was sent, credentials and all, as an error.
fn parrot(received: &ReceivedRequest, _: usize) -> Reply {
    let authorization = received.header("authorization");
    let body = String::from_utf8_lossy(&received.body).into_owned();
    let echo = json!({
        "error": "invalid_client",
        "error_description": format!("{authorization} {body}"),
        "path": received.path,
    });
    let json = vec![("content-type".to_owned(), "application/json".to_owned())];
    Reply::Answer(400, json, echo.to_string())
}

/// All texts of a value.
fn texts(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(members) => members.values().for_each(|member| texts(member, into)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A config of an entry with a canary in each secret field, and its addresses at `provider`.
fn config(entry: &Value, provider: &str, canaries: &mut Canaries) -> Value {
    let schema = &entry["configSchema"];
    let id = text(&entry["id"]);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let mut config = Map::new();
    for (name, property) in schema["properties"].as_object().unwrap() {
        let is_secret = property["writeOnly"] == true;
        if !is_secret && !required.contains(&json!(name)) {
            continue;
        }
        let value = sample::of(
            property,
            &format!("canary-{id}-{}-5e1d", name.replace('_', "-")),
        );
        if is_secret {
            let mut found = Vec::new();
            texts(&value, &mut found);
            found
                .iter()
                .for_each(|text| canaries.add(&format!("{id}.{name}"), text));
        }
        config.insert(name.clone(), value);
    }
    config.insert("base_url".to_owned(), provider.into());
    match entry["authentication"].as_str().unwrap() {
        "oauth2" => {
            config.insert(
                "authorization_url".to_owned(),
                format!("{provider}/authorize").into(),
            );
            config.insert("token_url".to_owned(), format!("{provider}/token").into());
            if schema["properties"].get("grant_type").is_some() {
                config.insert("grant_type".to_owned(), "client_credentials".into());
            }
        }
        "configurable" => {
            config.insert("auth".to_owned(), "bearer".into());
        }
        _ => {}
    }
    Value::Object(config)
}

/// Makes an instance of every entry, and has each call its provider.
async fn instances(api: &Rest, parrot: &FakeTarget, canaries: &mut Canaries) -> Vec<String> {
    let entries = api
        .get("/api/v1/connectors/catalog?limit=100")
        .await
        .expect(200)["data"]
        .clone();
    let mut told = Vec::new();
    for entry in entries.as_array().unwrap() {
        let id = text(&entry["id"]);
        let config = config(entry, &parrot.url(), canaries);
        let body = json!({"catalogId": id, "name": format!("canary-{id}"), "config": config});
        let made = api.post("/api/v1/connectors/instances", &body).await;
        let path = format!(
            "/api/v1/connectors/instances/{}/test",
            text(&made.json()["id"])
        );
        told.extend([made.text, api.post(&path, &json!({})).await.text]);
    }
    assert!(
        canaries.0.len() > entries.as_array().unwrap().len(),
        "there is a secret in each"
    );
    told
}

/// Connects an instance as a person would, and returns the answers.
async fn connect(api: &Rest, provider: &OauthProvider, canaries: &mut Canaries) -> Vec<String> {
    let body = json!({"catalogId": "oauth2", "name": "crm", "config": provider.config()});
    let made = api.post("/api/v1/connectors/instances", &body).await;
    let started = api
        .get("/api/v1/connectors/oauth/start?catalogId=oauth2&instanceName=crm")
        .await
        .expect(200);
    let back = provider.consent(started["authorizationUrl"].as_str().unwrap());
    let connected = Rest::send(api.without_key().request("GET", back.as_str())).await;
    assert_eq!(connected.status, 200, "{}", connected.text);
    let exchange = provider
        .target
        .received()
        .into_iter()
        .find(|call| call.path == "/token")
        .unwrap();
    let form: reqwest::Url = format!("form:?{}", String::from_utf8_lossy(&exchange.body))
        .parse()
        .unwrap();
    let verifier = form
        .query_pairs()
        .find(|(name, _)| name == "code_verifier")
        .unwrap()
        .1
        .into_owned();
    canaries.add("OAuth2 state", &text(&started["state"]));
    canaries.add("OAuth2 verifier", &verifier);
    canaries.add("OAuth2 access token", &provider.access_token());
    canaries.add("OAuth2 refresh token", &provider.refresh_token());
    canaries.add(
        "OAuth2 client secret",
        kanat_tests::oauth_provider::CLIENT_SECRET,
    );
    vec![made.text, connected.text]
}

/// Makes keys of both kinds and calls with them.
async fn keys(api: &Rest, canaries: &mut Canaries) {
    let key = api
        .post(
            "/api/v1/api-keys",
            &json!({"name": "canary", "role": "viewer"}),
        )
        .await
        .expect(201);
    canaries.add("API key", &text(&key["key"]));
    canaries.add("bootstrap key", kanat_tests::app::KEY);
    api.with_key(&text(&key["key"]))
        .get("/api/v1/flows")
        .await
        .expect(200);
    api.deployed(&crate::published_api::quote("quotes")).await;
    let body = json!({"flowName": "quotes", "path": "quotes"});
    let made = api.post("/api/v1/published-apis", &body).await.expect(201);
    let path = format!("/api/v1/published-apis/{}/keys", text(&made["id"]));
    let consumer = api
        .post(&path, &json!({"consumer": "canary"}))
        .await
        .expect(201);
    canaries.add("consumer key", &text(&consumer["key"]));
    let called = api
        .with_key(&text(&consumer["key"]))
        .post("/quotes", &json!({"total": 1}))
        .await;
    assert!(called.status < 300, "{}", called.text);
}

/// Sends a signed message that its target refuses.
async fn message(api: &Rest, url: &str, secret: &str) -> String {
    let body = r#"{"n":1}"#;
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    let sender = api
        .without_key()
        .with_header("x-sig", &hex::encode(mac.finalize().into_bytes()));
    let accepted = sender
        .raw("POST", url, "application/json", body)
        .await
        .expect(202);
    let id = text(&accepted["messageId"]);
    api.message_becomes(&id, "dead_letter").await;
    id
}

/// Every answer that lists or shows something.
async fn answers(api: &Rest, flow: &str, message: &str) -> Vec<(String, String)> {
    let mut paths = Vec::new();
    for list in [
        "flows",
        "messages",
        "connectors/instances",
        "connectors/catalog",
        "nodes",
        "api-keys",
        "published-apis",
        "schedules",
        "adapters",
        "lookup-tables",
        "environments",
        "batch-jobs",
        "me",
        "openapi.json",
    ] {
        let path = format!("/api/v1/{list}");
        let answer = api.get(&path).await;
        if answer.status == 200 && list != "openapi.json" {
            let rows = answer.json()["data"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let ids = rows.iter().filter_map(|row| row["id"].as_str());
            paths.extend(ids.map(|id| format!("{path}/{id}")));
        }
        paths.push(path);
    }
    let more = ["versions", "versions/1", "plan", "versions/1/diff"];
    paths.extend(
        more.iter()
            .map(|part| format!("/api/v1/flows/{flow}/{part}")),
    );
    paths.push(format!("/api/v1/messages/{message}"));
    paths.push(format!("/api/v1/messages?flowId={flow}"));
    for path in paths.clone() {
        if path.starts_with("/api/v1/connectors/instances/") {
            paths.extend([format!("{path}/health"), format!("{path}/schemas")]);
        } else if path.starts_with("/api/v1/published-apis/") {
            paths.extend([
                format!("{path}/keys"),
                format!("{path}/versions"),
                format!("{path}/openapi.json"),
            ]);
        }
    }
    let mut answers = Vec::new();
    for path in paths {
        let answer = api.get(&path).await.text;
        answers.push((path, answer));
    }
    answers
}

#[tokio::test]
async fn no_secret_shows_in_files_logs_answers_metrics_traces_or_plans() {
    let collector = FakeTarget::start().await;
    let refusing = FakeTarget::scripted(parrot).await;
    let master_key = STANDARD.encode(MASTER_KEY);
    let mut app = TestApp::start_with(&[
        ("KANAT_LOG", "trace"),
        ("KANAT_METRICS_LISTEN", "127.0.0.1:0"),
        ("KANAT_OTLP_ENDPOINT", &collector.url()),
        ("KANAT_MASTER_KEY", &master_key),
        ("KANAT_JOIN_TOKEN", JOIN_TOKEN),
        ("HTTP_PROXY", PROXY),
        ("HTTPS_PROXY", PROXY),
        ("NO_PROXY", "127.0.0.1"),
    ])
    .await;
    let mut canaries = Canaries::default();
    canaries.add("master key", MASTER_KEY);
    canaries.add("join token", JOIN_TOKEN);
    canaries.add("proxy password", "canary-proxy-password-77d0");
    let mut told: Vec<_> = instances(&app.api, &refusing, &mut canaries).await;
    let provider = OauthProvider::start(3600).await;
    told.extend(connect(&app.api, &provider, &mut canaries).await);
    keys(&app.api, &mut canaries).await;
    let (flow, url) = app.api.deployed(FLOW).await;
    let id = message(&app.api, &url, &canaries.0["http.webhook_secret"].clone()).await;

    let (_, literal_url) = app.api.deployed(LITERAL_FLOW).await;
    let sender = app
        .api
        .without_key()
        .with_header("x-webhook-token", LITERAL)
        .with_header("x-shop-token", HEADER);
    let accepted = sender
        .post(&literal_url, &json!({"n": 1}))
        .await
        .expect(202);
    app.api
        .message_becomes(&text(&accepted["messageId"]), "dead_letter")
        .await;
    canaries.add("credential header of a sender", HEADER);

    let viewer = app
        .api
        .post(
            "/api/v1/api-keys",
            &json!({"name": "viewer", "role": "viewer"}),
        )
        .await
        .expect(201);
    let viewer = app.api.with_key(&text(&viewer["key"]));
    let mut found: Vec<String> = told
        .iter()
        .flat_map(|answer| canaries.found("an answer", answer.as_bytes()))
        .collect();
    for (path, answer) in answers(&app.api, &flow, &id).await {
        found.extend(canaries.found(&path, answer.as_bytes()));
    }
    // Those who build flows see what they wrote and where a flow is called; nobody else does.
    canaries.add("literal secret", LITERAL);
    canaries.add("webhook token", url.rsplit('/').next().unwrap());
    for (path, answer) in answers(&viewer, &flow, &id).await {
        found.extend(canaries.found(&path, answer.as_bytes()));
    }
    let metrics = metrics(&app).await;
    found.extend(canaries.found("metrics", metrics.as_bytes()));
    found.extend(canaries.in_files(&app.data_dir()));
    assert!(files(&app.data_dir().join("plans")).len() > 1);
    assert_eq!(app.terminate().await, Some(0));
    let spans = collector.received();
    assert!(!spans.is_empty());
    for request in &spans {
        found.extend(canaries.found("a trace", &request.body));
    }
    found.extend(canaries.in_files(&app.data_dir()));
    let log = app.log();
    assert!(log.contains("TRACE"), "everything is logged");
    found.extend(canaries.found("the log", log.as_bytes()));
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, [""; 0]);
    println!(
        "{} canaries, {} bytes of log, {} requests with spans",
        canaries.0.len(),
        log.len(),
        spans.len()
    );
}

async fn metrics(app: &TestApp) -> String {
    let log = app.log();
    let line = log
        .lines()
        .rfind(|line| line.contains("metrics are served"))
        .expect("the address is logged");
    let line: Value = serde_json::from_str(line).unwrap();
    app.api
        .without_key()
        .get(&format!("{}/metrics", text(&line["url"])))
        .await
        .text
}

#[tokio::test]
async fn no_secret_of_a_split_deployment_shows_in_files_logs_or_what_commands_print() {
    let split = Split::new();
    let database = split
        .database
        .url()
        .replace("postgres@", &format!("postgres:{PASSWORD}@"));
    let master_key = STANDARD.encode(MASTER_KEY);
    let mut canaries = Canaries::default();
    for (name, text) in [
        ("database password", PASSWORD),
        ("join token", JOIN_TOKEN),
        ("master key", MASTER_KEY),
    ] {
        canaries.add(name, text);
    }
    let environment = [
        ("KANAT_LOG", "trace"),
        ("KANAT_DATABASE_URL", database.as_str()),
        ("KANAT_MASTER_KEY", &master_key),
        ("KANAT_JOIN_TOKEN", JOIN_TOKEN),
    ];
    let mut control = split.control_plane_with("control", &environment).await;
    let mut node = split.node_with("node", &[&control], &environment).await;
    let refusing = FakeTarget::scripted(parrot).await;
    instances(&control.api, &refusing, &mut canaries).await;
    let (flow, url) = control.api.deployed(FLOW).await;
    let url = format!("{}{url}", node.base);
    let id = message(
        &control.api,
        &url,
        &canaries.0["http.webhook_secret"].clone(),
    )
    .await;
    let mut found = Vec::new();
    for (path, answer) in answers(&control.api, &flow, &id).await {
        found.extend(canaries.found(&path, answer.as_bytes()));
    }
    canaries.add("webhook token", url.rsplit('/').next().unwrap());
    let mut cli = Cli::new();
    for (name, value) in environment {
        cli = cli.with(name, value);
    }
    let plan_file = split.folder.path().join("plans.sealed");
    for arguments in [
        &["control-plane", "--print-config"][..],
        &[
            "data-plane",
            "--print-config",
            "--control-plane",
            "http://127.0.0.1:9",
        ],
        &[
            "control-plane",
            "--write-plan-file",
            plan_file.to_str().unwrap(),
        ],
        &["control-plane", "--drain-node", "node_none"],
        &["restore-point"],
    ] {
        let printed = cli.run(arguments).await;
        found.extend(canaries.found(
            &arguments.join(" "),
            format!("{}{}", printed.stdout, printed.stderr).as_bytes(),
        ));
    }
    assert!(plan_file.exists());
    node.terminate().await;
    control.terminate().await;
    // A database that is away is told of, and its password is not.
    let away = format!("postgres://kanat:{PASSWORD}@127.0.0.1:9/kanat");
    control.spawn_again_with(&[("KANAT_DATABASE_URL", &away)]);
    until("the database is waited for", || async {
        control
            .log()
            .contains("the database is out of reach")
            .then_some(())
    })
    .await;
    control.kill().await;
    // The logs are among the files of the deployment.
    found.extend(canaries.in_files(split.folder.path()));
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, [""; 0]);
}
