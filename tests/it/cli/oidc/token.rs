//! `kanat login --token`: a token that was made elsewhere.

use super::*;

#[tokio::test]
async fn a_token_on_standard_input_is_saved() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let token = issuer.id_token(&anna());
    let url = service.url();
    let login = ["login", "--token", "-", "--url", &url];
    let printed = cli.run_with(&login, &format!("{token}\n")).await.expect();
    assert!(printed.contains("Anna <anna@example.com>"), "{printed}");
    cli.run(&["whoami"]).await.expect();
    assert_eq!(service.tokens().pop(), Some(token.clone()));
    let given = ["login", "--token", &token, "--url", &url];
    cli.run(&given).await.expect();
}

#[tokio::test]
async fn a_text_that_is_no_token_is_refused() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let url = service.url();
    let login = ["login", "--token", "-", "--url", &url];
    for text in ["", "kanat_ak_x\n", "a.b.c\n"] {
        let refused = cli.run_with(&login, text).await.fails(2);
        assert!(!refused.contains("kanat_ak_x"), "{refused}");
    }
    assert_eq!(service.target.count(), 0);
    assert_eq!(saved(&cli), None);
}

#[tokio::test]
async fn a_token_that_ended_asks_for_another_login() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = Cli::new();
    let url = service.url();
    let login = ["login", "--token", "-", "--url", &url];
    cli.run_with(&login, &issuer.id_token(&anna()))
        .await
        .expect();
    service.set(Membership {
        audience: "another",
        is_member: true,
    });
    let refused = cli.run(&["whoami"]).await.fails(1);
    assert!(refused.contains("kanat login --oidc"), "{refused}");
}
