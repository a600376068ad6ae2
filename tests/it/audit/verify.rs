//! `GET /audit-log/verify`: the whole log, or the first entry that is not as it was written.

use kanat_tests::cli::Cli;
use kanat_tests::{Rest, Service, on_both_databases, rest::text};
use serde_json::{Value, json};

use super::{entries, key};

on_both_databases!(
    Service;
    a_changed_field_is_found,
    a_value_that_no_entry_has_is_found_and_hides_no_other_entry,
    a_link_or_head_that_cannot_be_read_is_found,
    a_removed_first_entry_is_found,
    a_removed_middle_entry_is_found,
    an_entry_without_its_link_is_found,
    a_link_without_its_entry_is_found,
    a_cut_end_is_found,
    a_cut_end_with_a_head_to_fit_is_found,
    a_chain_that_begins_anew_is_found_by_a_former_head,
);

on_both_databases!(
    Service with [("KANAT_MASTER_KEY", super::FORMER_KEY)];
    a_new_master_key_changes_nothing,
);

const FORMER_KEY: &str = "01010101010101010101010101010101a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2a2";
const NEW_KEY: &str = "03030303030303030303030303030303b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4b4";

const VERIFY: &str = "/api/v1/audit-log/verify";

// Changes of rows as a person with access to the database could make them. `ID` is in place of the
// id of an entry.
const CHANGE_ENTRY: &str = include_str!("tamper/change_entry.sql");
const REMOVE_ENTRY: &str = include_str!("tamper/remove_entry.sql");
const REMOVE_LINK: &str = include_str!("tamper/remove_link.sql");
const ADD_WITHOUT_LINK: &str = include_str!("tamper/add_without_link.sql");
const FIT_HEAD: &str = include_str!("tamper/fit_head.sql");
const BEGIN_ANEW: &str = include_str!("tamper/begin_anew.sql");

async fn verified(api: &Rest) -> Value {
    api.get(VERIFY).await.expect(200)
}

async fn compared(api: &Rest, head: &str) -> Value {
    api.get(&format!("{VERIFY}?head={head}")).await.expect(200)
}

async fn make_table(api: &Rest, name: &str) {
    let body = json!({ "name": name });
    api.post("/api/v1/lookup-tables", &body).await.expect(201);
}

/// Makes some entries; returns the ids of all, oldest first, and the head.
async fn fill(service: &Service) -> (Vec<String>, String) {
    let api = service.api();
    for name in ["one", "two", "three"] {
        make_table(api, name).await;
    }
    let found = verified(service.elsewhere()).await;
    assert_eq!(found["intact"], true, "{found}");
    assert_eq!(found["brokenAt"], Value::Null);
    assert_eq!(found["unchained"], 0);
    let told = entries(api, "offset=0").await;
    assert_eq!(found["entries"], told.len());
    assert_eq!(found["from"], told.last().unwrap()["at"]);
    assert_eq!(found["to"], told[0]["at"]);
    assert_eq!(verified(api).await, found);
    let ids = told.iter().rev().map(|entry| text(&entry["id"])).collect();
    (ids, text(&found["head"]))
}

/// Runs statements on the entry of an id. The log is then broken at `broken_at`.
async fn finds(service: &mut Service, statements: &[&str], id: &str, broken_at: &str) {
    service
        .execute(&statements.concat().replace("ID", id))
        .await;
    for api in [service.api(), service.elsewhere()] {
        let found = verified(api).await;
        assert_eq!(found["intact"], false, "{found}");
        assert_eq!(found["brokenAt"], broken_at, "{found}");
    }
    let cli = Cli::at(&service.elsewhere().base);
    cli.run(&["audit", "verify"]).await.fails(1);
}

async fn a_changed_field_is_found(service: &mut Service) {
    let (ids, _) = fill(service).await;
    finds(service, &[CHANGE_ENTRY], &ids[1], &ids[1]).await;
}

async fn a_value_that_no_entry_has_is_found_and_hides_no_other_entry(service: &mut Service) {
    let (ids, _) = fill(service).await;
    let count = ids.len();
    let changes = [
        "status = 'Done'",
        "via = 'web'",
        "actor_type = 'x'",
        "calls = -1",
    ];
    // From the newest one on, so that each is the first.
    for (id, change) in ids.iter().rev().zip(changes) {
        let change = format!("UPDATE audit_entry SET {change} WHERE id = 'ID';");
        finds(service, &[&change], id, id).await;
    }
    let left = entries(service.api(), "offset=0").await;
    assert_eq!(left.len(), count - changes.len());
}

async fn a_link_or_head_that_cannot_be_read_is_found(service: &mut Service) {
    let (ids, _) = fill(service).await;
    let link = "UPDATE audit_link SET hash = substr(hash, 1, 3) WHERE entry_id = 'ID';";
    finds(service, &[link], &ids[1], "head").await;
    let head = "UPDATE audit_head SET sequence = -1;";
    finds(service, &[head], "", "head").await;
}

async fn a_removed_first_entry_is_found(service: &mut Service) {
    let (ids, _) = fill(service).await;
    finds(service, &[REMOVE_ENTRY, REMOVE_LINK], &ids[0], &ids[1]).await;
}

async fn a_removed_middle_entry_is_found(service: &mut Service) {
    let (ids, _) = fill(service).await;
    finds(service, &[REMOVE_ENTRY, REMOVE_LINK], &ids[1], &ids[2]).await;
}

async fn an_entry_without_its_link_is_found(service: &mut Service) {
    fill(service).await;
    finds(service, &[ADD_WITHOUT_LINK], "", "aud_0").await;
}

async fn a_link_without_its_entry_is_found(service: &mut Service) {
    let (ids, _) = fill(service).await;
    finds(service, &[REMOVE_ENTRY], &ids[1], &ids[1]).await;
}

async fn a_cut_end_is_found(service: &mut Service) {
    let (ids, _) = fill(service).await;
    let last = ids.last().unwrap();
    finds(service, &[REMOVE_ENTRY, REMOVE_LINK], last, "head").await;
}

/// Nobody can authenticate the head without the key.
async fn a_cut_end_with_a_head_to_fit_is_found(service: &mut Service) {
    let (ids, _) = fill(service).await;
    let last = ids.last().unwrap();
    let cut = [REMOVE_ENTRY, REMOVE_LINK, FIT_HEAD];
    finds(service, &cut, last, "head").await;
}

async fn a_chain_that_begins_anew_is_found_by_a_former_head(service: &mut Service) {
    let (_, head) = fill(service).await;
    assert_eq!(compared(service.elsewhere(), &head).await["intact"], true);
    make_table(service.api(), "later").await;
    assert_eq!(compared(service.elsewhere(), &head).await["intact"], true);
    service.execute(BEGIN_ANEW).await;
    make_table(service.api(), "anew").await;
    assert_eq!(verified(service.elsewhere()).await["intact"], true);
    let found = compared(service.elsewhere(), &head).await;
    assert_eq!(found["brokenAt"], "head", "{found}");
    let wrong = service.api().get(&format!("{VERIFY}?head=7")).await;
    wrong.expect_error(400, "INVALID_ARGUMENT");
}

async fn a_new_master_key_changes_nothing(service: &mut Service) {
    let (_, head) = fill(service).await;
    let keys = format!("{NEW_KEY},{FORMER_KEY}");
    service.restart_with(&[("KANAT_MASTER_KEY", &keys)]).await;
    let api = service.api();
    let elsewhere = service.elsewhere();
    let rotated = api.post("/api/v1/secrets/rotate", &json!({})).await;
    rotated.expect(200);
    let found = compared(elsewhere, &head).await;
    assert_eq!(found["intact"], true, "{found}");
    let cli = Cli::at(&elsewhere.base);
    let shown = cli.run(&["audit", "verify", "--head", &head]).await;
    assert!(shown.expect().contains("true"));
    let (_, bound) = key(service, "admin", Some("staging")).await;
    bound
        .get(VERIFY)
        .await
        .expect_error(403, "PERMISSION_DENIED");
}
