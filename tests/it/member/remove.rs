//! `DELETE /members/{id}`: from the next call on, and at once for what lasts.

use futures::StreamExt;
use kanat_tests::cli::Cli;
use kanat_tests::on_both_databases;
use kanat_tests::token_issuer::Person;

use serde_json::json;

use super::{Organization, path_of};

on_both_databases!(
    Organization;
    a_removed_member_is_out_at_the_next_call,
    the_keys_of_a_removed_member_go_on_and_are_named,
    a_dry_run_does_not_remove_the_last_owner,
);

async fn a_removed_member_is_out_at_the_next_call(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    let member = organization.hires(&ada, "viewer").await;
    let api = organization.as_person(&ada);
    let live = api
        .request("GET", "/api/v1/messages/stream")
        .send()
        .await
        .unwrap();
    assert_eq!(live.status(), 200);
    organization
        .owner()
        .delete(&path_of(&member))
        .await
        .expect(204);
    let refused = api.get("/api/v1/flows").await;
    assert!(refused.text.contains("not a member"), "{}", refused.text);
    refused.expect_error(403, "PERMISSION_DENIED");
    let mut events = live.bytes_stream();
    while events.next().await.is_some() {}
    organization
        .owner()
        .get(&path_of(&member))
        .await
        .expect(404);
    let again = organization.owner().delete(&path_of(&member)).await;
    again.expect_error(404, "NOT_FOUND");
    let log = "/api/v1/audit-log?action=member.remove";
    let entry = organization.owner().get(log).await.expect(200)["data"][0].clone();
    assert_eq!(entry["before"]["email"], "ada@example.com");
}

async fn the_keys_of_a_removed_member_go_on_and_are_named(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    let member = organization.hires(&ada, "admin").await;
    let body = json!({ "name": "ci", "role": "editor" });
    let api = organization.as_person(&ada);
    let key = api.post("/api/v1/api-keys", &body).await.expect(201);
    let cli = Cli::at(&organization.owner().base);
    let remove = ["member", "remove", "ada@example.com"];
    let asked = cli.run(&remove).await.fails(1);
    assert!(asked.contains("but not the API keys"), "{asked}");
    let removed = cli.run(&[&remove[..], &["--yes"]].concat()).await;
    let id = key["id"].as_str().unwrap();
    assert!(
        removed
            .stderr
            .contains(&format!("`kanat api-key revoke {id}`")),
        "{}",
        removed.stderr
    );
    organization
        .owner()
        .get(&path_of(&member))
        .await
        .expect(404);
}

async fn a_dry_run_does_not_remove_the_last_owner(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    organization.hires(&ada, "owner").await;
    let cli = Cli::at(&organization.owner().base);
    let remove = ["member", "remove", "ada@example.com"];
    let refused = cli.run(&[&remove[..], &["--dry-run"]].concat()).await;
    let refused = refused.fails(1);
    assert!(refused.contains("the last owner stays"), "{refused}");
    let same = cli.run(&[&remove[..], &["--yes"]].concat()).await.fails(1);
    assert!(same.contains("the last owner stays"), "{same}");
}
