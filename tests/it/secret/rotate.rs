//! `POST /secrets/rotate`: everything is sealed anew under the first master key, and nothing needs
//! the former one.

use std::path::Path;

use kanat_tests::cli::Cli;
use kanat_tests::oauth_provider::OauthProvider;
use kanat_tests::python::root;
use kanat_tests::rest::text;
use kanat_tests::split::Split;
use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::{Value, json};
use tokio::process::Command;

const PATH: &str = "/api/v1/secrets/rotate";

const FLOW: &str = r"flow: orders
version: 1
source: { trigger: webhook }
target: { connector: erp, endpoint: /in, method: POST }
on_error: { retry: 0x fixed(1s) }
";

/// The columns of a folder's configuration that hold something sealed under a key.
async fn sealed_under(folder: &Path, key_id: &str) -> String {
    let mut python = Command::new("python3");
    python
        .arg(root().join("tests/python/find_sealed.py"))
        .arg(folder.join("config.db"))
        .arg(format!("01{key_id}"));
    let output = python.output().await.expect("python3 runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut columns: Vec<_> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    columns.sort();
    columns.dedup();
    columns.join(" ")
}

/// The saved plans that do not begin with something sealed under a key.
fn plans_under_other_keys(folder: &Path, key_id: &str) -> Vec<String> {
    let header = hex::decode(format!("01{key_id}")).unwrap();
    let mut others = Vec::new();
    let mut folders = vec![folder.join("plans")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if !std::fs::read(entry.path()).unwrap()[4..].starts_with(&header) {
                others.push(entry.path().display().to_string());
            }
        }
    }
    others
}

fn keys(folder: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("master.key")).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Something in every place that is sealed.
struct SecretResources {
    target: FakeTarget,
    provider: OauthProvider,
    webhook: String,
    flow: String,
    instance: String,
    /// The state of a person who is at the provider.
    back: String,
    kept: Value,
}

impl SecretResources {
    async fn everywhere(api: &Rest) -> Self {
        let target = FakeTarget::start().await;
        let provider = OauthProvider::start(3600).await;
        let config =
            json!({"base_url": target.url(), "auth": "bearer", "token": "the-token-of-erp"});
        let body = json!({"catalogId": "http", "name": "erp", "config": config});
        let once = api.with_header("idempotency-key", "the-instance");
        let kept = once
            .post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        let body = json!({"catalogId": "oauth2", "name": "crm", "config": provider.config()});
        api.post("/api/v1/connectors/instances", &body)
            .await
            .expect(201);
        let start = "/api/v1/connectors/oauth/start?catalogId=oauth2&instanceName=crm";
        let mut backs = Vec::new();
        for _ in 0..2 {
            let started = api.get(start).await.expect(200);
            backs.push(
                provider
                    .consent(started["authorizationUrl"].as_str().unwrap())
                    .to_string(),
            );
        }
        let back = backs.pop().unwrap();
        Rest::send(api.without_key().request("GET", &backs[0]))
            .await
            .expect(200);
        let (flow, webhook) = api.deployed(FLOW).await;
        Self {
            target,
            provider,
            webhook,
            flow,
            instance: text(&kept["id"]),
            back,
            kept,
        }
    }

    /// All of it is there, and of use.
    async fn is_of_use(&self, api: &Rest, webhook: &str) {
        let flow = api
            .get(&format!("/api/v1/flows/{}", self.flow))
            .await
            .expect(200);
        assert_eq!(flow["webhookUrl"], json!(self.webhook));
        self.target.forget();
        let id = api.webhook(webhook, &json!({"n": 1})).await;
        api.message_becomes(&id, "delivered").await;
        assert_eq!(
            self.target.received()[0].header("authorization"),
            "Bearer the-token-of-erp"
        );
        let instances = api.get("/api/v1/connectors/instances").await.expect(200);
        for instance in instances["data"].as_array().unwrap() {
            let path = format!(
                "/api/v1/connectors/instances/{}/test",
                text(&instance["id"])
            );
            assert_eq!(
                api.post(&path, &json!({})).await.expect(200)["ok"],
                true,
                "{instance}"
            );
        }
        let body = json!({"catalogId": "http", "name": "erp", "config": {
            "base_url": self.target.url(), "auth": "bearer", "token": "the-token-of-erp",
        }});
        let once = api.with_header("idempotency-key", "the-instance");
        let repeated = once.post("/api/v1/connectors/instances", &body).await;
        assert_eq!(
            repeated.header("idempotency-replayed"),
            "true",
            "{}",
            repeated.text
        );
        assert_eq!(repeated.expect(201)["id"], self.kept["id"]);
        assert!(!self.provider.access_token().is_empty());
    }
}

#[tokio::test]
async fn a_new_master_key_seals_everything_and_the_former_one_is_gone() {
    let mut app = TestApp::start().await;
    let sealed = SecretResources::everywhere(&app.api).await;
    let folder = app.data_dir();
    let former = keys(&folder);
    let first = app.api.post(PATH, &json!({})).await.expect(200);
    assert_eq!(&first["newKey"], &json!(true));
    assert_eq!(&first["unreadable"], &json!(0));
    assert_eq!(&first["formerKeys"], &json!([]));
    assert!(
        first["resealed"].as_u64().unwrap() >= 8 && first.get("formerKeysMayGoAt").is_none(),
        "{first}"
    );
    let id = text(&first["keyId"]);
    let second = keys(&folder);
    assert!(
        second.len() == 1 && second != former,
        "the file holds the new key alone"
    );
    sealed.is_of_use(&app.api, &sealed.webhook).await;
    let places = sealed_under(&folder, &id).await;
    let all = "connector_instance.config flow.webhook_token kept_answer.answer meta.value \
               oauth_start.verifier oauth_token.tokens published.sealed";
    assert_eq!(places, all);
    assert_eq!(plans_under_other_keys(&folder, &id), [""; 0]);

    let told = Cli::of(&app)
        .run(&["secrets", "rotate", "-o", "json"])
        .await
        .json();
    assert_eq!(told["newKey"], true);
    let third = text(&told["keyId"]);
    assert_ne!(third, id);
    assert_eq!(sealed_under(&folder, &id).await, "");
    assert_eq!(plans_under_other_keys(&folder, &third), [""; 0]);
    app.kill().await;
    app.restart().await;
    sealed.is_of_use(&app.api, &sealed.webhook).await;
    assert!(
        !app.log().contains("last good plans cannot be read"),
        "{}",
        app.log()
    );
    for key in former.iter().chain(&second).chain(&keys(&folder)) {
        assert!(
            !app.log().contains(key.as_str()),
            "a master key is in the log"
        );
    }
}

#[tokio::test]
async fn what_is_sealed_meanwhile_is_sealed_under_the_new_key() {
    let mut app = TestApp::start().await;
    let sealed = SecretResources::everywhere(&app.api).await;
    let path = format!("/api/v1/connectors/instances/{}", sealed.instance);
    let deploy = format!("/api/v1/flows/{}/deploy", sealed.flow);
    let changes = async {
        for n in 0..40 {
            let update =
                json!({"displayName": format!("ERP {n}"), "config": {"token": "the-token-of-erp"}});
            app.api.patch(&path, &update).await.expect(200);
            let update = json!({"yamlConfig": FLOW.replace("/in", &format!("/in/{n}"))});
            app.api
                .put(&format!("/api/v1/flows/{}", sealed.flow), &update)
                .await
                .expect(200);
            app.api.post(&deploy, &json!({})).await.expect(200);
        }
    };
    let rotations = async {
        for _ in 0..5 {
            app.api.post(PATH, &json!({})).await.expect(200);
        }
    };
    tokio::join!(changes, rotations);
    app.kill().await;
    app.restart().await;
    sealed.is_of_use(&app.api, &sealed.webhook).await;
}

#[tokio::test]
async fn a_rotation_that_a_crash_cut_off_is_finished_by_the_next_call() {
    for point in ["secrets.new_key", "secrets.resealed"] {
        let mut app = TestApp::start().await;
        let sealed = SecretResources::everywhere(&app.api).await;
        app.terminate().await;
        app.restart_with(&[("KANAT_FAILPOINT", &format!("{point}:1"))])
            .await;
        let cut_off = app
            .api
            .with_header("idempotency-key", "rotation")
            .request("POST", PATH)
            .json(&json!({}));
        Rest::try_send(cut_off).await.expect_err(point);
        app.ended().await;
        let folder = app.data_dir();
        assert_eq!(keys(&folder).len(), 2, "{point}");
        app.restart_with(&[]).await;
        sealed.is_of_use(&app.api, &sealed.webhook).await;
        let finished = app.api.post(PATH, &json!({})).await.expect(200);
        assert_eq!(finished["newKey"], false, "{point}");
        assert_eq!(keys(&folder).len(), 1, "{point}");
        app.kill().await;
        app.restart().await;
        sealed.is_of_use(&app.api, &sealed.webhook).await;
    }
}

#[tokio::test]
async fn owners_of_the_whole_account_rotate_and_nobody_else_does() {
    let app = TestApp::start().await;
    for body in [
        json!({"name": "admin", "role": "admin"}),
        json!({"name": "bound", "role": "owner", "environmentId": "production"}),
    ] {
        let key = text(&app.api.post("/api/v1/api-keys", &body).await.expect(201)["key"]);
        app.api
            .with_key(&key)
            .post(PATH, &json!({}))
            .await
            .expect_error(403, "PERMISSION_DENIED");
    }
}

#[tokio::test]
async fn a_key_of_the_settings_is_not_replaced_and_it_is_said_what_to_do() {
    let one = "01".repeat(16) + &"a2".repeat(16);
    let two = "03".repeat(16) + &"b4".repeat(16);
    let mut app = TestApp::start_with(&[("KANAT_MASTER_KEY", &one)]).await;
    let sealed = SecretResources::everywhere(&app.api).await;
    let refused = app.api.post(PATH, &json!({})).await.expect(400);
    assert_eq!(refused["code"], "FAILED_PRECONDITION");
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("KANAT_MASTER_KEY=<new>,<former>"),
        "{refused}"
    );
    app.terminate().await;
    app.restart_with(&[("KANAT_MASTER_KEY", &format!("{two},{one}"))])
        .await;
    let done = app.api.post(PATH, &json!({})).await.expect(200);
    assert_eq!(&done["newKey"], &json!(false));
    assert_eq!(done["formerKeys"].as_array().unwrap().len(), 1);
    // People who are at a provider come back with a state of the former key.
    assert!(
        done["formerKeysMayGoAt"].as_str().unwrap()
            > kanat_model::Timestamp::now().to_string().as_str(),
        "{done}"
    );
    Rest::send(app.api.without_key().request("GET", &sealed.back))
        .await
        .expect(200);
    app.terminate().await;
    app.restart_with(&[("KANAT_MASTER_KEY", &two)]).await;
    sealed.is_of_use(&app.api, &sealed.webhook).await;
    assert!(!app.data_dir().join("master.key").exists());
}

#[tokio::test]
async fn control_planes_of_one_database_get_the_new_key_one_after_another() {
    let one = "01".repeat(16) + &"a2".repeat(16);
    let two = "03".repeat(16) + &"b4".repeat(16);
    let behind = format!("{one},{two}");
    let in_front = format!("{two},{one}");
    let split = Split::new();
    let mut planes = Vec::new();
    for name in ["one", "other"] {
        planes.push(
            split
                .control_plane_with(name, &[("KANAT_MASTER_KEY", &one)])
                .await,
        );
    }
    let node = split.node("node", &[&planes[0], &planes[1]]).await;
    let sealed = SecretResources::everywhere(&planes[0].api).await;
    let webhook = format!("{}{}", node.base, sealed.webhook);
    let refused = planes[0].api.post(PATH, &json!({})).await.expect(400);
    assert!(
        refused["error"]
            .as_str()
            .unwrap()
            .contains("KANAT_MASTER_KEY=<new>,<former>"),
        "{refused}"
    );
    for keys in [&behind, &in_front] {
        for plane in &mut planes {
            plane.terminate().await;
            plane.restart_with(&[("KANAT_MASTER_KEY", keys)]).await;
        }
    }
    // One that lives and seals under the former key would go on doing so.
    planes[1].terminate().await;
    planes[1]
        .restart_with(&[("KANAT_MASTER_KEY", &behind)])
        .await;
    for plane in &planes {
        let refused = plane.api.post(PATH, &json!({})).await.expect(400);
        assert!(
            refused["error"]
                .as_str()
                .unwrap()
                .contains("seal under another master key"),
            "{refused}"
        );
    }
    planes[1].terminate().await;
    planes[1]
        .restart_with(&[("KANAT_MASTER_KEY", &in_front)])
        .await;
    let done = planes[0].api.post(PATH, &json!({})).await.expect(200);
    assert_eq!(done["newKey"], false);
    assert!(done["resealed"].as_u64().unwrap() >= 8, "{done}");
    assert_eq!(
        planes[1].api.post(PATH, &json!({})).await.expect(200)["resealed"],
        0
    );
    for plane in &mut planes {
        plane.terminate().await;
        plane.restart_with(&[("KANAT_MASTER_KEY", &two)]).await;
    }
    for plane in &planes {
        sealed.is_of_use(&plane.api, &webhook).await;
    }
}
