//! Invitations by mail.

use kanat_testing_mail::MailServer;
use kanat_tests::rest::text;
use kanat_tests::token_issuer::Person;
use serde_json::json;

use super::{Organization, path_of, token_of};

const FROM: &str = "Kanat <kanat@example.com>";

async fn with_mail(server: &MailServer) -> Organization {
    Organization::on_sqlite_with(&[("KANAT_SMTP_URL", &server.url()), ("KANAT_SMTP_FROM", FROM)])
        .await
}

#[tokio::test]
async fn the_mail_has_the_link_as_it_stands() {
    let server = MailServer::start().await;
    let organization = with_mail(&server).await;
    let invited = organization.invites("ada@example.com", "editor").await;
    assert_eq!(invited["inviteSent"], true);
    let mail = server.mails().remove(0);
    assert_eq!(mail.from, "kanat@example.com");
    assert_eq!(mail.to, ["ada@example.com"]);
    assert!(
        mail.raw.contains(&text(&invited["inviteUrl"])),
        "{}",
        mail.raw
    );
    let resend = format!("{}/resend", path_of(&invited));
    let again = organization
        .owner()
        .post(&resend, &json!({}))
        .await
        .expect(200);
    assert_eq!(again["inviteSent"], true);
    let mail = server.mails().remove(1);
    assert!(
        mail.text.contains(&text(&again["inviteUrl"])),
        "{}",
        mail.text
    );
}

#[tokio::test]
async fn an_invitation_whose_mail_is_not_taken_is_good_all_the_same() {
    let server = MailServer::refusing().await;
    let organization = with_mail(&server).await;
    let ada = Person::new("Ada", "ada@example.com");
    let invited = organization.invites(&ada.email, "editor").await;
    assert_eq!(invited["inviteSent"], false);
    let token = json!({"token": token_of(&invited)});
    let api = organization.as_person(&ada);
    api.post("/api/v1/members/accept", &token).await.expect(200);
}
