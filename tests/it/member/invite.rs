//! `POST /members` and `POST /members/{id}/resend`: a link that shows once, for an address that
//! nobody has.

use kanat_tests::rest::text;
use kanat_tests::{Rest, on_both_databases};
use serde_json::json;

use super::{MEMBERS, Organization, path_of, token_of};

on_both_databases!(
    Organization;
    an_invitation_has_a_link_that_no_read_shows,
    an_address_has_one_member,
    an_invitation_that_is_sent_again_has_another_link,
    an_invitation_that_is_given_again_for_its_key_has_no_link,
    an_invitation_names_an_address_and_a_role,
    nobody_invites_people_of_more_rights,
    the_link_leads_to_a_page_that_names_the_next_commands,
);

async fn an_invitation_has_a_link_that_no_read_shows(organization: &Organization) {
    let invited = organization.invites("Ada@example.com", "editor").await;
    assert_eq!(invited["email"], "Ada@example.com");
    assert_eq!(invited["role"], "editor");
    assert_eq!(invited["status"], "invited");
    assert_eq!(invited["inviteSent"], false);
    assert_eq!(invited["invitedBy"]["type"], "api_key");
    assert!(invited["invitedAt"].is_string());
    assert!(invited["joinedAt"].is_null());
    let token = token_of(&invited);
    assert!(token.len() >= 22, "at least 128 bits: {token}");
    assert!(text(&invited["inviteUrl"]).starts_with("http://"));
    let api = organization.elsewhere();
    for path in [MEMBERS.to_owned(), path_of(&invited)] {
        let read = api.get(&path).await;
        assert!(!read.text.contains(&token), "{path}");
        read.expect(200);
    }
    let log = api.get("/api/v1/audit-log?action=member.invite").await;
    assert!(!log.text.contains(&token));
    assert_eq!(log.expect(200)["data"][0]["entityName"], "Ada@example.com");
}

async fn an_address_has_one_member(organization: &Organization) {
    let first = organization.invites("ada@example.com", "viewer").await;
    let api = organization.elsewhere();
    let again = json!({"email": "ADA@Example.com", "role": "editor"});
    api.post(MEMBERS, &again)
        .await
        .expect_error(409, "ALREADY_EXISTS");
    api.delete(&path_of(&first)).await.expect(204);
    api.post(MEMBERS, &again).await.expect(201);
}

async fn an_invitation_that_is_sent_again_has_another_link(organization: &Organization) {
    let first = organization.invites("ada@example.com", "viewer").await;
    let resend = format!("{}/resend", path_of(&first));
    let again = organization
        .elsewhere()
        .post(&resend, &json!({}))
        .await
        .expect(200);
    assert_eq!(again["id"], first["id"]);
    assert_ne!(token_of(&again), token_of(&first));
    let ada = kanat_tests::token_issuer::Person::new("Ada", "ada@example.com");
    let accept = format!("{MEMBERS}/accept");
    let former = json!({"token": token_of(&first)});
    let person = organization.as_person(&ada);
    person.post(&accept, &former).await.expect(400);
    let newer = json!({"token": token_of(&again)});
    person.post(&accept, &newer).await.expect(200);
    let resent = organization.owner().post(&resend, &json!({})).await;
    resent.expect_error(400, "FAILED_PRECONDITION");
}

async fn an_invitation_that_is_given_again_for_its_key_has_no_link(organization: &Organization) {
    let with_key = |api: &Rest| api.with_header("idempotency-key", "invite-ada");
    let body = json!({"email": "ada@example.com", "role": "viewer"});
    let first = with_key(organization.owner());
    let first = first.post(MEMBERS, &body).await.expect(201);
    assert!(first["inviteUrl"].is_string());
    let again = with_key(organization.elsewhere());
    let again = again.post(MEMBERS, &body).await.expect(201);
    assert_eq!(again["id"], first["id"]);
    assert!(again["inviteUrl"].is_null());
    assert_eq!(again["inviteUrlShown"], false);
}

async fn an_invitation_names_an_address_and_a_role(organization: &Organization) {
    for (body, field) in [
        (json!({"role": "viewer"}), "email"),
        (json!({"email": "", "role": "viewer"}), "email"),
        (json!({"email": "nobody", "role": "viewer"}), "email"),
        (
            json!({"email": "a@b\r\nBcc: c@d", "role": "viewer"}),
            "email",
        ),
        (json!({"email": "a@b.example"}), "role"),
        (json!({"email": "a@b.example", "role": "king"}), "role"),
        (
            json!({"email": "a@b.example", "role": "viewer", "name": "A"}),
            "name",
        ),
    ] {
        let refused = organization.owner().post(MEMBERS, &body).await;
        let details = refused.expect_error(400, "INVALID_ARGUMENT");
        assert_eq!(details[0]["field"], field, "{body}");
    }
}

async fn nobody_invites_people_of_more_rights(organization: &Organization) {
    let api = organization.owner();
    let key = json!({"name": "runs", "role": "admin"});
    let key = api.post("/api/v1/api-keys", &key).await.expect(201);
    let admin = api.with_key(&text(&key["key"]));
    let owner = json!({"email": "a@b.example", "role": "owner"});
    let refused = admin.post(MEMBERS, &owner).await;
    refused.expect_error(403, "PERMISSION_DENIED");
    let invited = organization.invites("a@b.example", "owner").await;
    let resend = format!("{}/resend", path_of(&invited));
    let refused = admin.post(&resend, &json!({})).await;
    refused.expect_error(403, "PERMISSION_DENIED");
}

async fn the_link_leads_to_a_page_that_names_the_next_commands(organization: &Organization) {
    let page = organization
        .elsewhere()
        .without_key()
        .get("/api/v1/invite")
        .await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text.contains("kanat member accept '"), "{}", page.text);
    assert!(!page.text.contains("<script"));
}
