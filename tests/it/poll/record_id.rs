//! Ids of records that no record has, or several share.

use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp};

use super::{Provider, all, delivered, polled, polling};

#[tokio::test]
async fn a_record_id_that_no_record_has_is_reported_and_the_records_are_taken() {
    let provider = Provider::start(8).await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let poll = "    interval: 1h\n    record_id: isbm\n";
    let (flow, _) = app
        .api
        .deployed(&polling("misspelt", "/offset", poll))
        .await;
    assert_eq!(delivered(&target, "misspelt", 8).await, all(8));
    let complaint = "record_id \"isbm\" is in none of the 8 records";
    assert_eq!(polled(&app.api, &flow).await["lastError"], complaint);
    let shown = app
        .api
        .get(&format!("/api/v1/flows/{flow}"))
        .await
        .expect(200);
    assert_eq!(shown["lastError"]["message"], complaint);
}

#[tokio::test]
async fn a_record_id_that_several_records_share_is_reported() {
    let records = r#"[{"id": 1, "by": 7}, {"id": 2, "by": 7}, {"id": 3, "by": "7"}, {"id": 4}]"#;
    let provider = Provider::scripted(8, move |_, _| {
        Some(Reply::Answer(200, Vec::new(), records.to_owned()))
    })
    .await;
    let app = TestApp::start().await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let poll = "    interval: 1h\n    record_id: by\n";
    let (flow, _) = app.api.deployed(&polling("shared", "/offset", poll)).await;
    assert_eq!(
        polled(&app.api, &flow).await["lastError"],
        "record_id \"by\" is no id: 2 of the 4 records of a page have the same value as another \
         one, and are taken in each cycle"
    );
}
