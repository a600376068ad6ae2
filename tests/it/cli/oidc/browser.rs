//! `kanat login --oidc`: the provider sends the browser back to a port of the command.

use std::os::unix::fs::PermissionsExt;

use super::*;

#[tokio::test]
async fn a_person_logs_in_with_a_browser() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let mut login = Pending::start(&cli, &["login", "--oidc", "--url", &service.url()]);
    let address = login.line_with("/authorize?").await;
    let redirect = issuer.consent(&address, &anna());
    assert_eq!(redirect.host_str(), Some("127.0.0.1"));
    assert_eq!(redirect.path(), "/callback");
    let port = redirect.port().unwrap();
    let idle = tokio::net::TcpStream::connect(("127.0.0.1", port)).await;
    let _idle = idle.unwrap();
    let elsewhere = redirect.join("/favicon.ico").unwrap();
    assert_eq!(browse(elsewhere.as_str()).await.0, 404);
    let (status, page) = browse(redirect.as_str()).await;
    assert_eq!(status, 200);
    assert!(page.contains("You can close this page"), "{page}");
    let printed = login.end().await.expect();
    let who = "as Anna <anna@example.com>, editor (environments: development)";
    assert!(printed.contains(who), "{printed}");
    let file = cli.home().join(".config/kanat/credentials.toml");
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(issuer.grants(), ["authorization_code"]);

    let who = cli.run(&["whoami"]).await.expect();
    assert!(who.contains("anna@example.com"), "{who}");
    assert_eq!(
        issuer.grants().len(),
        1,
        "a token that is good is not renewed"
    );
    for token in service.tokens() {
        assert_eq!(claims(&token)["aud"], CLIENT_ID);
    }

    cli.run(&["logout"]).await.expect();
    assert_eq!(saved(&cli), None);
    cli.run(&["whoami"]).await.fails(1);
}

#[tokio::test]
async fn an_answer_of_another_login_is_refused_and_the_login_goes_on() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let mut login = Pending::start(&cli, &["login", "--oidc", "--url", &service.url()]);
    let address = login.line_with("/authorize?").await;
    let redirect = issuer.consent(&address, &anna());
    let forged = redirect.as_str().replace("state=", "state=x");
    let (status, page) = browse(&forged).await;
    assert_eq!(status, 400);
    assert!(page.contains("log in once more"), "{page}");
    assert_eq!(issuer.grants(), [""; 0]);
    assert_eq!(browse(redirect.as_str()).await.0, 200);
    login.end().await.expect();
    assert_eq!(issuer.grants(), ["authorization_code"]);
}

#[tokio::test]
async fn a_person_who_declines_is_not_logged_in() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let mut login = Pending::start(&cli, &["login", "--oidc", "--url", &service.url()]);
    let address = login.line_with("/authorize?").await;
    browse(issuer.decline(&address).as_str()).await;
    let refused = login.end().await.fails(1);
    assert!(
        refused.contains("the person declined (access_denied)"),
        "{refused}"
    );
    assert_eq!(saved(&cli), None);
}

#[tokio::test]
async fn the_access_token_is_sent_where_the_service_refuses_the_id_token() {
    let issuer = TokenIssuer::start().await;
    issuer.set_access_audience(Some("kanat-api"));
    let service = Service::of(&issuer).await;
    service.set(Membership {
        audience: "kanat-api",
        is_member: true,
    });
    let cli = Cli::new();
    log_in(&cli, &service.url(), &issuer, &anna())
        .await
        .expect();
    cli.run(&["whoami"]).await.expect();
    let last = service.tokens().pop().unwrap();
    assert_eq!(claims(&last)["aud"], "kanat-api");
}

#[tokio::test]
async fn a_token_that_the_service_refuses_is_not_saved() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    service.set(Membership {
        audience: "kanat-api",
        is_member: true,
    });
    let cli = Cli::new();
    let refused = log_in(&cli, &service.url(), &issuer, &anna())
        .await
        .fails(1);
    assert!(refused.contains("for another audience"), "{refused}");
    assert_eq!(saved(&cli), None);
}

#[tokio::test]
async fn a_person_who_is_no_member_yet_can_accept_an_invitation() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    service.set(Membership {
        audience: CLIENT_ID,
        is_member: false,
    });
    let cli = Cli::new();
    let login = log_in(&cli, &service.url(), &issuer, &anna()).await;
    assert_eq!(login.code, Some(0), "{login:?}");
    assert!(login.stderr.contains(NOT_A_MEMBER), "{login:?}");
    assert!(login.stderr.contains("kanat member accept"), "{login:?}");
    assert!(saved(&cli).is_some());
}

#[tokio::test]
async fn a_provider_is_named_where_there_are_several() {
    let issuer = TokenIssuer::start().await;
    let other = "https://id.example";
    let named = issuer.url();
    let service = Service::start(json!([provider(other), provider(&named)])).await;
    let cli = Cli::new();
    let login = ["login", "--oidc", "--url", &service.url()];
    let refused = cli.run(&login).await.fails(2);
    assert!(refused.contains("--issuer"), "{refused}");
    assert!(refused.contains(other), "{refused}");
    assert!(refused.contains(&named), "{refused}");
    let mut login = Pending::start(&cli, &[&login[..], &["--issuer", &named]].concat());
    let address = login.line_with("/authorize?").await;
    browse(issuer.consent(&address, &anna()).as_str()).await;
    login.end().await.expect();
}

#[tokio::test]
async fn a_service_without_providers_says_so() {
    let service = Service::start(json!([])).await;
    let cli = Cli::new();
    let login = ["login", "--oidc", "--url", &service.url()];
    let refused = cli.run(&login).await.fails(1);
    assert!(refused.contains("[[oidc]]"), "{refused}");
    let none = FakeTarget::start().await;
    let login = ["login", "--oidc", "--url", &none.url()];
    let refused = cli.run(&login).await.fails(1);
    assert!(refused.contains("is no Kanat service"), "{refused}");
}

#[tokio::test]
async fn a_provider_that_is_another_or_away_is_refused() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let login = ["login", "--oidc", "--url", &service.url()];
    issuer.set_metadata("issuer", "https://id.example".into());
    let refused = cli.run(&login).await.fails(1);
    assert!(refused.contains("is of another issuer"), "{refused}");
    issuer.set_away(true);
    let refused = cli.run(&login).await.fails(1);
    assert!(refused.contains("answered 503"), "{refused}");
    assert_eq!(saved(&cli), None);
}

#[tokio::test]
async fn an_interrupt_ends_a_login() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let mut login = Pending::start(&cli, &["login", "--oidc", "--url", &service.url()]);
    login.line_with("/authorize?").await;
    let process = login.child.id().unwrap().to_string();
    let mut kill = tokio::process::Command::new("kill");
    let sent = kill.args(["-INT", &process]).status().await.unwrap();
    assert!(sent.success());
    let ended = login.end().await.fails(1);
    assert!(ended.contains("nothing was saved"), "{ended}");
}
