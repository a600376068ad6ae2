//! Flows whose connectors have given their names to others.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp};

use crate::flow::manual;

#[tokio::test]
async fn a_deploy_says_that_it_goes_over_to_another_connector_of_the_same_name() {
    let app = TestApp::start().await;
    let [former, later] = [FakeTarget::start().await, FakeTarget::start().await];
    app.api.http_instance("erp", &former.url()).await;
    app.api.deployed(&manual("orders")).await;
    let cli = Cli::of(&app);
    cli.run(&["connector", "update", "erp", "--name", "erp-eu"])
        .await
        .expect();
    app.api.http_instance("erp", &later.url()).await;

    let moved = "the connector \"erp\" is another instance than version 1, which runs, calls: a \
                 deploy goes over to it";
    for command in [
        &["flow", "deploy", "orders", "--dry-run"][..],
        &["flow", "show", "orders"],
        &["flow", "rollback", "orders", "1", "--dry-run"],
        &["flow", "deploy", "orders"],
    ] {
        let run = cli.run(command).await;
        let said = format!("{}{}", run.stdout, run.stderr);
        assert!(said.contains(moved), "{command:?}: {said}");
        run.expect();
    }
    let after = cli.run(&["flow", "show", "orders"]).await;
    assert!(!after.expect().contains("another instance"));
}
