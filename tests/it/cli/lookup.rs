//! `kanat lookup`: tables and their entries, and CSV files in both directions.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;

#[tokio::test]
async fn a_table_is_filled_searched_exported_and_deleted() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    cli.run(&["lookup", "create", "countries"]).await.expect();
    cli.file("countries.csv", "key,value\nGERMANY,DE\nFRANCE,FR\n");
    cli.run(&["lookup", "import", "countries", "countries.csv"])
        .await
        .expect();
    cli.run(&["lookup", "set", "countries", "a/b c", "x"])
        .await
        .expect();
    let removed = cli
        .run(&["lookup", "remove", "countries", "FRANCE"])
        .await
        .expect();
    assert_eq!(removed, "key FRANCE is removed from countries; it was FR\n");
    let csv = cli.run(&["lookup", "export", "countries"]).await.expect();
    let mut lines: Vec<_> = csv.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["GERMANY,DE", "a/b c,x", "key,value"]);
    let shown = cli
        .run(&[
            "lookup",
            "show",
            "countries",
            "--search",
            "ger",
            "-o",
            "json",
        ])
        .await
        .json();
    assert_eq!(shown["entries"].as_array().unwrap().len(), 1);
    cli.run(&["lookup", "remove", "countries", "a/b c"])
        .await
        .expect();
    cli.run(&["lookup", "delete", "countries", "--yes"])
        .await
        .expect();
    assert!(
        !cli.run(&["lookup", "list"])
            .await
            .expect()
            .contains("countries")
    );
}
