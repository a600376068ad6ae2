//! Tokens that end are renewed by the refresh token, which the provider takes once.

use super::*;

/// Seconds for which a token is good that every command renews.
const SHORT: i64 = 29;

/// Logs Anna in with a token that ends soon.
async fn short_login(issuer: &TokenIssuer, service: &Service) -> Cli {
    issuer.set_lifetime(SHORT);
    let cli = Cli::new();
    log_in(&cli, &service.url(), issuer, &anna()).await.expect();
    cli
}

#[tokio::test]
async fn a_token_that_ends_soon_is_renewed_before_it_is_sent() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = short_login(&issuer, &service).await;
    let former = saved(&cli).unwrap();
    issuer.set_lifetime(3600);
    for _ in 0..2 {
        cli.run(&["whoami"]).await.expect();
    }
    assert_eq!(issuer.grants(), ["authorization_code", "refresh_token"]);
    assert_ne!(saved(&cli).unwrap(), former);
    let tokens = service.tokens();
    let [first, .., last] = tokens.as_slice() else {
        panic!("{} requests", tokens.len());
    };
    assert_ne!(first, last);
}

#[tokio::test]
async fn commands_at_once_renew_one_after_the_other() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = short_login(&issuer, &service).await;
    let whoami = || cli.run(&["whoami"]);
    let (a, b, c) = tokio::join!(whoami(), whoami(), whoami());
    for outcome in [a, b, c] {
        outcome.expect();
    }
    assert_eq!(
        issuer.grants().len(),
        4,
        "each renewed a token that ends soon"
    );
    issuer.set_lifetime(3600);
    let (a, b, c) = tokio::join!(whoami(), whoami(), whoami());
    for outcome in [a, b, c] {
        outcome.expect();
    }
    assert_eq!(issuer.grants().len(), 5, "one renewed for all");
}

#[tokio::test]
async fn a_login_that_is_not_renewed_asks_for_another_one() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    issuer.set_lifetime(0);
    let cli = Cli::new();
    log_in(&cli, &service.url(), &issuer, &anna())
        .await
        .expect();
    issuer.revoke();
    let refused = cli.run(&["whoami"]).await.fails(1);
    assert!(
        refused.contains("log in again: `kanat login --oidc`"),
        "{refused}"
    );
    issuer.set_away(true);
    let refused = cli.run(&["whoami"]).await.fails(1);
    assert!(refused.contains("answered 503"), "{refused}");
}

#[tokio::test]
async fn a_token_is_used_to_its_end_while_the_provider_is_away() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = short_login(&issuer, &service).await;
    issuer.set_away(true);
    cli.run(&["whoami"]).await.expect();
    issuer.set_away(false);
    cli.run(&["whoami"]).await.expect();
}

#[tokio::test]
async fn the_kind_of_token_that_the_service_takes_is_renewed() {
    let issuer = TokenIssuer::start().await;
    issuer.set_access_audience(Some("kanat-api"));
    let service = Service::of(&issuer).await;
    service.set(Membership {
        audience: "kanat-api",
        is_member: true,
    });
    let cli = short_login(&issuer, &service).await;
    cli.run(&["whoami"]).await.expect();
    assert_eq!(issuer.grants(), ["authorization_code", "refresh_token"]);
    let last = service.tokens().pop().unwrap();
    assert_eq!(claims(&last)["aud"], "kanat-api");
}

#[tokio::test]
async fn a_saved_token_goes_to_its_own_service_alone() {
    let issuer = TokenIssuer::start().await;
    let service = Service::of(&issuer).await;
    let cli = short_login(&issuer, &service).await;
    let other = FakeTarget::start().await;
    let refused = cli.run(&["whoami", "--url", &other.url()]).await.fails(2);
    assert!(refused.contains(&service.url()), "{refused}");
    assert_eq!(other.count(), 0);
    assert_eq!(issuer.grants().len(), 1, "nothing was renewed for another");
}
