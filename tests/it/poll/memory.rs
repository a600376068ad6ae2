//! A long answer is taken in while it comes: the process never holds it.

use kanat_tests::target::Reply;
use kanat_tests::{FakeTarget, TestApp, memory};

use super::{polled, polling};

/// Bytes of the answer; the growth of the process is bounded by the second figure.
const ANSWER: usize = 64 << 20;
const MAX_GROWTH_KIB: u64 = 24 << 10;

#[tokio::test]
async fn an_answer_of_64_mib_is_found_in_while_it_comes() {
    let record = format!(r#"{{"id": 1, "text": "{}"}}"#, "x".repeat(4_000));
    let count = ANSWER / record.len();
    let mut records = vec![record; count];
    records.push(r#"{"id": 2, "text": "last"}"#.to_owned());
    let body = format!(
        r#"{{"data": {{"items": [{}]}}, "meta": {{"next": null}}}}"#,
        records.join(",\n")
    );
    let provider =
        FakeTarget::scripted(move |_, _| Reply::Answer(200, Vec::new(), body.clone())).await;
    let app = TestApp::start_with(&[("KANAT_POLL_ANSWER_LIMIT", "134217728")]).await;
    let target = FakeTarget::start().await;
    app.api.http_instance("erp", &target.url()).await;
    app.api.http_instance("shop", &provider.url()).await;
    let before = memory::peak_kib(app.pid());
    let poll = "    records_path: data.items\n    record_id: id\n    interval: 1h\n    \
                pagination: { strategy: cursor, cursor_path: meta.next, cursor_param: cursor }\n";
    let (flow, _) = app.api.deployed(&polling("long", "/long", poll)).await;
    let polled = polled(&app.api, &flow).await;
    let grown = memory::peak_kib(app.pid()).saturating_sub(before);
    println!(
        "{} MiB in {count} records: {} MiB more at most",
        ANSWER >> 20,
        grown >> 10
    );
    assert!(polled["lastError"].is_null(), "{polled}");
    // The same record again is no other, and the last one was found too.
    assert_eq!(super::delivered(&target, "long", 2).await, [1, 2]);
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB more than before");
}
