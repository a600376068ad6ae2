//! Promises about the backlog.

use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use super::{Harness, Subject, message};
use crate::{Backlog, LeasedWriteOutcome, NewMessage, Outcome, Placement};

pub async fn counts_the_backlog_of_each_flow(harness: &dyn Harness) {
    let flow = FlowId::new("a");
    let other = FlowId::new("b");
    let subject = Subject::open(harness).await;
    assert_eq!(subject.log.backlog().await.expect("the log reads"), []);
    let messages = [
        message(&flow),
        NewMessage {
            place: Placement::Held,
            ..message(&flow)
        },
        NewMessage {
            place: Placement::Leased(subject.boot.clone()),
            payload: Some("[1]".into()),
            ..message(&flow)
        },
        message(&other),
    ];
    let bytes: Vec<u64> = messages.iter().map(NewMessage::stored_bytes).collect();
    assert_eq!(bytes[2], bytes[0] + 3);
    subject.append_all(messages.into()).await;
    let retried = subject.lease(message(&flow)).await;
    let due = Timestamp::now().after(Duration::from_secs(60));
    assert_eq!(
        subject.settle(&retried, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    let finished = subject.lease(message(&flow)).await;
    subject.deliver(&finished).await;
    let failed = subject.dead_letter(message(&other)).await;

    let counted = subject.log.backlog().await.expect("the log reads");
    let counts: Vec<_> = counted
        .iter()
        .map(|flow| (flow.flow_id.as_str(), flow.messages, flow.bytes))
        .collect();
    assert_eq!(
        counts,
        [("a", 4, 3 * bytes[0] + bytes[2]), ("b", 1, bytes[0])]
    );

    let claimed = subject.claim_one(&other).await;
    assert_eq!(claimed.stored_bytes, bytes[0]);
    subject.deliver(&claimed.lease).await;
    let tenant = super::tenant();
    subject
        .log
        .retry(&tenant, &failed.message_id, None)
        .await
        .expect("it is a dead letter");
    let counted = subject.log.backlog().await.expect("the log reads");
    assert_eq!(counted.last().map(|flow| flow.bytes), Some(bytes[0]));
    subject.close().await;
}

pub async fn returns_the_age_of_the_oldest_message_without_an_attempt(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let oldest = async || {
        let counted = subject.log.backlog().await.expect("the log reads");
        let [Backlog { oldest, .. }] = counted.as_slice() else {
            panic!("one flow has a backlog")
        };
        *oldest
    };
    let long_ago = Timestamp::now().before(Duration::from_secs(600));
    subject
        .append(NewMessage {
            place: Placement::Held,
            received_at: long_ago,
            ..message(&flow)
        })
        .await;
    let retried = subject
        .lease(NewMessage {
            received_at: long_ago,
            ..message(&flow)
        })
        .await;
    let due = Timestamp::steady().before(Duration::from_secs(300));
    assert_eq!(
        subject.settle(&retried, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(oldest().await, None);

    let ago = |seconds| Timestamp::now().before(Duration::from_secs(seconds));
    let age = async || {
        Timestamp::steady()
            .since(oldest().await.expect("two wait"))
            .as_secs()
    };
    subject.append(message(&flow)).await;
    subject
        .append(NewMessage {
            received_at: ago(100),
            ..message(&flow)
        })
        .await;
    assert!((99..200).contains(&age().await));
    subject
        .lease(NewMessage {
            received_at: ago(200),
            ..message(&flow)
        })
        .await;
    assert!((199..300).contains(&age().await));
    subject.close().await;
}
