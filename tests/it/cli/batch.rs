//! `kanat batch`: a job of the records of a file.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

#[tokio::test]
async fn a_job_is_started_from_a_file_and_followed() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.deployed(crate::batch_job::FLOW).await;
    let cli = Cli::of(&app);
    cli.file("records.json", r#"[{"n": 1}, {"n": 2}, {"x": 3}]"#);
    cli.file("wrong.json", r#"[{"n": 1}, {"n": }]"#);
    let refused = cli
        .run(&["batch", "start", "import", "--data", "wrong.json"])
        .await
        .fails(1);
    assert!(
        refused.contains("wrong.json is not JSON: expected value at line 1 column 18"),
        "{refused}"
    );
    let started = cli
        .run(&[
            "batch",
            "start",
            "import",
            "--data",
            "records.json",
            "-o",
            "json",
        ])
        .await
        .json();
    let id = started["id"].as_str().unwrap();
    until("the job ends", || async {
        let job = cli.run(&["batch", "status", id, "-o", "json"]).await.json();
        (job["status"] == "completed_with_errors").then_some(())
    })
    .await;
    let shown = cli.run(&["batch", "show", id]).await.expect();
    assert!(shown.contains("completed_with_errors"), "{shown}");
    let errors = cli.run(&["batch", "errors", id]).await.expect();
    assert!(
        errors.contains("mapping") && errors.contains("msg_"),
        "{errors}"
    );
    assert!(
        cli.run(&["batch", "list", "--flow", "import"])
            .await
            .expect()
            .contains(id)
    );
    for (file, records) in [
        ("more.csv", "n,who\n4,a\n5,\"b, c\"\n"),
        ("more.ndjson", "{\"n\": 6}\n\n{\"n\": 7}\n"),
    ] {
        cli.file(file, records);
        let waited = cli
            .run(&["batch", "start", "import", "--data", file, "--wait"])
            .await
            .expect();
        assert!(
            waited.contains("is completed: 2 of 2 succeeded, 0 failed"),
            "{waited}"
        );
    }
    let failed = cli
        .run(&[
            "batch",
            "start",
            "import",
            "--data",
            "records.json",
            "--wait",
        ])
        .await
        .fails(1);
    assert!(failed.contains("kanat batch errors bat_"), "{failed}");
    cli.file("wrong.csv", "n,who\n4\n");
    let refused = cli
        .run(&["batch", "start", "import", "--data", "wrong.csv"])
        .await
        .fails(2);
    assert!(
        refused.contains("wrong.csv, line 2: has 1 fields, and should have 2"),
        "{refused}"
    );
    cli.file("wrong.txt", "n,who\n4,a\n");
    let refused = cli
        .run(&["batch", "start", "import", "--data", "wrong.txt"])
        .await
        .fails(1);
    assert!(refused.contains("wrong.txt is not JSON: "), "{refused}");
    assert!(refused.contains("--format csv"), "{refused}");
    let csv = cli.run(&["batch", "errors", id, "--csv"]).await.expect();
    assert!(
        csv.starts_with("index,") && csv.lines().count() == 2,
        "{csv}"
    );
    let failed = cli.run(&["batch", "retry", id, "--wait"]).await.fails(1);
    assert!(failed.contains("1 record failed"), "{failed}");
    let again = failed
        .split(['`', ' '])
        .find(|word| word.starts_with("bat_"))
        .unwrap();
    assert!(
        cli.run(&["batch", "retry", again])
            .await
            .expect()
            .contains("is started with 1 record")
    );
}

#[tokio::test]
async fn a_list_that_is_longer_than_a_page_is_asked_for_page_by_page() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let flow = r"flow: none
version: 1
source:
  trigger: manual
when: source.wanted == true
target:
  connector: erp
  endpoint: /in
  method: POST
";
    app.api.deployed(flow).await;
    let cli = Cli::of(&app);
    cli.file("many.json", &json!(vec![json!({}); 501]).to_string());
    cli.run(&["batch", "start", "none", "--data", "many.json", "--wait"])
        .await
        .expect();
    let mut ids = std::collections::HashSet::new();
    for (offset, expected) in [("0", 501), ("1", 500)] {
        let list = ["message", "list", "none", "--limit", "1000", "-o", "json"];
        let listed = cli
            .run(&[&list[..], &["--offset", offset]].concat())
            .await
            .json();
        let messages = listed["data"].as_array().unwrap();
        assert_eq!(messages.len(), expected);
        assert_eq!(listed["pagination"]["limit"], 1000);
        ids.extend(messages.iter().map(|message| message["id"].to_string()));
    }
    assert_eq!(ids.len(), 501);
}
