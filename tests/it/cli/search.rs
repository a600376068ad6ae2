//! `kanat search`.

use kanat_tests::TestApp;
use kanat_tests::cli::Cli;
use serde_json::json;

#[tokio::test]
async fn words_find_resources_of_every_kind_or_of_one() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    let table = json!({"name": "countries", "description": "Codes <ISO> of orders"});
    app.api
        .post("/api/v1/lookup-tables", &table)
        .await
        .expect(201);
    let code = "const transform = (input) => input.orders";
    let adapter = json!({"name": "orders", "code": code});
    app.api.post("/api/v1/adapters", &adapter).await.expect(201);

    let found = cli.run(&["search", "orders"]).await.expect();
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines.len(), 3, "{found}");
    assert!(lines[1].starts_with("adapter"), "{found}");
    assert!(lines[2].starts_with("lookup_table"), "{found}");
    assert!(lines[2].ends_with("Codes <ISO> of orders"), "{found}");

    let arguments = [
        "search",
        "iso",
        "ord",
        "--type",
        "lookup_table",
        "-o",
        "json",
    ];
    let found = cli.run(&arguments).await.json();
    assert_eq!(found["pagination"]["total"], 1);
    assert_eq!(
        found["data"][0]["excerpt"],
        "Codes &lt;<mark>ISO</mark>&gt; of <mark>orders</mark>"
    );
    assert_eq!(cli.run(&["search", "nothing"]).await.expect(), "none\n");
    cli.run(&["search", "a", "--type", "message"])
        .await
        .fails(2);
    cli.run(&["search"]).await.fails(2);
}
