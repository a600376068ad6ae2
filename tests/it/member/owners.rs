//! The last owner stays, also where two changes come at once.

use kanat_tests::rest::text;
use kanat_tests::token_issuer::Person;
use serde_json::{Value, json};

use super::{Company, on_both_databases, path_of};

const KEYS: &str = "/api/v1/api-keys";

on_both_databases!(
    the_last_owner_is_neither_demoted_nor_removed,
    of_two_owners_who_remove_each_other_one_stays,
    the_last_owner_key_goes_once_a_member_is_an_owner,
);

async fn the_last_owner_is_neither_demoted_nor_removed(company: &Company) {
    let member = company
        .hires(&Person::new("Ada", "ada@example.com"), "owner")
        .await;
    company.invites("eve@example.com", "owner").await;
    let demoted = company
        .owner()
        .put(&path_of(&member), &json!({"role": "admin"}))
        .await;
    demoted.expect_error(400, "FAILED_PRECONDITION");
    let removed = company.elsewhere().delete(&path_of(&member)).await;
    removed.expect_error(400, "FAILED_PRECONDITION");
    company
        .hires(&Person::new("Bob", "bob@example.com"), "owner")
        .await;
    company
        .owner()
        .put(&path_of(&member), &json!({"role": "admin"}))
        .await
        .expect(200);
}

async fn of_two_owners_who_remove_each_other_one_stays(company: &Company) {
    let people = [
        Person::new("Ada", "ada@example.com"),
        Person::new("Bob", "bob@example.com"),
    ];
    let ada = company.hires(&people[0], "owner").await;
    let bob = company.hires(&people[1], "owner").await;
    let by_ada = company.owner().with_key(&company.token(&people[0]));
    let by_bob = company.as_person(&people[1]);
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
    let members = company.owner().get("/api/v1/members").await.expect(200);
    let owners = members["data"].as_array().unwrap().iter();
    assert_eq!(owners.filter(|member| member["role"] == "owner").count(), 1);
}

async fn the_last_owner_key_goes_once_a_member_is_an_owner(company: &Company) {
    let keys = company.owner().get(KEYS).await.expect(200);
    let key = format!("{KEYS}/{}", text(&keys["data"][0]["id"]));
    let refused = company.owner().delete(&key).await;
    refused.expect_error(400, "FAILED_PRECONDITION");
    let ada = Person::new("Ada", "ada@example.com");
    company.invites(&ada.email, "owner").await;
    let refused = company.owner().delete(&key).await;
    refused.expect_error(400, "FAILED_PRECONDITION");
    let api = company.as_person(&ada);
    api.get("/api/v1/me").await.expect(200);
    let made = json!({"name": "by Ada"});
    let made: Value = api.post(KEYS, &made).await.expect(201);
    assert!(made["expiresAt"].is_null(), "{made}");
    assert_eq!(made["createdBy"]["type"], "user");
    assert_eq!(made["createdBy"]["name"], "Ada");
    api.delete(&key).await.expect(204);
    company
        .owner()
        .get(KEYS)
        .await
        .expect_error(401, "UNAUTHENTICATED");
}
