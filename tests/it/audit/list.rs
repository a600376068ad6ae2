//! `GET /audit-log`: the changes of a day, their secrets masked; filters and pages.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp, rest::text};
use serde_json::{Value, json};

use super::{PATH, entries, entry, key};
use crate::webhook::passthrough;

#[tokio::test]
async fn each_change_has_one_entry_with_what_was_before_and_after() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let api = app.api.with_header("x-request-id", "morning-1");
    let (flow, url) = api.deployed(&passthrough("orders")).await;
    let created = entry(&app.api, "action=flow.create").await;
    assert_eq!(created["entityId"], flow.as_str());
    assert_eq!(created["entityName"], "orders");
    assert_eq!(created["entityType"], "flow");
    assert_eq!(created["status"], "done");
    assert_eq!(created["via"], "api");
    assert_eq!(created["requestId"], "morning-1");
    assert_eq!(created["address"], "127.0.0.1");
    assert!(created.get("before").is_none(), "{created}");
    assert!(text(&created["after"]["yamlConfig"]).contains("orders"));
    let owner = app.api.get("/api/v1/me").await.expect(200);
    let actor = json!({
        "type": "api_key", "id": owner["id"], "name": owner["name"], "role": "owner",
    });
    assert_eq!(created["actor"], actor);
    assert_eq!(created["userId"], owner["id"]);
    assert_eq!(created["environmentId"], owner["environment"]["id"]);
    assert!(text(&created["id"]).starts_with("aud_"));

    let deployed = entry(&app.api, "action=flow.deploy").await;
    assert_eq!(deployed["before"]["status"], "draft");
    assert_eq!(deployed["after"]["status"], "active");
    assert_eq!(deployed["after"]["version"], 1);

    let path = format!("/api/v1/flows/{flow}");
    app.api.patch(&path, &json!({"name": "renamed"})).await;
    let updated = entry(&app.api, "action=flow.update").await;
    assert_eq!(updated["before"]["name"], "orders");
    assert_eq!(updated["after"]["name"], "renamed");

    // Reads and refused calls are not told.
    app.api.get(&path).await.expect(200);
    let wrong = app.api.patch(&path, &json!({"name": ""})).await;
    wrong.expect_error(400, "INVALID_ARGUMENT");
    app.api.without_key().delete(&path).await;
    let of_flow = entries(&app.api, &format!("entityId={flow}")).await;
    assert_eq!(of_flow.len(), 3, "{of_flow:?}");

    let message = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&message, "delivered").await;
    let replay = format!("/api/v1/messages/{message}/replay");
    let replayed = app.api.post(&replay, &json!({})).await.expect(202);
    let told = entry(&app.api, "action=message.replay").await;
    assert_eq!(told["entityId"], message.as_str());
    assert_eq!(told["after"]["messageId"], replayed["messageId"]);

    app.api.delete(&path).await;
    let deleted = entry(&app.api, "action=flow.delete").await;
    assert_eq!(deleted["before"]["name"], "renamed");
    assert!(deleted.get("after").is_none(), "{deleted}");
}

#[tokio::test]
async fn secrets_are_masked() {
    let app = TestApp::start().await;
    let secret = "canary-of-the-audit-log";
    let body = json!({"name": "erp", "catalogId": "http", "config": {
        "base_url": "https://erp.example.com", "auth": "bearer", "token": secret,
    }});
    let path = "/api/v1/connectors/instances";
    let made = app.api.post(path, &body).await.expect(201);
    let path = format!("{path}/{}", text(&made["id"]));
    let other = json!({"config": {"token": "another-canary"}});
    app.api.patch(&path, &other).await.expect(200);
    let created = entry(&app.api, "action=connector.create").await;
    assert_eq!(created["after"]["config"]["token"], "********");
    let key = app
        .api
        .post("/api/v1/api-keys", &json!({"name": "k"}))
        .await;
    let key = key.expect(201);
    assert_eq!(key["createdBy"]["type"], "api_key");
    let all = app.api.get(PATH).await;
    for canary in [secret, "another-canary", &text(&key["key"])] {
        assert!(!all.text.contains(canary), "{}", all.text);
    }
    let key = entry(&app.api, "action=api_key.create").await;
    assert_eq!(key["after"]["role"], "editor");
}

#[tokio::test]
async fn changes_of_table_entries_are_listed_by_their_keys() {
    let app = TestApp::start().await;
    let tables = "/api/v1/lookup-tables";
    let table = app.api.post(tables, &json!({"name": "countries"})).await;
    let path = format!("{tables}/{}", text(&table.expect(201)["id"]));
    let put = async |list: Value| {
        let body = json!({ "entries": list });
        let entries = format!("{path}/entries");
        app.api.put(&entries, &body).await.expect(200);
    };
    put(json!([{"key": "DE", "value": "Germany"}, {"key": "FR", "value": "France"}])).await;
    put(json!([{"key": "DE", "value": "Deutschland"}, {"key": "FR", "value": "France"}])).await;
    app.api.delete(&format!("{path}/entries/FR")).await;
    let told = entries(&app.api, "action=lookup_table.update").await;
    let [removed, changed, added] = told.as_slice() else {
        panic!("{told:?}");
    };
    assert_eq!(
        added["after"],
        json!({"added": {"DE": "Germany", "FR": "France"}, "changed": {}, "removed": {}})
    );
    assert_eq!(changed["before"]["changed"], json!({"DE": "Germany"}));
    assert_eq!(changed["after"]["changed"], json!({"DE": "Deutschland"}));
    assert_eq!(removed["before"]["removed"], json!({"FR": "France"}));
    let many: Vec<_> = (0..150)
        .map(|n| json!({"key": format!("k{n}"), "value": "v"}))
        .collect();
    put(Value::Array(many)).await;
    let told = entries(&app.api, "action=lookup_table.update").await;
    let added = told[0]["after"]["added"].as_object().unwrap();
    assert_eq!(added.len(), 100);
    assert_eq!(told[0]["after"]["omitted"], 50);

    app.api.get(&format!("{path}/export")).await;
    let exported = entry(&app.api, "action=lookup_table.export").await;
    assert_eq!(exported["entityName"], "countries");
}

#[tokio::test]
async fn filters_narrow_and_cursors_go_on() {
    let app = TestApp::start().await;
    let staging = app.api.with_header("x-environment", "staging");
    for (api, name) in [(&app.api, "one"), (&staging, "two"), (&app.api, "three")] {
        let body = json!({ "name": name });
        api.post("/api/v1/lookup-tables", &body).await.expect(201);
    }
    let names = |found: &[Value]| -> Vec<String> {
        let names = found.iter().map(|entry| text(&entry["entityName"]));
        names.collect()
    };
    let made = entries(&app.api, "entityType=lookup_table").await;
    assert_eq!(names(&made), ["three", "two", "one"]);
    let of_staging = entries(&app.api, "environmentId=staging").await;
    assert_eq!(names(&of_staging), ["two"]);
    let (_, bound) = key(&app, "admin", Some("staging")).await;
    let seen = entries(&bound, "status=done").await;
    assert_eq!(names(&seen), ["admin", "two"]);
    let other = bound.get(&format!("{PATH}?environmentId=production")).await;
    other.expect_error(403, "PERMISSION_DENIED");

    // Two of them may have come in one millisecond.
    let at = text(&made[1]["at"]);
    let (later, earlier): (Vec<_>, Vec<_>) = made
        .iter()
        .cloned()
        .partition(|entry| text(&entry["at"]) >= at);
    let since = entries(&app.api, &format!("entityType=lookup_table&since={at}")).await;
    assert_eq!(since, later);
    let until = entries(&app.api, &format!("entityType=lookup_table&until={at}")).await;
    assert_eq!(until, earlier);

    let query = format!("{PATH}?entityType=lookup_table&limit=2");
    let first = app.api.get(&query).await.expect(200);
    assert_eq!(first["pagination"]["total"], 3);
    let cursor = text(&first["pagination"]["nextCursor"]);
    let second = app
        .api
        .get(&format!("{query}&cursor={cursor}"))
        .await
        .expect(200);
    assert_eq!(second["data"].as_array().unwrap().len(), 1);
    assert!(second["pagination"].get("nextCursor").is_none(), "{second}");

    for wrong in [
        "status=maybe",
        "via=post",
        "since=today",
        "cursor=x",
        "action=",
    ] {
        let answer = app.api.get(&format!("{PATH}?{wrong}")).await;
        answer.expect_error(400, "INVALID_ARGUMENT");
    }
    let both = format!("{query}&cursor={cursor}&offset=1");
    let both = app.api.get(&both).await;
    let both = both.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(both[0]["field"], "cursor");
    assert_eq!(both[1]["field"], "offset");
    let (_, editor) = key(&app, "editor", None).await;
    editor
        .get(PATH)
        .await
        .expect_error(403, "PERMISSION_DENIED");
}

#[tokio::test]
async fn an_action_that_no_entry_can_have_is_refused_with_the_nearest() {
    let app = TestApp::start().await;
    for (field, word, message) in [
        (
            "action",
            "flow.deplyo",
            r#""flow.deplyo" is not one of the audit log; did you mean "flow.deploy""#,
        ),
        (
            "action",
            "nothing",
            r#""nothing" is not one of the audit log"#,
        ),
        (
            "entityType",
            "lookup_tables",
            r#""lookup_tables" is not one of the audit log; did you mean "lookup_table""#,
        ),
    ] {
        let answer = app.api.get(&format!("{PATH}?{field}={word}")).await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0], json!({"field": field, "message": message}));
    }
    // Actions that no entry has so far, and those of the service itself.
    for query in [
        "action=policy.delete",
        "entityType=batch_job",
        "action=api_key.reset",
    ] {
        assert_eq!(entries(&app.api, query).await, [json!(null); 0], "{query}");
    }
    let first_start = entry(&app.api, "action=account.create").await;
    assert_eq!(first_start["via"], "system");
    assert_eq!(first_start["actor"]["type"], "system");
    assert_eq!(first_start["status"], "done");
    assert_eq!(first_start["after"]["name"], first_start["entityName"]);
    let cli = Cli::of(&app);
    let listed = cli.run(&["audit", "list", "--action", "flow.deplyo"]).await;
    let told = listed.fails(1);
    assert!(told.contains("flow.deploy"), "{told}");
}

#[tokio::test]
async fn the_address_is_that_of_the_client_before_trusted_proxies() {
    let app = TestApp::start_with(&[("KANAT_TRUSTED_PROXIES", "127.0.0.1/32,10.0.0.0/8")]).await;
    let forwarded = "203.0.113.9, 198.51.100.7, 10.1.2.3";
    let api = app.api.with_header("x-forwarded-for", forwarded);
    api.post("/api/v1/lookup-tables", &json!({"name": "t"}))
        .await;
    let told = entry(&app.api, "action=lookup_table.create").await;
    assert_eq!(told["address"], "198.51.100.7");
}

#[tokio::test]
async fn calls_of_the_command_line_say_so_and_it_lists_them() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    cli.run(&["lookup", "create", "countries"]).await.expect();
    let told = entry(&app.api, "via=cli").await;
    assert_eq!(told["action"], "lookup_table.create");
    let listed = cli
        .run(&["audit", "list", "--action", "lookup_table.create"])
        .await;
    assert!(listed.expect().contains("countries"));
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let listed = cli
        .run(&["audit", "list", "--entity-type", "connector"])
        .await;
    assert!(listed.expect().contains("erp"));
}
