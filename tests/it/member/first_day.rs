//! The first day of an organization, as docs/first-day.md tells it.

use kanat_tests::on_both_databases;
use kanat_tests::rest::text;
use kanat_tests::token_issuer::Person;
use serde_json::{Value, json};

use super::{MEMBERS, Organization, token_of};
use crate::webhook::passthrough;

on_both_databases!(Organization; an_organization_has_its_first_day);

async fn an_organization_has_its_first_day(organization: &Organization) {
    // The key of the first start invites the first owner, who logs in and takes over.
    let ada = Person::new("Ada Lovelace", "ada@example.com");
    organization.hires(&ada, "owner").await;
    let owner = organization.as_person(&ada);
    let keys = owner.get("/api/v1/api-keys").await.expect(200);
    let key = format!("/api/v1/api-keys/{}", text(&keys["data"][0]["id"]));
    owner.delete(&key).await.expect(204);
    organization.owner().get("/api/v1/me").await.expect(401);

    // Production changes by promotion alone, and has its own words.
    let environments = owner.get("/api/v1/environments").await.expect(200);
    let environments = environments["data"].as_array().unwrap().clone();
    let production = environments
        .iter()
        .find(|found| found["name"] == "production");
    let path = format!("/api/v1/environments/{}", text(&production.unwrap()["id"]));
    let protected = json!({"protected": true, "variables": {"REGION": "eu"}});
    owner.put(&path, &protected).await.expect(200);

    // An editor comes, builds in development, and is refused in production.
    let bob = Person::new("Bob", "bob@example.com");
    let invitation = json!({"email": bob.email, "role": "editor"});
    let invitation = owner.post(MEMBERS, &invitation).await.expect(201);
    let editor = organization.as_person(&bob);
    let token = json!({"token": token_of(&invitation)});
    editor
        .post("/api/v1/members/accept", &token)
        .await
        .expect(200);
    let flow = json!({"name": "orders", "yamlConfig": passthrough("orders")});
    editor.post("/api/v1/flows", &flow).await.expect(201);
    let in_production = editor.with_header("x-environment", "production");
    let refused = in_production.post("/api/v1/flows", &flow).await;
    assert!(refused.text.contains("is protected"), "{}", refused.text);
    refused.expect_error(403, "PERMISSION_DENIED");
    in_production.get("/api/v1/flows").await.expect(200);

    // What was built is found by its words.
    let found = editor.get("/api/v1/search?q=ord").await.expect(200);
    assert_eq!(found["data"][0]["name"], "orders");

    // The audit log tells it all, and is whole.
    let log = owner.get("/api/v1/audit-log?limit=500").await.expect(200);
    let entries: Vec<(String, String, String)> = log["data"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|entry| {
            let of = |value: &Value| text(value);
            (
                of(&entry["actor"]["name"]),
                of(&entry["action"]),
                of(&entry["status"]),
            )
        })
        .collect();
    for (actor, action, status) in [
        ("owner", "member.invite", "done"),
        ("Ada Lovelace", "member.accept", "done"),
        ("Ada Lovelace", "api_key.revoke", "done"),
        ("Ada Lovelace", "environment.update", "done"),
        ("Ada Lovelace", "member.invite", "done"),
        ("Bob", "member.accept", "done"),
        ("Bob", "flow.create", "done"),
        ("Bob", "flow.create", "denied"),
    ] {
        let wanted = (actor.to_owned(), action.to_owned(), status.to_owned());
        assert!(
            entries.contains(&wanted),
            "{wanted:?} is not in {entries:?}"
        );
    }
    let verified = owner.get("/api/v1/audit-log/verify").await.expect(200);
    assert_eq!(verified["intact"], true, "{verified}");
}
