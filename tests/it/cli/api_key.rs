//! `kanat api-key`: keys and the environments that they are bound to.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;

#[tokio::test]
async fn a_key_is_listed_with_the_name_of_its_environment() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    cli.run(&["api-key", "create", "ci", "--environment", "staging"])
        .await
        .expect();
    let listed = cli.run(&["api-key", "list"]).await.expect();
    let line = listed.lines().find(|line| line.starts_with("ci")).unwrap();
    assert!(
        line.contains("staging") && !line.contains("env_"),
        "{listed}"
    );
    let keys = cli.run(&["api-key", "list", "-o", "json"]).await.json();
    let key = keys["data"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["name"] == "ci")
        .unwrap();
    assert!(
        key["environmentId"].as_str().unwrap().starts_with("env_"),
        "{key}"
    );
    assert_eq!(key.get("environment"), None);
}
