//! `kanat login`: what it believes of the address that it is given.

use kanat_tests::app::KEY;
use kanat_tests::cli::Cli;
use kanat_tests::target::status;
use kanat_tests::{FakeTarget, TestApp};

#[tokio::test]
async fn another_server_is_not_taken_for_a_service() {
    let app = TestApp::start().await;
    let others = [
        FakeTarget::start().await,
        FakeTarget::scripted(|_, _| status(404)).await,
    ];
    let cli = Cli::new();
    cli.run(&["login", "--url", &app.base, "--api-key", KEY])
        .await
        .expect();
    for other in others {
        let refused = cli
            .run(&["login", "--url", &other.url(), "--api-key", KEY])
            .await
            .fails(1);
        assert!(refused.contains("is no Kanat service"), "{refused}");
    }
    let who = cli.run(&["whoami"]).await.expect();
    assert!(
        who.contains(&app.base),
        "what was saved before stays: {who}"
    );
}

#[tokio::test]
async fn the_saved_key_goes_to_its_own_service_alone() {
    let app = TestApp::start().await;
    let other = FakeTarget::start().await;
    let cli = Cli::new();
    cli.run(&["login", "--url", &app.base, "--api-key", KEY])
        .await
        .expect();
    let refused = cli.run(&["whoami", "--url", &other.url()]).await.fails(2);
    assert!(
        refused.contains(&app.base) && refused.contains("--api-key"),
        "{refused}"
    );
    assert!(other.received().is_empty());
    cli.run(&["whoami", "--url", &format!("{}/", app.base)])
        .await
        .expect();
    cli.run(&[
        "whoami",
        "--url",
        &other.url(),
        "--api-key",
        "kanat_ak_of_the_other",
    ])
    .await;
    assert!(!other.received().is_empty());
}

#[tokio::test]
async fn commands_go_to_the_environment_of_the_login() {
    let app = TestApp::start().await;
    let cli = Cli::new();
    let login = ["login", "--url", &app.base, "--api-key", KEY];
    cli.run(&[&login[..], &["--env", "staging"]].concat())
        .await
        .expect();
    assert!(cli.run(&["whoami"]).await.expect().contains("staging"));
    let other = cli.run(&["whoami", "--env", "production"]).await.expect();
    assert!(other.contains("production"), "{other}");
    cli.run(&login).await.expect();
    assert!(cli.run(&["whoami"]).await.expect().contains("development"));
}
