//! `kanat schedule`: named by the flow, shown, changed and started.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp};

use crate::schedule::scheduled;

#[tokio::test]
async fn a_schedule_is_known_by_its_flow() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api
        .deployed(&scheduled("nightly", "30 2 29 2 *", "Europe/Berlin"))
        .await;
    let cli = Cli::of(&app);
    assert!(
        cli.run(&["schedule", "list"])
            .await
            .expect()
            .contains("30 2 29 2 *")
    );
    assert!(
        cli.run(&["schedule", "show", "nightly"])
            .await
            .expect()
            .contains("-02-29T01:30:00.000Z")
    );
    let changed = cli
        .run(&[
            "schedule",
            "update",
            "nightly",
            "--cron",
            "0 4 1 1 *",
            "--timezone",
            "UTC",
        ])
        .await
        .expect();
    assert!(changed.contains("-01-01T04:00:00.000Z"), "{changed}");
    let changed = cli
        .run(&["schedule", "update", "nightly", "--enabled", "false"])
        .await
        .expect();
    assert!(changed.contains("never"), "{changed}");
    let shown = cli.run(&["flow", "show", "nightly"]).await;
    assert!(
        shown.stderr.contains("the schedule 0 4 1 1 * (UTC) is off"),
        "{}",
        shown.stderr
    );
    let deployed = cli.run(&["flow", "deploy", "nightly"]).await;
    assert!(deployed.stderr.contains("is off"), "{}", deployed.stderr);
    cli.run(&["flow", "pause", "nightly"]).await.expect();
    let paused = cli
        .run(&["schedule", "update", "nightly", "--enabled", "true"])
        .await;
    let reason = "not while the flow is paused";
    assert!(paused.stdout.contains(reason), "{}", paused.stdout);
    let resume = "`kanat flow resume nightly`";
    assert!(paused.stderr.contains(resume), "{}", paused.stderr);
    cli.run(&["flow", "resume", "nightly"]).await.expect();
    let rolled_back = cli.run(&["flow", "rollback", "nightly", "1"]).await;
    let due = "the schedule 0 4 1 1 * (UTC) is due next at";
    assert!(rolled_back.stderr.contains(due), "{}", rolled_back.stderr);
    let started = cli
        .run(&["schedule", "trigger", "nightly", "-o", "json"])
        .await
        .json();
    app.api
        .message_becomes(started["messageId"].as_str().unwrap(), "delivered")
        .await;
    assert!(
        cli.run(&["schedule", "show", "nightly"])
            .await
            .expect()
            .contains("success")
    );
    let preview = [
        "schedule",
        "preview",
        "0 12 * * *",
        "--after",
        "2026-01-31T12:00:00Z",
        "--count",
        "2",
    ];
    let times = cli.run(&preview).await.expect();
    assert_eq!(
        times.trim_end(),
        "2026-02-01T12:00:00.000Z\n2026-02-02T12:00:00.000Z"
    );
}
