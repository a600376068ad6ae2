//! `kanat flow`: from a file to a message that was delivered.

mod moved;
mod protected;
mod test;
mod warned;

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

use crate::webhook::passthrough;

const FLOW: &str = r"flow: by-hand
version: 1
source:
  trigger: manual
target:
  connector: erp
  endpoint: /orders
  method: POST
mapping:
  id: source.id | required
";

#[tokio::test]
async fn a_file_becomes_a_flow_that_runs() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let cli = Cli::of(&app);
    cli.file("flow.yaml", FLOW);
    cli.run(&["flow", "validate", "flow.yaml"]).await.expect();
    cli.run(&["flow", "create", "flow.yaml"]).await.expect();
    cli.file("order.json", r#"{"id": 9007199254740993}"#);
    let tested = cli
        .run(&[
            "flow",
            "test",
            "by-hand",
            "--data",
            "order.json",
            "-o",
            "json",
        ])
        .await
        .expect();
    assert!(tested.contains("9007199254740993"), "{tested}");
    cli.run(&["flow", "deploy", "by-hand", "--summary", "first"])
        .await
        .expect();
    let run = cli
        .run_with(
            &["flow", "run", "by-hand", "--data", "-", "-o", "json"],
            r#"{"id": 7}"#,
        )
        .await
        .json();
    app.api
        .message_becomes(run["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert_eq!(target.received()[0].json(), json!({"id": 7}));
}

#[tokio::test]
async fn a_flow_is_listed_shown_paused_and_rolled_back_by_its_name() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, _) = app.api.deployed(FLOW).await;
    let cli = Cli::of(&app);
    let status = async |name: &str| {
        cli.run(&["flow", "show", name, "-o", "json"]).await.json()["status"].clone()
    };
    cli.run(&["flow", "pause", "by-hand"]).await.expect();
    assert_eq!(status(&id).await, "paused");
    cli.run(&["flow", "resume", "by-hand"]).await.expect();
    let again = cli.run(&["flow", "resume", "by-hand"]).await.expect();
    assert_eq!(again.trim(), "flow by-hand is active already");
    assert_eq!(status("by-hand").await, "active");
    let changed = "changed.yaml";
    cli.file(changed, &FLOW.replace("/orders", "/changed"));
    cli.file("same.yaml", FLOW);
    let update = async |file: &str| cli.run(&["flow", "update", "by-hand", file]).await;
    let runs = "it runs this definition already (active, version 1)\n";
    let same = update("same.yaml").await;
    assert_eq!(same.stderr, "", "there is nothing to deploy");
    assert_eq!(same.expect(), format!("flow by-hand is unchanged: {runs}"));
    update(changed).await.expect();
    let dropped = update("same.yaml").await.expect();
    assert_eq!(
        dropped,
        format!("the draft of flow by-hand is dropped: {runs}")
    );
    let draft = update(changed).await;
    assert!(
        draft.stderr.contains("flow deploy by-hand"),
        "{}",
        draft.stderr
    );
    assert_eq!(
        draft.expect(),
        "flow by-hand is changed and still active as version 1\n"
    );
    cli.run(&["flow", "deploy", "by-hand"]).await.expect();
    cli.run(&["flow", "rollback", "by-hand", "1"])
        .await
        .expect();
    let versions = cli
        .run(&["flow", "versions", "by-hand", "-o", "json"])
        .await
        .json();
    assert_eq!(versions["data"].as_array().unwrap().len(), 3);
    let table = cli.run(&["flow", "list"]).await.expect();
    assert!(
        table.contains("by-hand") && table.contains("active"),
        "{table}"
    );
    let yaml = cli.run(&["flow", "list", "-o", "yaml"]).await.expect();
    assert!(yaml.contains("name: by-hand"), "{yaml}");
    let asked = cli.run(&["flow", "delete", "by-hand"]).await.fails(1);
    assert!(asked.contains(&id) && asked.contains("--yes"), "{asked}");
    let told = cli
        .run(&["flow", "delete", "by-hand", "--dry-run"])
        .await
        .expect();
    assert!(
        told.contains(&id)
            && told.contains("would be deleted")
            && told.contains("messages that wait, and would never be sent: 0"),
        "{told}"
    );
    assert_eq!(status("by-hand").await, "active");
    cli.run(&["flow", "delete", "by-hand", "--yes"])
        .await
        .expect();
    cli.run(&["flow", "show", "by-hand"]).await.fails(1);
}

#[tokio::test]
async fn a_test_shows_the_call_and_a_file_of_another_flow_is_refused() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let yaml = FLOW.replace(
        "/orders",
        "/orders/{{ trigger.query.shop }}/{{ trigger.headers.x-kind }}",
    );
    app.api.deployed(&yaml).await;
    let cli = Cli::of(&app);
    cli.file("order.json", r#"{"id": 7}"#);
    cli.file("headers.json", r#"{"x-kind": "a"}"#);
    let test = [
        "flow",
        "test",
        "by-hand",
        "--data",
        "order.json",
        "--query",
        "shop=eu",
        "--headers",
        "headers.json",
    ];
    let shown = cli
        .run(&[&test[..], &["--header", "X-Kind: b"]].concat())
        .await;
    assert_eq!(shown.stdout, "{\n  \"id\": 7\n}\n", "the output alone");
    let shown = shown.stderr;
    assert!(
        shown.contains(&format!("target: POST {}/orders/eu/b", target.url())),
        "{shown}"
    );
    cli.run(&["flow", "test", "by-hand", "--data", "order.json"])
        .await
        .fails(1);

    cli.file("other.yaml", &FLOW.replace("by-hand", "other"));
    let refused = cli
        .run(&["flow", "update", "by-hand", "other.yaml"])
        .await
        .fails(2);
    assert!(refused.contains("--rename"), "{refused}");
    cli.file("same.yaml", FLOW);
    cli.run(&["flow", "update", "by-hand", "same.yaml"])
        .await
        .expect();
    let shown = cli.run(&["flow", "show", "by-hand"]).await.expect();
    assert!(
        shown.contains("the draft differs from version 1"),
        "{shown}"
    );
    let diff = cli.run(&["flow", "diff", "by-hand"]).await.expect();
    assert!(
        diff.starts_with("~ target.endpoint: ") && diff.contains("-> \"/orders\""),
        "{diff}"
    );
    let changed = FLOW.replace("mapping:", "description: Orders\nmapping:");
    cli.file("changed.yaml", &changed);
    let kept = cli.run(&["flow", "apply", "changed.yaml"]).await.fails(1);
    assert!(
        kept.contains("not deployed, of by-hand") && kept.contains("--discard-draft"),
        "{kept}"
    );
    let still = cli.run(&["flow", "diff", "by-hand"]).await.expect();
    assert_eq!(still, diff);
    cli.run(&["flow", "rollback", "by-hand", "1"])
        .await
        .fails(1);
    cli.run(&["flow", "rollback", "by-hand", "1", "--discard-draft"])
        .await
        .expect();
    cli.run(&["flow", "pause", "by-hand"]).await.expect();
    let dry = cli
        .run(&["flow", "deploy", "by-hand", "--keep-paused", "--dry-run"])
        .await;
    assert!(dry.stderr.contains("nothing was done"), "{}", dry.stderr);
    assert!(
        dry.expect()
            .contains("runs as its definition says, and stays paused")
    );
    let asked = cli
        .run(&["flow", "rollback", "by-hand", "1"])
        .await
        .fails(1);
    assert!(
        asked.contains("is paused and will run again") && asked.contains("--yes"),
        "{asked}"
    );
    cli.run(&["flow", "rollback", "by-hand", "1", "--yes"])
        .await
        .expect();
    cli.run(&["flow", "update", "by-hand", "other.yaml", "--rename"])
        .await
        .expect();
    let named = cli
        .run(&["flow", "rollback", "other", "1", "--discard-draft"])
        .await;
    let warning = "and the flow is named";
    assert!(named.stderr.contains(warning), "{}", named.stderr);
    named.expect();
    cli.run(&["flow", "pause", "other"]).await.expect();
    cli.run(&["flow", "pause", "other"]).await.expect();
    assert!(target.received().is_empty());
}

#[tokio::test]
async fn a_rotated_webhook_address_is_printed_and_the_former_one_works_for_the_grace_period() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (id, first) = app.api.deployed(&passthrough("orders")).await;
    let cli = Cli::of(&app);
    let status = async |url: &str| app.api.without_key().post(url, &json!({})).await.status;

    let rotate = ["flow", "rotate-webhook-token", "orders"];
    let rotated = cli.run(&[&rotate[..], &["--grace", "24h"]].concat()).await;
    let hint = "the former address is taken until 20";
    assert!(rotated.stderr.contains(hint), "{}", rotated.stderr);
    let second = rotated.expect().trim_end().to_owned();
    assert_ne!(second, first);
    let shown = cli
        .run(&["flow", "show", "orders", "-o", "json"])
        .await
        .json();
    assert_eq!(shown["webhookUrl"], second);
    assert_eq!(status(&second).await, 202);
    assert_eq!(status(&first).await, 202);

    let json = ["--grace", "1s", "-o", "json"];
    let rotated = cli.run(&[&rotate[..], &json].concat()).await.json();
    assert_eq!(rotated["id"], id);
    let third = rotated["webhookUrl"].as_str().unwrap();
    assert_eq!(status(third).await, 202);
    until("the grace period ends", || async {
        (status(&second).await == 404).then_some(())
    })
    .await;
    assert_eq!(status(&first).await, 202, "its own grace period goes on");
}

#[tokio::test]
async fn without_a_grace_period_a_former_webhook_address_ends_at_once() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, first) = app.api.deployed(&passthrough("orders")).await;
    app.api.deployed(FLOW).await;
    let cli = Cli::of(&app);
    let status = async |url: &str| app.api.without_key().post(url, &json!({})).await.status;

    let soon = ["flow", "rotate-webhook-token", "orders", "--grace", "soon"];
    let refused = cli.run(&soon).await.fails(1);
    assert!(refused.contains("gracePeriod"), "{refused}");
    assert_eq!(
        status(&first).await,
        202,
        "a refused command changes nothing"
    );

    let rotate = ["flow", "rotate-webhook-token", "orders"];
    let asked = cli.run(&rotate).await.fails(1);
    assert!(
        asked.contains("at once") && asked.contains("--yes"),
        "{asked}"
    );
    assert_eq!(status(&first).await, 202, "nothing is done without consent");
    let rotated = cli.run(&[&rotate[..], &["--yes"]].concat()).await;
    let hint = "the former address is taken no more";
    assert!(rotated.stderr.contains(hint), "{}", rotated.stderr);
    let second = rotated.expect().trim_end().to_owned();
    assert_eq!(status(&second).await, 202);
    assert_eq!(status(&first).await, 404);

    let manual = cli
        .run(&["flow", "rotate-webhook-token", "by-hand", "--yes"])
        .await
        .fails(1);
    assert!(
        manual.contains("only a flow with the trigger webhook has a token"),
        "{manual}"
    );
}

#[tokio::test]
async fn a_hint_stays_in_the_environment_that_a_flag_chose() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    cli.file("flow.yaml", FLOW);
    let create = ["flow", "create", "flow.yaml", "--env", "staging"];
    let created = cli.run(&create).await;
    assert!(
        created
            .stderr
            .contains("`kanat flow deploy by-hand --env staging`"),
        "{}",
        created.stderr
    );
    let missing = cli
        .run(&["flow", "show", "nothing", "--env", "staging"])
        .await
        .fails(1);
    assert!(
        missing.contains("`kanat flow list --env staging`"),
        "{missing}"
    );

    let cli = Cli::of(&app).with("KANAT_ENV", "production");
    cli.file("flow.yaml", FLOW);
    let created = cli.run(&create[..3]).await;
    assert!(
        created.stderr.contains("`kanat flow deploy by-hand`"),
        "{}",
        created.stderr
    );
}

#[tokio::test]
async fn nothing_of_a_folder_is_kept_when_one_definition_names_what_is_missing() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let cli = Cli::of(&app);
    std::fs::create_dir(cli.home().join("flows")).unwrap();
    cli.file("flows/a.yaml", FLOW);
    let missing = FLOW
        .replace("by-hand", "other")
        .replace("| required", "| lookup(countries)");
    cli.file("flows/b.yaml", &missing);
    let refused = cli.run(&["flow", "apply", "flows"]).await.fails(1);
    assert!(
        refused.contains("error: the lookup table \"countries\" does not exist"),
        "{refused}"
    );
    assert!(refused.contains("--> flows/b.yaml:"), "{refused}");
    assert!(
        refused.ends_with("nothing was applied: 1 of 2 definitions are wrong\n"),
        "{refused}"
    );
    assert_eq!(cli.run(&["flow", "list"]).await.expect(), "none\n");
    cli.run(&["lookup", "create", "countries"]).await.expect();
    cli.run(&["flow", "apply", "flows"]).await.expect();
}

#[tokio::test]
async fn what_runs_already_is_not_refused_when_something_around_it_has_changed() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let cli = Cli::of(&app);
    let verified = FLOW.replace(
        "trigger: manual",
        r#"trigger: webhook
  connector: erp
  verify: { scheme: standard-webhooks, secret: "{{ instance.webhook_secret }}" }"#,
    );
    cli.file("flow.yaml", &verified);
    let secret = |secret: &str| format!("webhook_secret={secret}");
    let usable = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    cli.run(&["connector", "update", "erp", "--set", &usable])
        .await
        .expect();
    cli.run(&["flow", "apply", "flow.yaml"]).await.expect();
    let updated = cli
        .run(&[
            "connector",
            "update",
            "erp",
            "--set",
            &secret("no secret of the scheme"),
        ])
        .await;
    assert!(
        updated.stderr.contains("flow \"by-hand\" is live"),
        "{}",
        updated.stderr
    );
    let again = cli.run(&["flow", "apply", "flow.yaml"]).await;
    assert!(
        again
            .stderr
            .contains("goes on; it could not be deployed anew"),
        "{}",
        again.stderr
    );
    assert!(
        again
            .stderr
            .contains("warning: found a value of instance.webhook_secret"),
        "{}",
        again.stderr
    );
    let deployed = cli.run(&["flow", "deploy", "by-hand"]).await;
    assert!(
        deployed
            .stderr
            .contains("warning: found a value of instance.webhook_secret"),
        "{}",
        deployed.stderr
    );
    assert!(
        again
            .expect()
            .contains("flow by-hand is unchanged (active, version 1)")
    );
    let renamed = cli
        .run(&["connector", "update", "erp", "--name", "erp2"])
        .await;
    assert!(
        renamed.stderr.contains("by a former name") && renamed.stderr.contains("by-hand"),
        "{}",
        renamed.stderr
    );
    let back = cli
        .run(&["connector", "update", "erp2", "--name", "erp"])
        .await;
    assert_eq!(back.stderr, "");
    cli.file(
        "flow.yaml",
        &verified.replace("by-hand\n", "by-hand\ndescription: another\n"),
    );
    cli.run(&["flow", "apply", "flow.yaml"]).await.fails(1);
}

#[tokio::test]
async fn a_definition_that_the_callers_of_the_flow_could_not_call_is_not_applied() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api
        .deployed(&crate::published_api::quote("quotes"))
        .await;
    let cli = Cli::of(&app);
    cli.run(&["api", "create", "quotes", "quotes"])
        .await
        .expect();
    cli.file("quotes.yaml", &FLOW.replace("by-hand", "quotes"));
    let refused = cli.run(&["flow", "apply", "quotes.yaml"]).await.fails(1);
    assert!(refused.contains("is called by published APIs"), "{refused}");
    assert!(
        refused.ends_with("error: nothing was applied: 1 of 1 definitions are wrong\n"),
        "{refused}"
    );
    let dry = ["flow", "deploy", "quotes", "--dry-run"];
    cli.run(&["flow", "update", "quotes", "quotes.yaml"])
        .await
        .expect();
    let refused = cli.run(&dry).await.fails(1);
    assert!(refused.contains("its trigger stays api"), "{refused}");
}

#[tokio::test]
async fn a_folder_is_checked_and_warnings_fail_where_they_are_to() {
    let app = TestApp::start().await;
    let cli = Cli::of(&app);
    std::fs::create_dir(cli.home().join("flows")).unwrap();
    cli.file("flows/a.yaml", FLOW);
    let lax = cli.run(&["flow", "validate", "flows"]).await.expect();
    assert!(
        lax.contains("warning: the connector instance \"erp\" does not exist")
            && lax.contains("a.yaml is valid"),
        "{lax}"
    );
    let strict = cli
        .run(&["flow", "validate", "flows", "--strict"])
        .await
        .fails(1);
    assert_eq!(strict, "error: flows/a.yaml has 1 warning\n");
    cli.file(
        "flows/b.yaml",
        &FLOW.replace("trigger: manual", "trigger: manuel"),
    );
    let wrong = cli.run(&["flow", "validate", "flows"]).await;
    assert!(
        wrong.stdout.contains("--> flows/b.yaml:"),
        "{}",
        wrong.stdout
    );
    assert_eq!(wrong.fails(1), "error: flows/b.yaml has 1 error\n");
    let wrong = cli
        .run(&["flow", "validate", "flows", "--strict"])
        .await
        .fails(1);
    assert_eq!(wrong, "error: 2 of 2 definitions are wrong\n");
}

#[tokio::test]
async fn hints_are_commands_that_a_shell_takes_and_mention_a_pause() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let cli = Cli::of(&app);
    cli.file("flow.yaml", &crate::flow::manual("my flow"));
    let created = cli.run(&["flow", "create", "flow.yaml"]).await.stderr;
    assert!(
        created.contains("`kanat flow deploy 'my flow'`"),
        "{created}"
    );
    let again = cli.run(&["flow", "create", "flow.yaml"]).await.fails(1);
    assert!(again.contains("`kanat flow apply`"), "{again}");
    cli.run(&["flow", "deploy", "my flow"]).await.expect();
    cli.run(&["flow", "pause", "my flow"]).await.expect();
    cli.file("order.json", r#"{"id": 7}"#);
    let run = cli
        .run(&["flow", "run", "my flow", "--data", "order.json"])
        .await
        .stderr;
    assert!(
        run.contains("waits until `kanat flow resume 'my flow'`"),
        "{run}"
    );
}

#[tokio::test]
async fn a_scheduled_flow_runs_by_hand_with_the_payload_of_its_schedule() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let cli = Cli::of(&app);
    cli.file(
        "yearly.yaml",
        &crate::schedule::scheduled("yearly", "30 12 29 2 *", "UTC"),
    );
    cli.run(&["flow", "apply", "yearly.yaml"]).await.expect();
    let run = cli
        .run(&["flow", "run", "yearly", "-o", "json"])
        .await
        .json();
    let message = app
        .api
        .message_becomes(run["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert_eq!(message["trigger"], "schedule");
    assert_eq!(message["payload"]["manual"], true);
}
