//! Promises about the live stream.

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId};
use kanat_model::message::Status;

use super::Harness;
use super::subject::{Subject, failure, message, tenant};
use crate::{
    Event, EventPage, EventQuery, LeasedWriteOutcome, NewMessage, Outcome, Placement, Tenant,
};

fn statuses(events: &[Event]) -> Vec<Status> {
    events.iter().map(|event| event.message.status).collect()
}

pub async fn streams_every_change_in_order(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let begin = subject.log.last_event().await.expect("the log reads");
    let lease = subject.lease(message(&flow)).await;
    let due = Timestamp::now();
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    let claimed = subject.claim_one(&flow).await;
    assert_eq!(
        subject.settle(&claimed.lease, 2, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Done
    );
    subject
        .log
        .retry(&tenant(), &lease.message_id, None)
        .await
        .expect("it is a dead letter");
    subject
        .log
        .discard(&tenant(), &lease.message_id)
        .await
        .expect("it waits");
    let held = NewMessage {
        place: Placement::Held,
        ..message(&flow)
    };
    subject.append(held).await;

    let mut query = EventQuery::after(tenant(), begin);
    let events = subject.events(query.clone()).await;
    let expected = [
        Status::Received,
        Status::Retrying,
        Status::Processing,
        Status::DeadLetter,
        Status::Received,
        Status::Discarded,
        Status::Held,
    ];
    assert_eq!(statuses(&events), expected);
    assert!(events.is_sorted_by(|one, next| one.seq < next.seq));
    assert_eq!(
        subject.log.last_event().await.expect("the log reads"),
        events[6].seq
    );

    // Small pages give the same.
    query.limit = 2;
    let paged = subject.events(query.clone()).await;
    let seqs = |events: &[Event]| -> Vec<i64> { events.iter().map(|event| event.seq).collect() };
    assert_eq!(seqs(&paged), seqs(&events));
    query.status = Some(Status::DeadLetter);
    assert_eq!(seqs(&subject.events(query.clone()).await), [events[3].seq]);
    query.status = Some(Status::Received);
    assert_eq!(
        seqs(&subject.events(query.clone()).await),
        [events[0].seq, events[4].seq]
    );
    query.after = events[6].seq;
    assert!(subject.events(query).await.is_empty());
    subject.close().await;
}

pub async fn shows_a_message_as_it_stood_at_each_event(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let begin = subject.log.last_event().await.expect("the log reads");
    let lease = subject.lease(message(&flow)).await;
    let due = Timestamp::now();
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    let claimed = subject.claim_one(&flow).await;
    assert_eq!(
        subject.settle(&claimed.lease, 2, Outcome::Delivered).await,
        LeasedWriteOutcome::Done
    );

    let events = subject.events(EventQuery::after(tenant(), begin)).await;
    let shown: Vec<_> = events
        .iter()
        .map(|event| &event.message)
        .map(|m| {
            (
                m.status,
                m.attempts,
                m.error.clone(),
                m.next_attempt_at,
                m.completed_at.is_some(),
            )
        })
        .collect();
    let expected = [
        (Status::Received, 0, None, None, false),
        (Status::Retrying, 1, Some(failure()), Some(due), false),
        (Status::Processing, 1, Some(failure()), None, false),
        (Status::Delivered, 2, None, None, true),
    ];
    assert_eq!(shown, expected);
    let outputs: Vec<_> = events
        .iter()
        .map(|event| event.message.output.as_deref())
        .collect();
    let first = br#"{"attempt":1}"#.as_slice();
    let second = br#"{"attempt":2}"#.as_slice();
    assert_eq!(outputs, [None, Some(first), Some(first), Some(second)]);
    assert!(
        events
            .iter()
            .all(|event| event.message.payload.as_ref() == br#"{"id":"o-1"}"#)
    );
    subject.close().await;
}

pub async fn resumes_a_stream_after_a_reopening(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    let seen = subject.events(EventQuery::after(tenant(), 0)).await;
    subject.deliver(&lease).await;
    let all = subject.events(EventQuery::after(tenant(), 0)).await;
    subject.close().await;

    let subject = Subject::open(harness).await;
    let again = subject
        .events(EventQuery::after(tenant(), seen[0].seq))
        .await;
    assert_eq!(statuses(&again), [Status::Delivered]);
    assert_eq!(again[0].seq, all[1].seq);
    subject.append(message(&flow)).await;
    let news = subject
        .events(EventQuery::after(tenant(), again[0].seq))
        .await;
    assert_eq!(statuses(&news), [Status::Received]);
    subject.close().await;
}

pub async fn keeps_the_streams_of_others_apart(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let other = FlowId::generate();
    let subject = Subject::open(harness).await;
    subject.append(message(&flow)).await;
    subject.append(message(&other)).await;
    let foreign = Tenant {
        account_id: AccountId::new("acc_2"),
        ..tenant()
    };
    subject
        .append(NewMessage {
            account_id: foreign.account_id.clone(),
            ..message(&FlowId::generate())
        })
        .await;
    let staging = Tenant {
        environment_id: EnvironmentId::new("env_2"),
        ..tenant()
    };

    assert_eq!(
        subject.events(EventQuery::after(tenant(), 0)).await.len(),
        2
    );
    assert_eq!(subject.events(EventQuery::after(foreign, 0)).await.len(), 1);
    assert_eq!(subject.events(EventQuery::after(staging, 0)).await.len(), 0);
    let query = EventQuery {
        flow_id: Some(other.clone()),
        ..EventQuery::after(tenant(), 0)
    };
    let events = subject.events(query).await;
    assert_eq!(events.len(), 1);
    assert_eq!(&events[0].message.flow_id, &other);
    subject.close().await;
}

pub async fn ends_a_page_of_the_stream_before_it_is_large(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let large = Bytes::from(format!(
        "\"{}\"",
        "x".repeat(EventPage::BYTES as usize / 5 * 2)
    ));
    for _ in 0..3 {
        let lease = subject
            .lease(NewMessage {
                raw_body: large.clone(),
                ..message(&flow)
            })
            .await;
        subject.deliver(&lease).await;
    }
    let larger = Bytes::from(format!("\"{}\"", "x".repeat(EventPage::BYTES as usize)));
    subject
        .append(NewMessage {
            raw_body: larger,
            ..message(&flow)
        })
        .await;
    let mut query = EventQuery::after(tenant(), 0);
    let mut sizes = Vec::new();
    loop {
        let page = subject.log.events(&query).await.expect("the log reads");
        sizes.push(page.events.len());
        query.after = page.next_after;
        if !page.more {
            break;
        }
    }
    assert_eq!(
        sizes,
        [2, 2, 2, 1],
        "two events of two fifths fit, and one that is too large comes alone"
    );
    subject.close().await;
}
