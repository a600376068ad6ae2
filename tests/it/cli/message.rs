//! `kanat message` and `kanat logs`: what became of messages, and trying again.

use kanat_tests::cli::Cli;
use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, TestApp};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

const FLOW: &str = "flow: letters
version: 1
source:
  trigger: webhook
target:
  connector: erp
  endpoint: /in
  method: POST
on_error:
  retry: 0x fixed(1s)
";

#[tokio::test]
async fn a_dead_letter_is_found_shown_retried_and_replayed() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, earlier| if earlier == 0 { status(500) } else { ok() }).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&id, "dead_letter").await;
    let cli = Cli::of(&app);
    let list = cli.run(&["message", "list", "letters", "--status", "dead_letter"]).await.expect();
    assert!(list.contains(&id), "{list}");
    let shown = cli.run(&["message", "show", &id]).await.expect();
    assert!(shown.contains("500") && shown.contains("dead_lettered"), "{shown}");
    cli.run(&["message", "retry", &id]).await.expect();
    app.api.message_becomes(&id, "delivered").await;
    cli.run(&["message", "retry", &id]).await.fails(1);
    cli.run(&["message", "replay", &id]).await.expect();
    target.arrivals(3).await;
}

#[tokio::test]
async fn logs_follow_each_change() {
    let (app, target) = (TestApp::start().await, FakeTarget::start().await);
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let before = app.api.webhook(&url, &json!({"n": 0})).await;
    app.api.message_becomes(&before, "delivered").await;
    let mut logs = Cli::of(&app).command(&["logs", "--follow", "letters"]).spawn().unwrap();
    let mut lines = BufReader::new(logs.stdout.take().unwrap()).lines();
    let first = lines.next_line().await.unwrap().unwrap();
    assert!(first.contains(&before), "{first}");
    let after = app.api.webhook(&url, &json!({"n": 1})).await;
    loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if line.contains(&after) && line.contains("delivered") {
            break;
        }
    }
    logs.start_kill().unwrap();
    logs.wait().await.unwrap();
}
