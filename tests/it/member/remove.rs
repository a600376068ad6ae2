//! `DELETE /members/{id}`: from the next call on, and at once for what lasts.

use futures::StreamExt;
use kanat_tests::on_both_databases;
use kanat_tests::token_issuer::Person;

use super::{Organization, path_of};

on_both_databases!(Organization; a_removed_member_is_out_at_the_next_call);

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
