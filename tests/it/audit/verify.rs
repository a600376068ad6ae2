//! `GET /audit-log/verify`: the whole log, or the first entry that is not as it was written.

use kanat_tests::cli::Cli;
use kanat_tests::{TestApp, rest::text};
use serde_json::{Value, json};

use super::{entries, key};

const VERIFY: &str = "/api/v1/audit-log/verify";

async fn verified(app: &TestApp) -> Value {
    app.api.get(VERIFY).await.expect(200)
}

/// Makes a service with some entries; returns it with their ids, oldest first, and the head.
async fn with_entries() -> (TestApp, Vec<String>, String) {
    let app = TestApp::start().await;
    for name in ["one", "two", "three"] {
        let body = json!({ "name": name });
        app.api
            .post("/api/v1/lookup-tables", &body)
            .await
            .expect(201);
    }
    let found = verified(&app).await;
    assert_eq!(found["intact"], true, "{found}");
    assert_eq!(found["brokenAt"], Value::Null);
    assert_eq!(found["unchained"], 0);
    let told = entries(&app.api, "offset=0").await;
    assert_eq!(found["entries"], told.len());
    assert_eq!(found["from"], told.last().unwrap()["at"]);
    assert_eq!(found["to"], told[0]["at"]);
    let ids = told.iter().rev().map(|entry| text(&entry["id"])).collect();
    (app, ids, text(&found["head"]))
}

/// Stops the service, changes its store by the script beside this file, and starts it again.
async fn tamper(app: &mut TestApp, change: &str, entry: Option<&str>) {
    app.terminate().await;
    let changed = std::process::Command::new("python3")
        .args(["-c", include_str!("tamper.py")])
        .arg(app.data_dir().join("config.db"))
        .arg(change)
        .args(entry)
        .status()
        .unwrap();
    assert!(changed.success());
    app.restart().await;
}

/// Changes the entry at `index`, oldest first; the log is said to be broken at what `broken_at`
/// chooses of the ids.
async fn finds(change: &str, index: usize, broken_at: impl Fn(&[String]) -> &str) {
    let (mut app, ids, _) = with_entries().await;
    tamper(&mut app, change, Some(&ids[index])).await;
    let found = verified(&app).await;
    assert_eq!(found["intact"], false, "{found}");
    assert_eq!(found["brokenAt"], broken_at(&ids), "{found}");
    let failed = Cli::of(&app).run(&["audit", "verify"]).await;
    failed.fails(1);
}

#[tokio::test]
async fn a_changed_field_is_found() {
    finds("change", 1, |ids| &ids[1]).await;
}

#[tokio::test]
async fn a_removed_first_entry_is_found() {
    finds("remove", 0, |ids| &ids[1]).await;
}

#[tokio::test]
async fn a_removed_middle_entry_is_found() {
    finds("remove", 1, |ids| &ids[2]).await;
}

#[tokio::test]
async fn an_entry_without_its_link_and_a_link_without_its_entry_are_found() {
    finds("remove-entry-alone", 1, |ids| &ids[1]).await;
    finds("add-without-link", 1, |_| "aud_0").await;
}

#[tokio::test]
async fn a_cut_end_is_found() {
    let last = with_entries().await.1.len() - 1;
    finds("remove", last, |_| "head").await;
    // With a head to fit, which nobody can authenticate without the key.
    finds("cut-with-head", last, |_| "head").await;
}

#[tokio::test]
async fn a_chain_that_begins_anew_is_found_by_a_former_head() {
    let (mut app, _, head) = with_entries().await;
    let compared = async |app: &TestApp, head: &str| {
        let found = app.api.get(&format!("{VERIFY}?head={head}")).await;
        found.expect(200)
    };
    assert_eq!(compared(&app, &head).await["intact"], true);
    let body = json!({"name": "later"});
    app.api
        .post("/api/v1/lookup-tables", &body)
        .await
        .expect(201);
    assert_eq!(compared(&app, &head).await["intact"], true);
    tamper(&mut app, "begin-anew", None).await;
    let body = json!({"name": "anew"});
    app.api
        .post("/api/v1/lookup-tables", &body)
        .await
        .expect(201);
    assert_eq!(verified(&app).await["intact"], true);
    let found = compared(&app, &head).await;
    assert_eq!(found["brokenAt"], "head", "{found}");
    let wrong = app.api.get(&format!("{VERIFY}?head=7")).await;
    wrong.expect_error(400, "INVALID_ARGUMENT");
}

#[tokio::test]
async fn a_new_master_key_changes_nothing() {
    let (app, _, head) = with_entries().await;
    let rotated = app.api.post("/api/v1/secrets/rotate", &json!({})).await;
    rotated.expect(200);
    let found = app
        .api
        .get(&format!("{VERIFY}?head={head}"))
        .await
        .expect(200);
    assert_eq!(found["intact"], true, "{found}");
    let shown = Cli::of(&app)
        .run(&["audit", "verify", "--head", &head])
        .await;
    assert!(shown.expect().contains("true"));
    let (_, bound) = key(&app, "admin", Some("staging")).await;
    bound
        .get(VERIFY)
        .await
        .expect_error(403, "PERMISSION_DENIED");
}
