//! `kanat message` and `kanat logs`: what became of messages, and trying again.

use kanat_tests::cli::Cli;
use kanat_tests::target::{ok, status};
use kanat_tests::{FakeTarget, Rest, TestApp};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

const FLOW: &str = r"flow: letters
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
    let target =
        FakeTarget::scripted(|_, earlier| if earlier == 0 { status(500) } else { ok() }).await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&id, "dead_letter").await;
    let cli = Cli::of(&app);
    let list = cli
        .run(&["message", "list", "letters", "--status", "dead_letter"])
        .await
        .expect();
    assert!(list.contains(&id), "{list}");
    for command in [&["message", "list"][..], &["logs"]] {
        let found = cli
            .run(&[command, &["--flow", "letters"]].concat())
            .await
            .expect();
        assert!(found.contains(&id), "{found}");
        let both = cli
            .run(&[command, &["letters", "--flow", "letters"]].concat())
            .await
            .fails(2);
        assert!(both.contains("cannot be used with"), "{both}");
    }
    let shown = cli.run(&["message", "show", &id]).await.expect();
    assert!(
        shown.contains("500") && shown.contains("dead_lettered"),
        "{shown}"
    );
    cli.run(&["message", "retry", &id]).await.expect();
    app.api.message_becomes(&id, "delivered").await;
    cli.run(&["message", "retry", &id]).await.fails(1);
    let refused = cli.run(&["message", "retry", &id, "msg_unknown"]).await;
    assert!(
        refused.stderr.contains(&format!("{id}: a message that is")),
        "{}",
        refused.stderr
    );
    assert!(
        refused
            .fails(1)
            .ends_with("retry of 2 of 2 messages was refused\n")
    );
    // An id that is repeated counts once.
    let replay = ["message", "replay", id.as_str(), id.as_str()];
    let replayed = cli.run(&replay).await.expect();
    assert_eq!(replayed.lines().count(), 1, "{replayed}");
    target.arrivals(3).await;
    for verb in ["retry", "replay"] {
        let of_flow = ["message", verb, "--flow", "letters", "--yes", "msg_unknown"];
        let of_flow = of_flow
            .iter()
            .filter(|text| verb == "replay" || **text != "--yes");
        let arguments: Vec<_> = of_flow.copied().collect();
        let refused = cli.run(&arguments).await.fails(1);
        assert!(refused.contains("\"msg_unknown\""), "{refused}");
    }
    let retry = ["message", "retry", "--flow", "letters", id.as_str()];
    let refused = cli.run(&retry).await.fails(1);
    assert!(
        refused.contains("passed over 1 of 1 messages: "),
        "{refused}"
    );
}

#[tokio::test]
async fn messages_of_a_flow_go_out_again_by_a_filter_and_a_yes_alone() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let mut ids = Vec::new();
    for n in 0..4 {
        ids.push(app.api.webhook(&url, &json!({ "n": n })).await);
        app.api.message_becomes(&ids[n], "delivered").await;
    }
    let cli = Cli::of(&app);
    let all = ["message", "replay", "--flow", "letters"];
    for verb in ["retry", "replay"] {
        let refused = cli
            .run(&["message", verb, "--flow", "letters", "--yes"])
            .await
            .fails(2);
        assert!(
            refused.contains("--status") && refused.contains("--search"),
            "{refused}"
        );
    }
    let delivered = [&all[..], &["--status", "delivered"]].concat();
    let asked = cli.run(&delivered).await.fails(1);
    assert!(
        asked.contains("4 messages (") && asked.contains(&ids[3]) && asked.contains("--yes"),
        "{asked}"
    );
    let told = cli
        .run(&[&delivered[..], &["--dry-run"]].concat())
        .await
        .expect();
    assert!(
        told.contains("4 messages (") && told.contains(&ids[1]) && !told.contains(&ids[0]),
        "{told}"
    );
    cli.run(&["message", "discard", &ids[0], &ids[1]])
        .await
        .fails(1);
    assert_eq!(target.received().len(), 4, "nothing was sent by asking");

    let one = cli
        .run(&[&all[..], &[ids[2].as_str(), "--yes"]].concat())
        .await
        .expect();
    assert_eq!(one, "replay of 1 message\n");
    target.arrivals(5).await;
    let some = cli
        .run(
            &[
                &delivered[..],
                &["--search", &ids[3], "--yes", "-o", "json"],
            ]
            .concat(),
        )
        .await
        .json();
    assert_eq!(some["count"], 1);
    target.arrivals(6).await;
}

#[tokio::test]
async fn a_message_that_waits_is_discarded_before_it_is_replayed() {
    let app = TestApp::start().await;
    let target = FakeTarget::scripted(|_, _| status(503)).await;
    app.api.http_instance("erp", &target.url()).await;
    let waits = FLOW.replace("0x fixed(1s)", "3x fixed(1h)");
    let (_, url) = app.api.deployed(&waits).await;
    let id = app.api.webhook(&url, &json!({"n": 1})).await;
    app.api.message_becomes(&id, "retrying").await;
    let cli = Cli::of(&app);
    let refused = cli.run(&["message", "retry", &id]).await.fails(1);
    assert!(
        refused.contains("`kanat message discard ID`, then `kanat message replay ID`"),
        "{refused}"
    );
    cli.run(&["message", "discard", &id]).await.expect();
    cli.run(&["flow", "pause", "letters"]).await.expect();
    let replay = [
        "message",
        "replay",
        "--flow",
        "letters",
        "--yes",
        id.as_str(),
    ];
    let replayed = cli.run(&replay).await;
    let pause = "flow letters is paused: what starts waits until `kanat flow resume letters`";
    assert!(replayed.stderr.contains(pause), "{}", replayed.stderr);
    replayed.expect();
    let single = cli.run(&["message", "replay", &id]).await;
    assert!(single.stderr.contains(pause), "{}", single.stderr);
    single.expect();
    let bulk = ["message", "replay", "--flow", "letters", "--status"];
    let none = cli.run(&[&bulk[..], &["dead_letter"]].concat()).await;
    assert_eq!(none.expect(), "nothing matches: replay of 0 messages\n");
    let logs = ["logs", "letters", "--limit", "5", "--search"];
    let found = cli.run(&[&logs[..], &[id.as_str()]].concat()).await;
    assert!(found.expect().contains(&id));
    let none = cli.run(&[&logs[..], &["no such text"]].concat()).await;
    assert_eq!(none.expect(), "none\n");
}

#[tokio::test]
async fn messages_that_failed_for_their_callers_alone_are_counted_beside_those_that_failed() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let flow = r"flow: tax
version: 1
source:
  trigger: api
target:
  connector: erp
  endpoint: /in
  method: POST
";
    app.api.deployed(flow).await;
    let api = json!({
        "flowName": "tax", "path": "tax", "authType": "none",
        "responseMapping": {"tax": "source.tax"},
        "responseSchema": {"type": "object", "properties": {"tax": {"type": "number"}}},
    });
    app.api
        .post("/api/v1/published-apis", &api)
        .await
        .expect(201);
    let call = async |tax: serde_json::Value| {
        let url = format!("{}/tax", app.base);
        Rest::send(app.api.http().post(&url).json(&json!({ "tax": tax }))).await
    };
    call(json!(7)).await.expect(200);
    let cli = Cli::of(&app);
    let failed = ["logs", "tax", "--failed"];
    assert_eq!(cli.run(&failed).await.stderr, "");
    let unfit = call(json!("seven")).await.expect(502);
    let id = unfit["messageId"].as_str().unwrap();
    app.api.message_becomes(id, "delivered").await;
    for command in [&failed[..], &["message", "list", "tax", "--failed"]] {
        let none = cli.run(command).await;
        assert_eq!(none.stdout, "none\n");
        assert!(
            none.stderr.contains("callers got 502: 1;")
                && none
                    .stderr
                    .contains("`kanat logs tax --status delivered --search"),
            "{}",
            none.stderr
        );
    }
    let list = [
        "logs",
        "tax",
        "--status",
        "delivered",
        "--search",
        "but the caller got 502",
    ];
    let found = cli.run(&list).await.expect();
    assert_eq!(found.lines().count(), 1, "{found}");
    assert!(
        found.contains("delivered, but the caller got 502"),
        "{found}"
    );
}

#[tokio::test]
async fn logs_follow_each_change() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(FLOW).await;
    let before = app.api.webhook(&url, &json!({"n": 0})).await;
    app.api.message_becomes(&before, "delivered").await;
    let mut logs = Cli::of(&app)
        .command(&["logs", "--follow", "letters"])
        .spawn()
        .unwrap();
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
