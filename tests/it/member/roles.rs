//! Roles that come from the provider's tokens.

use kanat_tests::on_both_databases;
use kanat_tests::token_issuer::Person;
use serde_json::{Value, json};

use super::{MEMBERS, Organization, path_of};

on_both_databases!(
    Organization with [("KANAT_OIDC_ROLE_CLAIM", "https://example.com/role")];
    the_claim_gives_the_role_of_each_call_and_makes_members,
);

on_both_databases!(
    Organization with [("KANAT_OIDC_TRUST_EMAIL", "true")];
    addresses_of_a_trusted_provider_need_no_word_on_their_verification,
);

on_both_databases!(
    Organization with [("KANAT_OIDC_SCOPES", "openid,email")];
    providers_are_listed_for_those_who_log_in,
);

async fn the_claim_gives_the_role_of_each_call_and_makes_members(organization: &Organization) {
    let ada = Person::new("Ada", "ada@example.com");
    let as_role =
        |role: Value| organization.with_claims(&ada, &json!({"https://example.com/role": role}));
    for wrong in [Value::Null, json!("king"), json!(["owner"]), json!("Owner")] {
        let refused = as_role(wrong).get("/api/v1/me").await;
        refused.expect_error(403, "PERMISSION_DENIED");
    }
    let members = organization.owner().get(MEMBERS).await.expect(200);
    assert_eq!(members["pagination"]["total"], 0);
    let me = as_role(json!("editor")).get("/api/v1/me").await.expect(200);
    assert_eq!(me["role"], "editor");
    let member = organization.owner().get(MEMBERS).await.expect(200)["data"][0].clone();
    assert_eq!(member["id"], me["id"]);
    assert_eq!(member["status"], "active");
    assert!(member["invitedBy"].is_null());
    let lowered = as_role(json!("viewer")).get("/api/v1/me").await.expect(200);
    assert_eq!(lowered["role"], "viewer");
    assert_eq!(lowered["id"], me["id"]);
    let missing = as_role(Value::Null).get("/api/v1/me").await;
    missing.expect_error(403, "PERMISSION_DENIED");
    let set = organization
        .owner()
        .put(&path_of(&member), &json!({"role": "admin"}))
        .await;
    set.expect_error(400, "INVALID_ARGUMENT");
    let log = "/api/v1/audit-log?entityType=member";
    let log = organization.owner().get(log).await.expect(200);
    let actions = log["data"].as_array().unwrap().iter().rev();
    let actions: Vec<_> = actions.map(|entry| entry["action"].clone()).collect();
    assert_eq!(actions, ["member.create", "member.update"]);
    assert_eq!(log["data"][0]["before"]["role"], "editor");
    assert_eq!(log["data"][0]["after"]["role"], "viewer");
}

async fn addresses_of_a_trusted_provider_need_no_word_on_their_verification(
    organization: &Organization,
) {
    let ada = Person {
        is_verified: false,
        ..Person::new("Ada", "ada@example.com")
    };
    organization.invites(&ada.email, "viewer").await;
    let denied = organization.as_person(&ada).get("/api/v1/me").await;
    denied.expect_error(403, "PERMISSION_DENIED");
    let silent = organization.with_claims(&ada, &json!({"email_verified": null}));
    silent.get("/api/v1/me").await.expect(200);
}

async fn providers_are_listed_for_those_who_log_in(organization: &Organization) {
    let anybody = organization.elsewhere().without_key();
    let providers = anybody.get("/api/v1/auth/providers").await.expect(200);
    let expected = json!([{
        "issuer": organization.issuer.url(),
        "clientId": kanat_tests::token_issuer::CLIENT_ID,
        "scopes": ["openid", "email"],
    }]);
    assert_eq!(providers, expected);
}
