//! Files of the data folder that somebody deletes or moves while the service has them open, and a
//! lock that is gone.

use kanat_tests::cli::Cli;
use kanat_tests::{FakeTarget, TestApp, until};
use serde_json::json;

use crate::webhook::passthrough;

#[tokio::test]
async fn nothing_is_acknowledged_once_the_message_log_is_deleted() {
    let mut app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("orders")).await;
    let id = app.api.webhook(&url, &json!({})).await;
    app.api.message_becomes(&id, "delivered").await;
    app.api.without_key().get("/ready").await.expect(200);
    for name in ["messages.db", "messages.db-wal", "messages.db-shm"] {
        std::fs::remove_file(app.data_dir().join(name)).unwrap();
    }
    for _ in 0..20 {
        app.api
            .without_key()
            .post(&url, &json!({}))
            .await
            .expect_error(503, "UNAVAILABLE");
    }
    let not_ready = app.api.without_key().get("/ready").await.expect(503);
    assert!(
        not_ready["status"]
            .as_str()
            .unwrap()
            .contains("messages.db was deleted"),
        "{not_ready}"
    );
    app.api.without_key().get("/health").await.expect(200);
    assert!(
        app.log().contains("nothing is accepted any more"),
        "{}",
        app.log()
    );
    assert_eq!(app.terminate().await, Some(0));
}

#[tokio::test]
async fn a_folder_that_is_moved_away_is_noticed_within_seconds() {
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    let (_, url) = app.api.deployed(&passthrough("orders")).await;
    let away = app.data_dir().with_extension("away");
    std::fs::rename(app.data_dir(), &away).unwrap();
    until("messages are refused", || async {
        (app.api.without_key().post(&url, &json!({})).await.status == 503).then_some(())
    })
    .await;
    app.api.without_key().get("/ready").await.expect(503);
    std::fs::rename(&away, app.data_dir()).unwrap();
}

#[tokio::test]
async fn a_second_process_is_refused_although_the_lock_was_deleted() {
    let app = TestApp::start().await;
    std::fs::remove_file(app.data_dir().join("lock")).unwrap();
    let folder = app.data_dir();
    let up = [
        "up",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        folder.to_str().unwrap(),
    ];
    for _ in 0..2 {
        let refused = Cli::new().run(&up).await.fails(2);
        assert!(
            refused.contains("another kanat process uses the data folder"),
            "{refused}"
        );
    }
    app.api.get("/api/v1/flows").await.expect(200);
}
