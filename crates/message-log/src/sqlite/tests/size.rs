//! The file shrinks when messages are dropped, and the write-ahead log does not grow without end.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use super::File;
use crate::contract::{Subject, message};
use crate::{Filter, NewMessage, Tenant};

#[tokio::test]
async fn gives_the_room_of_dropped_messages_back_to_the_disk() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let flow = FlowId::generate();
    let body = Bytes::from(format!("{:?}", "x".repeat(8_000)));
    let sent: Vec<NewMessage> = (0..1_500)
        .map(|_| NewMessage {
            raw_body: body.clone(),
            ..message(&flow)
        })
        .collect();
    let kept = message(&flow);
    let kept_id = kept.id.clone();
    let account_id = kept.account_id.clone();
    let environment_id = kept.environment_id.clone();
    subject.append_all(sent).await;
    for claimed in subject.claim(2_000, &[&flow]).await {
        subject.deliver(&claimed.lease).await;
    }
    subject.append(kept).await;
    // Nothing is old enough to drop, so that retention only checkpoints the write-ahead log.
    assert_eq!(
        subject.log.retain(Timestamp::from_millis(0)).await.unwrap(),
        0
    );
    assert_eq!(file.write_ahead_bytes(), 0);
    let full = file.size_bytes();
    assert!(full > 1_500 * 8_000, "{full} bytes");

    let soon = Timestamp::now().after(std::time::Duration::from_secs(60));
    assert_eq!(subject.log.retain(soon).await.unwrap(), 1_500);
    assert_eq!(file.write_ahead_bytes(), 0);
    let left = file.size_bytes();
    assert!(left < full / 20, "{left} of {full} bytes are left");
    let tenant = Tenant {
        account_id,
        environment_id,
    };
    assert_eq!(subject.ids(&Filter::flow(tenant, flow)).await, [kept_id]);
    subject.close().await;
}

#[tokio::test]
async fn keeps_the_write_ahead_log_small_however_much_comes_in() {
    let file = File::new();
    let subject = Subject::open(&file).await;
    let body = Bytes::from(format!("{:?}", "x".repeat(500_000)));
    for _ in 0..12 {
        let flow = FlowId::generate();
        let sent = (0..20)
            .map(|_| NewMessage {
                raw_body: body.clone(),
                ..message(&flow)
            })
            .collect();
        subject.append_all(sent).await;
    }
    let length = file.write_ahead_bytes();
    assert!(
        length < 90_000_000,
        "the write-ahead log has {length} of 120,000,000 bytes"
    );
    subject.close().await;
    assert!(file.size_bytes() > 120_000_000);
}
