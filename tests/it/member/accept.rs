//! `POST /members/accept`: an invitation is used once, by the person of its address.

use kanat_tests::rest::text;
use kanat_tests::token_issuer::Person;
use kanat_tests::{Rest, on_both_databases};
use serde_json::json;

use super::{MEMBERS, Organization, token_of};

const ACCEPT: &str = "/api/v1/members/accept";

on_both_databases!(
    Organization;
    a_person_accepts_once,
    a_repeated_acceptance_has_the_first_answer,
    an_invitation_is_for_the_verified_address,
    of_two_who_accept_at_once_one_does,
    an_invited_person_joins_by_the_first_call,
);

async fn a_person_accepts_once(organization: &Organization) {
    let ada = Person::new("Ada Lovelace", "ada@example.com");
    let invited = organization.invites(&ada.email, "editor").await;
    let token = json!({"token": token_of(&invited)});
    let api = organization.as_person(&ada);
    let member = api.post(ACCEPT, &token).await.expect(200);
    assert_eq!(member["id"], invited["id"]);
    assert_eq!(member["status"], "active");
    assert_eq!(member["name"], "Ada Lovelace");
    assert!(member["joinedAt"].is_string());
    let used = api.post(ACCEPT, &token).await;
    used.expect_error(400, "INVALID_ARGUMENT");
    let repeated = api.with_header("idempotency-key", &"k".repeat(300));
    repeated.post(ACCEPT, &token).await.expect(400);
    let me = api.get("/api/v1/me").await.expect(200);
    assert_eq!(me["type"], "user");
    assert_eq!(me["id"], member["id"]);
    assert_eq!(me["email"], "ada@example.com");
    assert_eq!(me["role"], "editor");
    assert_eq!(me["permissions"], json!(["read", "write"]));
    let seen = organization
        .owner()
        .get(&super::path_of(&member))
        .await
        .expect(200);
    assert!(seen["lastSeenAt"].is_string());
    let log = "/api/v1/audit-log?action=member.accept";
    let entry = organization.owner().get(log).await.expect(200)["data"][0].clone();
    assert_eq!(entry["actor"]["type"], "user");
    assert_eq!(entry["actor"]["id"], member["id"]);
    assert_eq!(entry["actor"]["email"], "ada@example.com");
}

async fn a_repeated_acceptance_has_the_first_answer(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    let invited = organization.invites(&ada.email, "editor").await;
    let token = json!({"token": token_of(&invited)});
    let accept = async |api: &Rest| {
        let api = api.with_key(&organization.token(&ada));
        let api = api.with_header("idempotency-key", "accept-1");
        api.post(ACCEPT, &token).await
    };
    let first = accept(organization.owner()).await.expect(200);
    let again = accept(organization.elsewhere()).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.expect(200), first);
}

async fn an_invitation_is_for_the_verified_address(organization: &Organization) {
    let invited = organization.invites("ada@example.com", "editor").await;
    let token = json!({"token": token_of(&invited)});
    let eve = Person::new("Eve", "eve@example.com");
    let unverified = Person {
        is_verified: false,
        ..Person::new("Ada", "ada@example.com")
    };
    for person in [&eve, &unverified] {
        let refused = organization.as_person(person).post(ACCEPT, &token).await;
        refused.expect_error(403, "PERMISSION_DENIED");
        let refused = organization.as_person(person).get("/api/v1/flows").await;
        refused.expect_error(403, "PERMISSION_DENIED");
    }
    let by_key = organization.owner().post(ACCEPT, &token).await;
    by_key.expect_error(403, "PERMISSION_DENIED");
    let nobody = organization
        .owner()
        .without_key()
        .post(ACCEPT, &token)
        .await;
    nobody.expect_error(401, "UNAUTHENTICATED");
    let ada = organization.as_person(&Person::new("Ada", "ada@example.com"));
    for wrong in ["", "x", &"A".repeat(43)] {
        let refused = ada.post(ACCEPT, &json!({"token": wrong})).await;
        let details = refused.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], "token");
    }
}

async fn of_two_who_accept_at_once_one_does(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    let other = Person {
        subject: "another-account".to_owned(),
        ..ada.clone()
    };
    let invited = organization.invites(&ada.email, "viewer").await;
    let token = json!({"token": token_of(&invited)});
    let apis = [organization.as_person(&ada), organization.as_person(&other)];
    let (one, two) = tokio::join!(apis[0].post(ACCEPT, &token), apis[1].post(ACCEPT, &token));
    let mut statuses = [one.status, two.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 400]);
    let members = organization.owner().get(MEMBERS).await.expect(200);
    assert_eq!(members["pagination"]["total"], 1);
}

async fn an_invited_person_joins_by_the_first_call(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    let invited = organization.invites("ADA@example.com", "viewer").await;
    let api = organization.as_person(&ada);
    api.get("/api/v1/flows").await.expect(200);
    let member = organization
        .owner()
        .get(&super::path_of(&invited))
        .await
        .expect(200);
    assert_eq!(member["status"], "active");
    let same_address = Person {
        subject: "another-account".to_owned(),
        ..ada.clone()
    };
    let other = organization
        .as_person(&same_address)
        .get("/api/v1/flows")
        .await;
    other.expect_error(403, "PERMISSION_DENIED");
    let token = json!({"token": token_of(&invited)});
    let late = api.post(ACCEPT, &token).await.expect(200);
    assert_eq!(text(&late["id"]), text(&invited["id"]));
}
