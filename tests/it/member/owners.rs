//! The last owner stays, also where two changes come at once.

use kanat_tests::on_both_databases;
use kanat_tests::rest::text;
use kanat_tests::token_issuer::Person;
use serde_json::{Value, json};

use super::{Organization, path_of};

const KEYS: &str = "/api/v1/api-keys";

on_both_databases!(
    Organization;
    the_last_owner_is_neither_demoted_nor_removed,
    of_two_owners_who_remove_each_other_one_stays,
    the_last_owner_key_goes_once_a_member_is_an_owner,
);

async fn the_last_owner_is_neither_demoted_nor_removed(organization: &Organization) {
    let member = organization
        .hires(&Person::new("Ada", "ada@example.com"), "owner")
        .await;
    organization.invites("eve@example.com", "owner").await;
    let demoted = organization
        .owner()
        .put(&path_of(&member), &json!({"role": "admin"}))
        .await;
    demoted.expect_error(400, "FAILED_PRECONDITION");
    let removed = organization.elsewhere().delete(&path_of(&member)).await;
    removed.expect_error(400, "FAILED_PRECONDITION");
    organization
        .hires(&Person::new("Bob", "bob@example.com"), "owner")
        .await;
    organization
        .owner()
        .put(&path_of(&member), &json!({"role": "admin"}))
        .await
        .expect(200);
}

async fn of_two_owners_who_remove_each_other_one_stays(organization: &Organization) {
    let people = [
        Person::new("Ada", "ada@example.com"),
        Person::new("Bob", "bob@example.com"),
    ];
    let ada = organization.hires(&people[0], "owner").await;
    let bob = organization.hires(&people[1], "owner").await;
    let by_ada = organization
        .owner()
        .with_key(&organization.token(&people[0]));
    let by_bob = organization.as_person(&people[1]);
    let path_of_ada = path_of(&ada);
    let path_of_bob = path_of(&bob);
    let viewer = json!({"role": "viewer"});
    let (one, other) = tokio::join!(
        by_ada.delete(&path_of_bob),
        by_bob.put(&path_of_ada, &viewer),
    );
    let done = |status: u16| (200..300).contains(&status);
    assert_ne!(
        done(one.status),
        done(other.status),
        "{} {}",
        one.status,
        other.status
    );
    let members = organization
        .owner()
        .get("/api/v1/members")
        .await
        .expect(200);
    let owners = members["data"].as_array().unwrap().iter();
    assert_eq!(owners.filter(|member| member["role"] == "owner").count(), 1);
}

async fn the_last_owner_key_goes_once_a_member_is_an_owner(organization: &Organization) {
    let keys = organization.owner().get(KEYS).await.expect(200);
    let key = format!("{KEYS}/{}", text(&keys["data"][0]["id"]));
    let refused = organization.owner().delete(&key).await;
    refused.expect_error(400, "FAILED_PRECONDITION");
    let ada = Person::new("Ada", "ada@example.com");
    organization.invites(&ada.email, "owner").await;
    let refused = organization.owner().delete(&key).await;
    refused.expect_error(400, "FAILED_PRECONDITION");
    let api = organization.as_person(&ada);
    api.get("/api/v1/me").await.expect(200);
    let made = json!({"name": "by Ada"});
    let made: Value = api.post(KEYS, &made).await.expect(201);
    assert!(made["expiresAt"].is_null(), "{made}");
    assert_eq!(made["createdBy"]["type"], "user");
    assert_eq!(made["createdBy"]["name"], "Ada");
    api.delete(&key).await.expect(204);
    organization
        .owner()
        .get(KEYS)
        .await
        .expect_error(401, "UNAUTHENTICATED");
}
