//! `PUT /members/{id}`: a role that counts at the next call, and lost updates that are refused.

use kanat_tests::on_both_databases;
use kanat_tests::token_issuer::Person;
use serde_json::json;

use super::{Organization, path_of};

on_both_databases!(Organization; a_change_of_role_counts_at_the_next_call);

async fn a_change_of_role_counts_at_the_next_call(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    let member = organization.hires(&ada, "editor").await;
    let api = organization.as_person(&ada);
    let table = json!({"name": "t"});
    api.post("/api/v1/lookup-tables", &table).await.expect(201);
    let read = organization.owner().get(&path_of(&member)).await;
    let tag = read.header("etag").to_owned();
    let in_time = organization.owner().with_header("if-match", &tag);
    let changed = in_time
        .put(&path_of(&member), &json!({"role": "viewer"}))
        .await;
    assert_ne!(changed.header("etag"), tag);
    assert_eq!(changed.expect(200)["role"], "viewer");
    let refused = api
        .post("/api/v1/lookup-tables", &json!({"name": "u"}))
        .await;
    assert_eq!(
        refused.json()["error"],
        "a member of role viewer may not do this"
    );
    refused.expect_error(403, "PERMISSION_DENIED");
    let lost = in_time
        .put(&path_of(&member), &json!({"role": "admin"}))
        .await;
    lost.expect_error(409, "ABORTED");
    let mut sent_back = organization
        .owner()
        .get(&path_of(&member))
        .await
        .expect(200);
    sent_back["role"] = "editor".into();
    let kept = organization
        .owner()
        .put(&path_of(&member), &sent_back)
        .await
        .expect(200);
    assert_eq!(kept["role"], "editor");
    let wrong = organization
        .owner()
        .patch(&path_of(&member), &json!({"role": "king"}))
        .await;
    wrong.expect_error(400, "INVALID_ARGUMENT");
    let by_member = api.put(&path_of(&member), &json!({"role": "owner"})).await;
    by_member.expect_error(403, "PERMISSION_DENIED");
}
