//! Invitations by mail.

use kanat_testing_mail::MailServer;
use kanat_tests::on_both_databases;
use kanat_tests::rest::text;
use kanat_tests::token_issuer::Person;
use serde_json::json;

use super::{Organization, path_of, token_of};

const SENDER: (&str, &str) = ("KANAT_SMTP_FROM", "Kanat <kanat@example.com>");

/// An organization whose service sends mail by a server.
struct Mailing<const REFUSES: bool> {
    server: MailServer,
    organization: Organization,
}

type Mailed = Mailing<false>;
type Refused = Mailing<true>;

impl<const REFUSES: bool> Mailing<REFUSES> {
    async fn on_sqlite_with(_: &[(&str, &str)]) -> Self {
        let server = Self::server().await;
        let settings = &[("KANAT_SMTP_URL", &*server.url()), SENDER];
        let organization = Organization::on_sqlite_with(settings).await;
        Self {
            server,
            organization,
        }
    }

    async fn on_postgresql_with(_: &[(&str, &str)]) -> Self {
        let server = Self::server().await;
        let settings = &[("KANAT_SMTP_URL", &*server.url()), SENDER];
        let organization = Organization::on_postgresql_with(settings).await;
        Self {
            server,
            organization,
        }
    }

    async fn server() -> MailServer {
        if REFUSES {
            MailServer::refusing().await
        } else {
            MailServer::start().await
        }
    }
}

on_both_databases!(Mailed; the_mail_has_the_link_as_it_stands);
on_both_databases!(Refused; an_invitation_whose_mail_is_not_taken_is_good_all_the_same);

async fn the_mail_has_the_link_as_it_stands(mailed: &Mailed) {
    let Mailing {
        server,
        organization,
    } = mailed;
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
        .elsewhere()
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

async fn an_invitation_whose_mail_is_not_taken_is_good_all_the_same(refused: &Refused) {
    let organization = &refused.organization;
    let ada = Person::new("Ada", "ada@example.com");
    let invited = organization.invites(&ada.email, "editor").await;
    assert_eq!(invited["inviteSent"], false);
    let token = json!({"token": token_of(&invited)});
    let api = organization.as_person(&ada);
    api.post("/api/v1/members/accept", &token).await.expect(200);
}
