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
    let refused = cli
        .run(&["flow", "deploy", "orders", "--dry-run"])
        .await
        .fails(1);
    assert!(refused.contains("\"erp\" does not exist"), "{refused}");
    app.api.http_instance("erp", &later.url()).await;

    let moved = "the connector \"erp\" is another instance than version 1 calls: a deploy goes \
                 over to it";
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
    let back = cli.run(&["flow", "rollback", "orders", "1"]).await;
    assert!(back.stderr.contains(moved), "{}", back.stderr);
    back.expect();
}

#[tokio::test]
async fn a_deploy_says_that_a_step_of_another_name_runs_again() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = r#"
name: sync
source: { trigger: manual }
steps:
  - { name: find, action: http.get, connector: erp, params: { path: /a } }
  - { name: other, action: http.post, connector: erp, params: { path: /b, body: "{}" } }
"#;
    let (id, _) = app.api.deployed(yaml).await;
    let renamed = yaml.replace("name: find", "name: search");
    let draft = serde_json::json!({ "yamlConfig": renamed });
    app.api
        .patch(&format!("/api/v1/flows/{id}"), &draft)
        .await
        .expect(200);

    let cli = Cli::of(&app);
    let said = "the step \"find\" of the version that runs seems to be \"search\" here: a message \
                that has run it and is retried after a deploy runs it again";
    for command in [
        &["flow", "show", "sync"][..],
        &["flow", "deploy", "sync", "--dry-run"],
        &["flow", "deploy", "sync"],
    ] {
        let run = cli.run(command).await;
        let told = format!("{}{}", run.stdout, run.stderr);
        assert_eq!(told.matches(said).count(), 1, "{command:?}: {told}");
        run.expect();
    }
}
