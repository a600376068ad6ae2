//! `kanat environment`: changes of several people at once.

use futures::future::join_all;
use kanat_tests::TestApp;
use kanat_tests::cli::Cli;

#[tokio::test]
async fn variables_that_are_set_at_once_are_all_there() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    let update = async |name: &str| {
        let variable = format!("{name}=1");
        let update = ["environment", "update", "staging", "--variable", &variable];
        cli.run(&update).await.expect();
    };
    let names = ["A", "B", "C", "D", "E", "F"];
    join_all(names.map(update)).await;
    let shown = cli.run(&["environment", "show", "staging", "-o", "json"]);
    let shown = shown.await.json();
    let variables = shown["variables"].as_object().unwrap();
    assert_eq!(variables.keys().collect::<Vec<_>>(), names);
}
