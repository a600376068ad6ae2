//! Members over a real store: whom a token is about, and who stays.

use std::sync::Arc;

use kanat_model::Code;

use super::*;
use crate::app::testing;

const ISSUER: &str = "https://issuer.example";

fn person(subject: &str, email: Option<&str>, role: ClaimedRole) -> Identity {
    Identity::of(ISSUER, subject, email, role)
}

fn token(url: &Secret<String>) -> String {
    let (_, token) = url.expose().split_once("#token=").unwrap();
    token.to_owned()
}

async fn invited(call: &Call, email: &str, role: &str) -> (Member, String) {
    let invitation = invite(call, email, role).await.unwrap();
    let token = token(&invitation.url.unwrap());
    (invitation.member, token)
}

async fn accepted(app: &App, person: Identity, token: &str) -> Result<Member> {
    let mut call = testing::call(app, Role::Viewer).await;
    call.caller.credential = Credential::Person(Arc::new(person));
    accept(call, token).await
}

#[tokio::test]
async fn an_invitation_is_accepted_once_by_the_person_of_its_address() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let owner = testing::call(&app, Role::Owner).await;
    let (member, token) = invited(&owner, "Ada@example.com", "editor").await;
    assert_eq!(member.status(), Status::Invited);
    let stranger = person("eve", Some("eve@example.com"), ClaimedRole::NotAsked);
    let unverified = person("ada", None, ClaimedRole::NotAsked);
    for other in [stranger, unverified] {
        let refused = accepted(&app, other, &token).await.unwrap_err();
        assert_eq!(refused.code, Code::PermissionDenied);
    }
    let ada = || person("ada", Some("ada@EXAMPLE.com"), ClaimedRole::NotAsked);
    let joined = accepted(&app, ada(), &token).await.unwrap();
    assert_eq!(joined.status(), Status::Active);
    assert_eq!(joined.role, "editor");
    let used = accepted(&app, ada(), &token).await.unwrap_err();
    assert_eq!(used.code, Code::InvalidArgument);
    let account = &owner.caller.account_id;
    assert_eq!(
        provision_member(&app, account, &ada()).await.unwrap(),
        joined
    );
}

#[tokio::test]
async fn an_invitation_that_is_sent_again_has_another_link() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let owner = testing::call(&app, Role::Owner).await;
    let (member, former) = invited(&owner, "ada@example.com", "viewer").await;
    let again = resend(&owner, &member.id).await.unwrap();
    let ada = || person("ada", Some("ada@example.com"), ClaimedRole::NotAsked);
    let refused = accepted(&app, ada(), &former).await.unwrap_err();
    assert_eq!(refused.details[0].field, "token");
    let token = token(&again.url.unwrap());
    accepted(&app, ada(), &token).await.unwrap();
    let active = resend(&owner, &member.id).await.err().unwrap();
    assert_eq!(active.code, Code::FailedPrecondition);
}

#[tokio::test]
async fn the_first_token_of_an_invited_address_makes_a_member_who_may_still_use_the_link() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let owner = testing::call(&app, Role::Owner).await;
    let account = &owner.caller.account_id;
    let (member, token) = invited(&owner, "ada@example.com", "viewer").await;
    let ada = person("ada", Some("ada@example.com"), ClaimedRole::NotAsked);
    let joined = provision_member(&app, account, &ada).await.unwrap();
    assert_eq!(joined.id, member.id);
    let other = person("other", Some("ada@example.com"), ClaimedRole::NotAsked);
    let refused = provision_member(&app, account, &other).await.unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    let refused = accepted(&app, other, &token).await.unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    assert_eq!(accepted(&app, ada, &token).await.unwrap().id, member.id);
}

#[tokio::test]
async fn roles_of_an_issuer_hold_from_the_next_call_on() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let account = testing::caller(&app, Role::Owner).await.account_id;
    let as_role = |role| person("ada", Some("ada@example.com"), role);
    let editor = as_role(ClaimedRole::Given(Role::Editor));
    let made = provision_member(&app, &account, &editor).await.unwrap();
    assert_eq!(made.role, "editor");
    assert_eq!(made.status(), Status::Active);
    let viewer = as_role(ClaimedRole::Given(Role::Viewer));
    let lowered = provision_member(&app, &account, &viewer).await.unwrap();
    assert_eq!(lowered.id, made.id);
    assert_eq!(lowered.role, "viewer");
    let refused = provision_member(&app, &account, &as_role(ClaimedRole::Missing)).await;
    assert_eq!(refused.unwrap_err().code, Code::PermissionDenied);
}

#[tokio::test]
async fn who_has_no_role_of_the_issuer_accepts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let owner = testing::call(&app, Role::Owner).await;
    let (member, token) = invited(&owner, "ada@example.com", "owner").await;
    let ada = person("ada", Some("ada@example.com"), ClaimedRole::Missing);
    let refused = accepted(&app, ada, &token).await.unwrap_err();
    assert_eq!(refused.code, Code::PermissionDenied);
    let stays = owner.get(&member.id).await.unwrap();
    assert_eq!(stays.status(), Status::Invited);
}

#[tokio::test]
async fn an_invitation_that_has_ended_keeps_nobody_out_to_whom_the_issuer_gives_a_role() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let owner = testing::call(&app, Role::Owner).await;
    let account = &owner.caller.account_id;
    let (mut member, _) = invited(&owner, "ada@example.com", "owner").await;
    member.invite_expires_at = Some(Timestamp::from_millis(1));
    let mut tx = app.store.begin().await.unwrap();
    member::update(&mut tx, &mut member).await.unwrap();
    tx.commit().await.unwrap();
    let uninvited = person("ada", Some("ada@example.com"), ClaimedRole::NotAsked);
    assert!(provision_member(&app, account, &uninvited).await.is_err());
    let editor = ClaimedRole::Given(Role::Editor);
    let ada = person("ada", Some("ada@example.com"), editor);
    let joined = provision_member(&app, account, &ada).await.unwrap();
    assert_eq!(joined.id, member.id);
    assert_eq!(joined.role, "editor");
}

#[tokio::test]
async fn the_last_owner_stays_and_then_the_last_owner_key_may_go() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let owner = testing::call(&app, Role::Owner).await;
    let account = &owner.caller.account_id;
    let join = async |name: &str| {
        let email = format!("{name}@example.com");
        let (_, token) = invited(&owner, &email, "owner").await;
        let person = person(name, Some(&email), ClaimedRole::NotAsked);
        accepted(&app, person, &token).await.unwrap()
    };
    let mut tx = app.store.begin().await.unwrap();
    assert!(refuse_last_owner_key(&mut tx, account).await.is_err());
    drop(tx);
    let ada = join("ada").await;
    invited(&owner, "eve@example.com", "owner").await;
    let demoted = update(&owner, &ada.id, Some("editor")).await.unwrap_err();
    assert_eq!(demoted.code, Code::FailedPrecondition);
    let removed = remove(&owner, &ada.id).await.unwrap_err();
    assert_eq!(removed.code, Code::FailedPrecondition);
    let mut tx = app.store.begin().await.unwrap();
    refuse_last_owner_key(&mut tx, account).await.unwrap();
    drop(tx);
    let bob = join("bob").await;
    let (one, other) = tokio::join!(
        update(&owner, &ada.id, Some("viewer")),
        remove(&owner, &bob.id)
    );
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
}

#[tokio::test]
async fn nobody_grants_more_than_they_have() {
    let folder = tempfile::tempdir().unwrap();
    let app = testing::in_folder(folder.path()).await;
    let owner = testing::call(&app, Role::Owner).await;
    let admin = testing::call(&app, Role::Admin).await;
    let (invited_owner, _) = invited(&owner, "ada@example.com", "owner").await;
    let denied = [
        invite(&admin, "bob@example.com", "owner").await.err(),
        resend(&admin, &invited_owner.id).await.err(),
        update(&admin, &invited_owner.id, Some("viewer"))
            .await
            .err(),
        remove(&admin, &invited_owner.id).await.err(),
    ];
    for error in denied {
        assert_eq!(error.unwrap().code, Code::PermissionDenied);
    }
}

#[test]
fn addresses_are_checked() {
    assert_eq!(check_email(" a@b ").unwrap(), "a@b");
    let long = format!("{}@b", "a".repeat(253));
    for wrong in [
        "",
        "a",
        "@b",
        "a@",
        "a@b@c",
        "a b@c",
        "a@\nb",
        "<a>@b.example",
        "a@b..example",
        "a@.example",
        "a\u{200b}@b.example",
        "\u{202e}a@b.example",
        &long,
    ] {
        assert_eq!(check_email(wrong).unwrap_err().details[0].field, "email");
    }
}
