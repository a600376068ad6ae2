//! Transfers to servers of every kind.

use kanat_testing_mail::{MailServer, Options, Tls};

use super::*;

const LINK: &str = "https://kanat.example.com/api/v1/invite\
                    #token=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn mail() -> Mail {
    Mail {
        to: "ada@example.com".to_owned(),
        subject: "Çağrı to Kanat".to_owned(),
        text: format!("Hello,\n.\n{LINK}\n"),
    }
}

fn mailer(url: &str) -> Mailer {
    let sender = "Kanat <kanat@example.com>".parse().unwrap();
    Mailer::new(SmtpServer::parse(url).unwrap(), sender).unwrap()
}

/// A client that also trusts the certificate of the server.
fn trusting(server: &MailServer, url: &str) -> Mailer {
    let certificate = Certificate::from_pem(server.certificate_pem().as_bytes()).unwrap();
    let sender = "kanat@example.com".parse().unwrap();
    Mailer::trusting(SmtpServer::parse(url).unwrap(), sender, Some(certificate)).unwrap()
}

async fn server_with(tls: Tls) -> MailServer {
    MailServer::with(Options {
        tls,
        ..Options::default()
    })
    .await
}

#[tokio::test]
async fn a_mail_arrives_with_its_link_as_it_stands() {
    let server = MailServer::start().await;
    mailer(&server.url()).send(mail()).await.unwrap();
    let mails = server.mails();
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0].from, "kanat@example.com");
    assert_eq!(mails[0].to, ["ada@example.com"]);
    assert_eq!(mails[0].subject, "Çağrı to Kanat");
    assert_eq!(mails[0].text, mail().text);
    assert_eq!(mails[0].header("From"), "Kanat <kanat@example.com>");
    assert_eq!(mails[0].header("Content-Type"), "text/plain; charset=utf-8");
    assert_eq!(mails[0].header("Content-Transfer-Encoding"), "7bit");
    assert_eq!(mails[0].header("Auto-Submitted"), "auto-generated");
    assert!(!mails[0].header("Date").is_empty());
    assert!(!mails[0].header("Message-ID").is_empty());
    assert!(!mails[0].is_encrypted);
}

#[tokio::test]
async fn a_text_of_unicode_is_sent_in_eight_bits() {
    let server = MailServer::start().await;
    let text = format!("Merhaba Çağrı,\n\n{LINK}\n");
    let sent = Mail {
        text: text.clone(),
        ..mail()
    };
    mailer(&server.url()).send(sent).await.unwrap();
    let received = &server.mails()[0];
    assert_eq!(received.text, text);
    assert_eq!(received.header("Content-Transfer-Encoding"), "8bit");
}

#[tokio::test]
async fn offered_starttls_is_used_whatever_the_certificate() {
    let server = server_with(Tls::Offered).await;
    mailer(&server.url()).send(mail()).await.unwrap();
    assert!(server.mails()[0].is_encrypted);
}

#[tokio::test]
async fn required_tls_takes_a_trusted_certificate() {
    let server = server_with(Tls::Offered).await;
    let url = format!("{}?tls=required", server.url());
    trusting(&server, &url).send(mail()).await.unwrap();
    assert!(server.mails()[0].is_encrypted);

    let error = mailer(&url).send(mail()).await.unwrap_err();
    assert!(matches!(error, MailError::Connection(_)), "{error}");
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn required_tls_that_is_not_offered_is_an_error() {
    let server = MailServer::start().await;
    let url = format!("{}?tls=required", server.url());
    let error = mailer(&url).send(mail()).await.unwrap_err();
    assert_eq!(error, MailError::NoTls);
    assert_eq!(server.mails(), []);
}

#[tokio::test]
async fn smtps_is_encrypted_from_the_start() {
    let server = server_with(Tls::Implicit).await;
    trusting(&server, &server.url()).send(mail()).await.unwrap();
    assert!(server.mails()[0].is_encrypted);

    let error = mailer(&server.url()).send(mail()).await.unwrap_err();
    assert!(matches!(error, MailError::Connection(_)), "{error}");
}

#[tokio::test]
async fn user_and_password_of_the_url_are_used() {
    let server = MailServer::with(Options {
        tls: Tls::Offered,
        login: Some(("kanat".to_owned(), "hunter2".to_owned())),
        ..Options::default()
    })
    .await;
    mailer(&server.url()).send(mail()).await.unwrap();
    assert_eq!(server.mails()[0].login, server_login("hunter2"));

    let wrong = server.url().replace("hunter2", "hunter3");
    let mailer = mailer(&wrong);
    let error = mailer.send(mail()).await.unwrap_err();
    assert_eq!(error, MailError::Credentials("it answers 535".to_owned()));
    let shown = format!("{error} {error:?} {mailer:?}");
    assert!(!shown.contains("hunter3"), "{shown}");
}

fn server_login(password: &str) -> Option<(String, String)> {
    Some(("kanat".to_owned(), password.to_owned()))
}

#[tokio::test]
async fn a_password_is_not_given_to_a_server_that_offers_no_login() {
    let server = MailServer::start().await;
    let url = server.url().replace("smtp://", "smtp://kanat:hunter2@");
    let error = mailer(&url).send(mail()).await.unwrap_err();
    assert!(matches!(error, MailError::Credentials(_)), "{error}");
    assert_eq!(server.mails(), []);
}

#[tokio::test]
async fn a_refusal_is_an_error_with_the_words_of_the_server() {
    let server = MailServer::refusing().await;
    let error = mailer(&server.url()).send(mail()).await.unwrap_err();
    assert_eq!(
        error,
        MailError::Refused("550 5.1.1 no such user".to_owned())
    );
}

#[tokio::test]
async fn a_server_that_never_answers_ends_in_a_timeout() {
    let server = MailServer::silent().await;
    let mut mailer = mailer(&server.url());
    mailer.timeout = Duration::from_millis(20);
    assert_eq!(mailer.send(mail()).await, Err(MailError::Timeout));
}

#[tokio::test]
async fn an_accepted_mail_is_sent_although_the_server_says_nothing_more() {
    let server = MailServer::with(Options {
        ends_silent: true,
        ..Options::default()
    })
    .await;
    assert_eq!(mailer(&server.url()).send(mail()).await, Ok(()));
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    let server = MailServer::start().await;
    let url = server.url();
    drop(server);
    let error = mailer(&url).send(mail()).await.unwrap_err();
    assert!(matches!(error, MailError::Connection(_)), "{error}");
}
