//! `GET /audit-log`: the changes of a day, their secrets masked; filters and pages.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, Service, on_both_databases, rest::text};
use serde_json::{Value, json};

use super::{PATH, entries, entry, key};
use crate::webhook::passthrough;

on_both_databases!(
    Service;
    each_change_has_one_entry_with_what_was_before_and_after,
    secrets_are_masked,
    changes_of_table_entries_are_listed_by_their_keys,
    filters_narrow_and_cursors_go_on,
    an_action_that_no_entry_can_have_is_refused_with_the_nearest,
    calls_of_the_command_line_say_so_and_it_lists_them,
);

on_both_databases!(
    Service with [("KANAT_TRUSTED_PROXIES", "127.0.0.1/32,10.0.0.0/8")];
    the_address_is_that_of_the_client_before_trusted_proxies,
);

async fn each_change_has_one_entry_with_what_was_before_and_after(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let target = FakeTarget::start().await;
    service.nodes().await;
    api.http_instance("erp", &target.url()).await;
    let morning = api.with_header("x-request-id", "morning-1");
    let (flow, url) = morning.deployed(&passthrough("orders")).await;
    let created = entry(elsewhere, "action=flow.create").await;
    assert_eq!(created["entityId"], flow.as_str());
    assert_eq!(created["entityName"], "orders");
    assert_eq!(created["entityType"], "flow");
    assert_eq!(created["status"], "done");
    assert_eq!(created["via"], "api");
    assert_eq!(created["requestId"], "morning-1");
    assert_eq!(created["address"], "127.0.0.1");
    assert!(created.get("before").is_none(), "{created}");
    assert!(text(&created["after"]["yamlConfig"]).contains("orders"));
    let owner = elsewhere.get("/api/v1/me").await.expect(200);
    let actor = json!({
        "type": "api_key", "id": owner["id"], "name": owner["name"], "role": "owner",
    });
    assert_eq!(created["actor"], actor);
    assert_eq!(created["userId"], owner["id"]);
    assert_eq!(created["environmentId"], owner["environment"]["id"]);
    assert!(text(&created["id"]).starts_with("aud_"));

    let deployed = entry(elsewhere, "action=flow.deploy").await;
    assert_eq!(deployed["before"]["status"], "draft");
    assert_eq!(deployed["after"]["status"], "active");
    assert_eq!(deployed["after"]["version"], 1);

    let path = format!("/api/v1/flows/{flow}");
    api.patch(&path, &json!({"name": "renamed"})).await;
    let updated = entry(elsewhere, "action=flow.update").await;
    assert_eq!(updated["before"]["name"], "orders");
    assert_eq!(updated["after"]["name"], "renamed");

    // Reads and refused calls are not told.
    elsewhere.get(&path).await.expect(200);
    let wrong = api.patch(&path, &json!({"name": ""})).await;
    wrong.expect_error(400, "INVALID_ARGUMENT");
    api.without_key().delete(&path).await;
    let of_flow = entries(elsewhere, &format!("entityId={flow}")).await;
    assert_eq!(of_flow.len(), 3, "{of_flow:?}");

    let webhook = &service.webhooks(&url).await[0];
    let message = api.webhook(webhook, &json!({})).await;
    api.message_becomes(&message, "delivered").await;
    let replay = format!("/api/v1/messages/{message}/replay");
    let replayed = api.post(&replay, &json!({})).await.expect(202);
    let told = entry(elsewhere, "action=message.replay").await;
    assert_eq!(told["entityId"], message.as_str());
    assert_eq!(told["after"]["messageId"], replayed["messageId"]);

    api.delete(&path).await;
    let deleted = entry(elsewhere, "action=flow.delete").await;
    assert_eq!(deleted["before"]["name"], "renamed");
    assert!(deleted.get("after").is_none(), "{deleted}");
}

async fn secrets_are_masked(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let secret = "canary-of-the-audit-log";
    let body = json!({"name": "erp", "catalogId": "http", "config": {
        "base_url": "https://erp.example.com", "auth": "bearer", "token": secret,
    }});
    let path = "/api/v1/connectors/instances";
    let made = api.post(path, &body).await.expect(201);
    let path = format!("{path}/{}", text(&made["id"]));
    let other = json!({"config": {"token": "another-canary"}});
    api.patch(&path, &other).await.expect(200);
    let created = entry(elsewhere, "action=connector.create").await;
    assert_eq!(created["after"]["config"]["token"], "********");
    let key = api.post("/api/v1/api-keys", &json!({"name": "k"})).await;
    let key = key.expect(201);
    assert_eq!(key["createdBy"]["type"], "api_key");
    let all = elsewhere.get(PATH).await;
    for canary in [secret, "another-canary", &text(&key["key"])] {
        assert!(!all.text.contains(canary), "{}", all.text);
    }
    let key = entry(elsewhere, "action=api_key.create").await;
    assert_eq!(key["after"]["role"], "editor");
}

async fn changes_of_table_entries_are_listed_by_their_keys(service: &Service) {
    let api = service.api();
    let elsewhere = service.elsewhere();
    let tables = "/api/v1/lookup-tables";
    let table = api.post(tables, &json!({"name": "countries"})).await;
    let path = format!("{tables}/{}", text(&table.expect(201)["id"]));
    let put = async |list: Value| {
        let body = json!({ "entries": list });
        let entries = format!("{path}/entries");
        api.put(&entries, &body).await.expect(200);
    };
    put(json!([{"key": "DE", "value": "Germany"}, {"key": "FR", "value": "France"}])).await;
    put(json!([{"key": "DE", "value": "Deutschland"}, {"key": "FR", "value": "France"}])).await;
    api.delete(&format!("{path}/entries/FR")).await;
    let told = entries(elsewhere, "action=lookup_table.update").await;
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
    let told = entries(elsewhere, "action=lookup_table.update").await;
    let added = told[0]["after"]["added"].as_object().unwrap();
    assert_eq!(added.len(), 100);
    assert_eq!(told[0]["after"]["omitted"], 50);

    elsewhere.get(&format!("{path}/export")).await;
    let exported = entry(elsewhere, "action=lookup_table.export").await;
    assert_eq!(exported["entityName"], "countries");
}

async fn filters_narrow_and_cursors_go_on(service: &Service) {
    let elsewhere = service.elsewhere();
    let staging = service.api().with_header("x-environment", "staging");
    for (api, name) in [
        (service.api(), "one"),
        (&staging, "two"),
        (service.api(), "three"),
    ] {
        let body = json!({ "name": name });
        api.post("/api/v1/lookup-tables", &body).await.expect(201);
    }
    let names = |found: &[Value]| -> Vec<String> {
        let names = found.iter().map(|entry| text(&entry["entityName"]));
        names.collect()
    };
    let made = entries(elsewhere, "entityType=lookup_table").await;
    assert_eq!(names(&made), ["three", "two", "one"]);
    let of_staging = entries(elsewhere, "environmentId=staging").await;
    assert_eq!(names(&of_staging), ["two"]);
    let (_, bound) = key(service, "admin", Some("staging")).await;
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
    let since = entries(elsewhere, &format!("entityType=lookup_table&since={at}")).await;
    assert_eq!(since, later);
    let until = entries(elsewhere, &format!("entityType=lookup_table&until={at}")).await;
    assert_eq!(until, earlier);

    let query = format!("{PATH}?entityType=lookup_table&limit=2");
    let first = elsewhere.get(&query).await.expect(200);
    assert_eq!(first["pagination"]["total"], 3);
    let cursor = text(&first["pagination"]["nextCursor"]);
    let second = elsewhere
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
        let answer = elsewhere.get(&format!("{PATH}?{wrong}")).await;
        answer.expect_error(400, "INVALID_ARGUMENT");
    }
    let both = format!("{query}&cursor={cursor}&offset=1");
    let both = elsewhere.get(&both).await;
    let both = both.expect_error(400, "INVALID_ARGUMENT");
    assert_eq!(both[0]["field"], "cursor");
    assert_eq!(both[1]["field"], "offset");
    let (_, editor) = key(service, "editor", None).await;
    editor
        .get(PATH)
        .await
        .expect_error(403, "PERMISSION_DENIED");
}

async fn an_action_that_no_entry_can_have_is_refused_with_the_nearest(service: &Service) {
    let elsewhere = service.elsewhere();
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
        let answer = elsewhere.get(&format!("{PATH}?{field}={word}")).await;
        let details = answer.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0], json!({"field": field, "message": message}));
    }
    // Actions that no entry has so far, and those of the service itself.
    for query in [
        "action=policy.delete",
        "entityType=batch_job",
        "action=api_key.reset",
    ] {
        assert_eq!(entries(elsewhere, query).await, [json!(null); 0], "{query}");
    }
    let first_start = entry(elsewhere, "action=account.create").await;
    assert_eq!(first_start["via"], "system");
    assert_eq!(first_start["actor"]["type"], "system");
    assert_eq!(first_start["status"], "done");
    assert_eq!(first_start["after"]["name"], first_start["entityName"]);
    let cli = Cli::at(&elsewhere.base);
    let listed = cli.run(&["audit", "list", "--action", "flow.deplyo"]).await;
    let told = listed.fails(1);
    assert!(told.contains("flow.deploy"), "{told}");
}

async fn the_address_is_that_of_the_client_before_trusted_proxies(service: &Service) {
    let forwarded = "203.0.113.9, 198.51.100.7, 10.1.2.3";
    let api = service.api().with_header("x-forwarded-for", forwarded);
    api.post("/api/v1/lookup-tables", &json!({"name": "t"}))
        .await;
    let told = entry(service.elsewhere(), "action=lookup_table.create").await;
    assert_eq!(told["address"], "198.51.100.7");
}

async fn calls_of_the_command_line_say_so_and_it_lists_them(service: &Service) {
    let api = service.api();
    let cli = Cli::at(&api.base);
    cli.run(&["lookup", "create", "countries"]).await.expect();
    let told = entry(service.elsewhere(), "via=cli").await;
    assert_eq!(told["action"], "lookup_table.create");
    let listed = cli
        .run(&["audit", "list", "--action", "lookup_table.create"])
        .await;
    assert!(listed.expect().contains("countries"));
    let target = FakeTarget::start().await;
    api.http_instance("erp", &target.url()).await;
    let listed = cli
        .run(&["audit", "list", "--entity-type", "connector"])
        .await;
    assert!(listed.expect().contains("erp"));
    let of_environment = ["audit", "list", "--environment-id", "development"];
    let listed = cli.run(&of_environment).await.expect();
    assert!(listed.contains("countries"), "{listed}");
    let unknown = ["audit", "list", "--environment-id", "developmnt"];
    let refused = cli.run(&unknown).await.fails(1);
    assert!(
        refused.contains("did you mean \"development\""),
        "{refused}"
    );
}
