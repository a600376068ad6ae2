//! Promises about what comes in.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::{Status, Trigger};

use super::Harness;
use super::subject::{Subject, leased, message, tenant};
use crate::{AppendOutcome, Error, Filter, LeasedWriteOutcome, NewMessage, Outcome, Placement};

pub async fn keeps_what_it_acknowledged_across_a_reopening(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent: Vec<NewMessage> = (0..50).map(|_| message(&flow)).collect();
    let mut ids: Vec<MessageId> = sent.iter().map(|message| message.id.clone()).collect();
    assert_eq!(
        subject.append_all(sent).await,
        vec![AppendOutcome::Waiting; 50]
    );
    subject.close().await;

    let subject = Subject::open(harness).await;
    let mut found = subject.ids(&Filter::flow(tenant(), flow.clone())).await;
    found.sort();
    ids.sort();
    assert_eq!(found, ids);
    assert_eq!(subject.claim(100, &[&flow]).await.len(), 50);
    subject.close().await;
}

pub async fn keeps_every_byte_of_what_came_in(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let mut sent = message(&flow);
    sent.raw_body = Bytes::from_static(b"\x00\xffa=1&b=%20'\n");
    sent.payload = Some(Bytes::from_static(
        br#"{"a":"1","n":9007199254740993.10,"z":1,"b":" "}"#,
    ));
    sent.request = Bytes::from_static(br#"{"headers":{"x-a":"1"},"method":"POST"}"#);
    sent.received_at = Timestamp::from_millis(1_769_847_300_123);
    sent.ordering_key = Some("k \u{1f980}".to_owned());
    sent.batch_id = Some("batch_1".to_owned());
    sent.replay_of = Some(MessageId::new("msg_0"));
    sent.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    sent.trigger = Trigger::Replay;
    let expected = sent.clone();
    subject.append(sent).await;

    let content = subject
        .log
        .content(&tenant(), &expected.id)
        .await
        .expect("the log reads")
        .expect("it is there");
    assert_eq!(content.raw_body, expected.raw_body);
    assert_eq!(content.payload, expected.payload);
    assert_eq!(content.request, expected.request);

    let found = subject.get(&expected.id).await;
    assert_eq!(Some(found.payload), expected.payload);
    assert_eq!(found.flow_name, expected.flow_name);
    assert_eq!(found.flow_version, expected.flow_version);
    assert_eq!(found.trigger, Trigger::Replay);
    assert_eq!(found.received_at, expected.received_at);
    assert_eq!(found.ordering_key, expected.ordering_key);
    assert_eq!(found.batch_id, expected.batch_id);
    assert_eq!(found.replay_of, expected.replay_of);
    assert_eq!(found.traceparent, expected.traceparent);
    assert_eq!(found.attempts, 0);
    assert_eq!(found.max_attempts, 4);
    assert_eq!(found.status, Status::Received);
    assert_eq!(found.completed_at, None);
    assert_eq!(found.error, None);
    assert_eq!(found.output, None);
    assert_eq!(found.next_attempt_at, None);

    let claimed = subject.claim_one(&flow).await;
    assert_eq!(claimed.raw_body, expected.raw_body);
    assert_eq!(Some(claimed.payload), expected.payload);
    assert_eq!(claimed.request, expected.request);
    assert_eq!(claimed.ordering_key, expected.ordering_key);
    assert_eq!(claimed.traceparent, expected.traceparent);
    assert_eq!(claimed.received_at, expected.received_at);
    subject.close().await;
}

pub async fn groups_concurrent_writes_into_few_commits(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let place = Placement::Leased(subject.boot.clone());
    let before = subject.log.stats();
    let sent = (0..2_000)
        .map(|_| NewMessage {
            place: place.clone(),
            ..message(&flow)
        })
        .collect();
    let leases: Vec<_> = subject
        .append_all(sent)
        .await
        .into_iter()
        .map(leased)
        .collect();
    let settled = leases
        .iter()
        .map(|lease| subject.settle(lease, 1, Outcome::Delivered));
    assert_eq!(
        futures::future::join_all(settled).await,
        vec![LeasedWriteOutcome::Done; 2_000]
    );

    let stats = subject.log.stats();
    assert_eq!(stats.appended - before.appended, 2_000);
    assert_eq!(stats.settled - before.settled, 2_000);
    let commits = stats.commits - before.commits;
    assert!(commits <= 4_000 / 20, "4,000 writes took {commits} commits");
    subject.close().await;
}

pub async fn frees_a_message_whose_sender_went_away(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let mut changed = subject.log.changed();
    // The message is with the log, and whoever sent it is gone before the answer. An answer that is
    // there at once has its lease with it, and shows nothing.
    loop {
        let sent = NewMessage {
            place: Placement::Leased(subject.boot.clone()),
            ..message(&flow)
        };
        let mut append = subject.log.append(sent);
        if futures::poll!(&mut append).is_pending() {
            break;
        }
    }
    loop {
        changed.mark_unchanged();
        if subject.claim(1, &[&flow]).await.len() == 1 {
            break;
        }
        changed.changed().await.expect("the log is open");
    }
    subject.close().await;
}

pub async fn refuses_a_second_message_of_the_same_id_alone(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let first = message(&flow);
    let again = NewMessage {
        raw_body: Bytes::from_static(b"2"),
        ..first.clone()
    };
    let others: Vec<NewMessage> = (0..20).map(|_| message(&flow)).collect();
    let mut sent = others.clone();
    sent.insert(5, first);
    sent.insert(15, again);
    let results =
        futures::future::join_all(sent.into_iter().map(|message| subject.log.append(message)))
            .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 21);
    assert_eq!(subject.ids(&Filter::flow(tenant(), flow)).await.len(), 21);
    subject.close().await;
}

pub async fn refuses_writes_after_it_was_closed(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let sent: Vec<NewMessage> = (0..50).map(|_| message(&FlowId::generate())).collect();
    let appends =
        futures::future::join_all(sent.into_iter().map(|message| subject.log.append(message)));
    let (appended, ()) = futures::future::join(appends, subject.close()).await;
    assert!(
        appended.iter().all(Result::is_ok),
        "what was queued is finished"
    );
    let late = subject.log.append(message(&FlowId::generate())).await;
    assert!(matches!(late, Err(Error::Unavailable(_))));
    assert!(matches!(
        subject.log.ping().await,
        Err(Error::Unavailable(_))
    ));
    subject.close().await;
}

pub async fn a_probe_leaves_nothing(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    assert!(subject.log.is_empty().await.expect("the log reads"));
    for _ in 0..3 {
        subject.log.probe().await.expect("there is room");
    }
    assert!(subject.log.is_empty().await.expect("the log reads"));
    let lease = subject.lease(message(&FlowId::generate())).await;
    assert!(!subject.log.is_empty().await.expect("the log reads"));
    subject.deliver(&lease).await;
    subject.close().await;
}
