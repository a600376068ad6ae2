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

/// Stops the service, runs statements on its database, and starts it again.
async fn tamper(app: &mut TestApp, statements: &[String]) {
    app.terminate().await;
    let script = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1])\n\
                  for statement in sys.argv[2:]:\n    db.execute(statement)\ndb.commit()\n";
    let changed = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(app.data_dir().join("config.db"))
        .args(statements)
        .status()
        .unwrap();
    assert!(changed.success());
    app.restart().await;
}

async fn finds(
    statements: impl Fn(&[String]) -> Vec<String>,
    broken_at: impl Fn(&[String]) -> String,
) {
    let (mut app, ids, _) = with_entries().await;
    tamper(&mut app, &statements(&ids)).await;
    let found = verified(&app).await;
    assert_eq!(found["intact"], false, "{found}");
    assert_eq!(found["brokenAt"], broken_at(&ids).as_str(), "{found}");
    let failed = Cli::of(&app).run(&["audit", "verify"]).await;
    failed.fails(1);
}

fn removed(id: &str) -> Vec<String> {
    vec![
        format!("DELETE FROM audit_entry WHERE id = '{id}'"),
        format!("DELETE FROM audit_link WHERE entry_id = '{id}'"),
    ]
}

#[tokio::test]
async fn a_changed_field_is_found() {
    finds(
        |ids| {
            let id = &ids[1];
            vec![format!(
                "UPDATE audit_entry SET actor_name = 'nobody' WHERE id = '{id}'"
            )]
        },
        |ids| ids[1].clone(),
    )
    .await;
}

#[tokio::test]
async fn a_removed_first_entry_is_found() {
    finds(|ids| removed(&ids[0]), |ids| ids[1].clone()).await;
}

#[tokio::test]
async fn a_removed_middle_entry_is_found() {
    finds(|ids| removed(&ids[1]), |ids| ids[2].clone()).await;
}

#[tokio::test]
async fn an_entry_without_its_link_and_a_link_without_its_entry_are_found() {
    finds(
        |ids| vec![removed(&ids[1])[0].clone()],
        |ids| ids[1].clone(),
    )
    .await;
    let copy = "INSERT INTO audit_entry SELECT 'aud_0', account_id, at, action, entity_type, \
                entity_id, entity_name, environment_id, actor_type, actor_id, actor_name, \
                actor_email, actor_role, via, status, state_before, state_after, request_id, \
                address, calls FROM audit_entry LIMIT 1";
    finds(|_| vec![copy.to_owned()], |_| "aud_0".to_owned()).await;
}

#[tokio::test]
async fn a_cut_end_is_found() {
    finds(|ids| removed(ids.last().unwrap()), |_| "head".to_owned()).await;
    // With a head to fit, which nobody can authenticate without the key.
    finds(
        |ids| {
            let mut statements = removed(ids.last().unwrap());
            statements.push(
                "UPDATE audit_head SET sequence = sequence - 1, kept = kept - 1, hash = (SELECT \
                 hash FROM audit_link ORDER BY sequence DESC LIMIT 1)"
                    .to_owned(),
            );
            statements
        },
        |_| "head".to_owned(),
    )
    .await;
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
    let all = ["audit_entry", "audit_link", "audit_pending", "audit_head"];
    let mut statements: Vec<_> = all
        .iter()
        .map(|table| format!("DELETE FROM {table}"))
        .collect();
    statements.push("DELETE FROM meta WHERE name LIKE 'audit_key/%'".to_owned());
    tamper(&mut app, &statements).await;
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
