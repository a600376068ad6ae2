//! `kanat login`: what it believes of the address that it is given.

use kanat_tests::app::KEY;
use kanat_tests::cli::Cli;
use kanat_tests::target::status;
use kanat_tests::{FakeTarget, TestApp};

#[tokio::test]
async fn another_server_is_not_taken_for_a_service() {
    let app = TestApp::start().await;
    let others = [FakeTarget::start().await, FakeTarget::scripted(|_, _| status(404)).await];
    let cli = Cli::new();
    cli.run(&["login", "--url", &app.base, "--api-key", KEY]).await.expect();
    for other in others {
        let refused = cli.run(&["login", "--url", &other.url(), "--api-key", KEY]).await.fails(1);
        assert!(refused.contains("is no Kanat service"), "{refused}");
    }
    let who = cli.run(&["whoami"]).await.expect();
    assert!(who.contains(&app.base), "what was saved before stays: {who}");
}
