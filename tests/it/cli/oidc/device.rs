//! `kanat login --device`: the person enters a code on another device.

use super::*;

const CODE: &str = "enter the code ";

/// Starts a login, and returns it with the code that it shows.
async fn begin(cli: &Cli, service: &Service) -> (Pending, String) {
    let mut login = Pending::start(cli, &["login", "--device", "--url", &service.url()]);
    let line = login.line_with(CODE).await;
    let (_, code) = line.split_once(CODE).unwrap();
    let code = code.trim_end_matches(':').to_owned();
    (login, code)
}

#[tokio::test]
async fn a_person_logs_in_by_a_code() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let (login, code) = begin(&cli, &service).await;
    kanat_tests::until("the command asks for the tokens", || async {
        (issuer.requests("/token") > 0).then_some(())
    })
    .await;
    issuer.approve(&code, &anna());
    let printed = login.end().await.expect();
    assert!(printed.contains("Anna <anna@example.com>"), "{printed}");
    cli.run(&["whoami"]).await.expect();
    assert!(saved(&cli).unwrap().contains("refresh_token"));
}

#[tokio::test]
async fn a_device_that_is_denied_is_not_logged_in() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let (login, code) = begin(&cli, &service).await;
    issuer.deny(&code);
    let refused = login.end().await.fails(1);
    assert!(refused.contains("access_denied"), "{refused}");
    assert_eq!(saved(&cli), None);
}

#[tokio::test]
async fn a_provider_without_device_codes_leaves_the_browser() {
    let issuer = TokenIssuer::start().await;
    issuer.set_metadata("device_authorization_endpoint", Value::Null);
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let login = ["login", "--device", "--url", &service.url()];
    let refused = cli.run(&login).await.fails(1);
    assert!(refused.contains("kanat login --oidc"), "{refused}");
}
