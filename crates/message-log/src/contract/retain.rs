//! Promises about what is dropped, and what is not.

use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};

use super::Harness;
use super::subject::{LONG, Subject, message, settlement, tenant};
use crate::{EventQuery, Filter, LeasedWriteOutcome, NewMessage, Outcome, SavedPlan};

/// A message of a thousand seconds ago that ended then.
async fn finished_long_ago(subject: &Subject, flow: &FlowId, outcome: Outcome) -> MessageId {
    let received_at = Timestamp::now().before(Duration::from_secs(1_000));
    let lease = subject
        .lease(NewMessage {
            received_at,
            ..message(flow)
        })
        .await;
    let mut settlement = settlement(&lease, 1, outcome);
    settlement.at = received_at.after(Duration::from_secs(1));
    assert_eq!(
        subject.log.settle(&settlement).await.expect("it is taken"),
        LeasedWriteOutcome::Done
    );
    lease.message_id
}

pub async fn drops_old_finished_messages_only(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let mut old = Vec::new();
    for outcome in [Outcome::Delivered, Outcome::Filtered, Outcome::DeadLetter] {
        old.push(finished_long_ago(&subject, &flow, outcome).await);
    }
    let received_at = Timestamp::now().before(Duration::from_secs(1_000));
    let due = Timestamp::now().after(LONG);
    let retrying = subject
        .lease(NewMessage {
            received_at,
            ..message(&flow)
        })
        .await;
    assert_eq!(
        subject.settle(&retrying, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    // Old when it came, but it ended just now.
    let late = subject
        .lease(NewMessage {
            received_at,
            ..message(&flow)
        })
        .await;
    subject.deliver(&late).await;
    let new = subject.lease(message(&flow)).await;
    subject.deliver(&new).await;

    let older_than = Timestamp::now().before(Duration::from_secs(500));
    assert_eq!(
        subject.log.retain(older_than).await.expect("it is taken"),
        3
    );
    let mut kept = subject.ids(&Filter::flow(tenant(), flow.clone())).await;
    let mut expected = vec![retrying.message_id, late.message_id, new.message_id.clone()];
    kept.sort();
    expected.sort();
    assert_eq!(kept, expected);
    for id in &old {
        assert!(
            subject
                .log
                .get(&tenant(), id)
                .await
                .expect("the log reads")
                .is_none()
        );
        assert!(subject.trace(id).await.is_empty());
    }
    assert_eq!(
        subject.get(&new.message_id).await.output.as_deref(),
        Some(br#"{"attempt":1}"#.as_slice())
    );
    assert_eq!(
        subject.log.retain(older_than).await.expect("it is taken"),
        0
    );
    subject.close().await;
}

pub async fn drops_old_finished_messages_of_some_flows(harness: &dyn Harness) {
    let flows = [FlowId::generate(), FlowId::generate(), FlowId::generate()];
    let [one, two, other] = &flows;
    let subject = Subject::open(harness).await;
    for _ in 0..3 {
        finished_long_ago(&subject, one, Outcome::Delivered).await;
    }
    let dead = finished_long_ago(&subject, two, Outcome::DeadLetter).await;
    let of_other = finished_long_ago(&subject, other, Outcome::Delivered).await;
    let unfinished = NewMessage {
        received_at: Timestamp::now().before(Duration::from_secs(1_000)),
        ..message(one)
    };
    let unfinished_id = unfinished.id.clone();
    subject.lease(unfinished).await;
    let new = subject.lease(message(two)).await;
    subject.deliver(&new).await;

    let retain = async |seconds| {
        let older_than = Timestamp::now().before(Duration::from_secs(seconds));
        let flows = [one.clone(), two.clone(), FlowId::generate()];
        let dropped = subject.log.retain_flows(&flows, older_than).await;
        dropped.expect("it is taken")
    };
    assert_eq!(retain(2_000).await, 0);
    assert_eq!(retain(500).await, 4);
    assert_eq!(retain(500).await, 0);
    let kept = async |flow: &FlowId| subject.ids(&Filter::flow(tenant(), flow.clone())).await;
    assert_eq!(kept(one).await, [unfinished_id]);
    assert_eq!(kept(two).await, [new.message_id]);
    assert_eq!(kept(other).await, [of_other]);
    assert!(subject.trace(&dead).await.is_empty());
    subject.close().await;
}

pub async fn never_gives_an_event_id_twice(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    finished_long_ago(&subject, &flow, Outcome::Delivered).await;
    let last = subject.log.last_event().await.expect("the log reads");
    assert_eq!(
        subject
            .log
            .retain(Timestamp::now())
            .await
            .expect("it is taken"),
        1
    );
    assert!(
        subject
            .events(EventQuery::after(tenant(), 0))
            .await
            .is_empty()
    );
    subject.close().await;

    let subject = Subject::open(harness).await;
    subject.append(message(&flow)).await;
    let news = subject.events(EventQuery::after(tenant(), last)).await;
    assert_eq!(
        news.len(),
        1,
        "whoever had seen everything sees what came since"
    );
    subject.close().await;
}

pub async fn keeps_plans_as_long_as_something_needs_them(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let plan = |version: u32| SavedPlan {
        flow_id: flow.clone(),
        version,
        body: Bytes::from(format!("\x00plan {version}")),
    };
    subject
        .log
        .save_plans(vec![plan(1), plan(2), plan(3), plan(4)])
        .await
        .expect("they are taken");
    subject
        .log
        .save_plans(vec![plan(4)])
        .await
        .expect("the same again is taken");
    let found = subject.log.plan(&flow, 2).await.expect("the log reads");
    assert_eq!(found.as_deref(), Some(b"\x00plan 2".as_slice()));
    assert_eq!(
        subject.log.plan(&flow, 9).await.expect("the log reads"),
        None
    );

    subject
        .append(NewMessage {
            flow_version: 2,
            ..message(&flow)
        })
        .await;
    finished_long_ago(&subject, &flow, Outcome::Delivered).await;
    let soon = Timestamp::now().after(LONG);
    assert_eq!(subject.log.retain(soon).await.expect("it is taken"), 1);
    let mut kept = Vec::new();
    for version in 1..=4 {
        if subject
            .log
            .plan(&flow, version)
            .await
            .expect("the log reads")
            .is_some()
        {
            kept.push(version);
        }
    }
    assert_eq!(kept, [2, 4], "one has a message, one is the newest");
    subject.close().await;
}

pub async fn adds_plans_that_it_lacks_and_replaces_none(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let plan = |version: u32, body: &'static str| SavedPlan {
        flow_id: flow.clone(),
        version,
        body: Bytes::from_static(body.as_bytes()),
    };
    let log = &subject.log;
    log.save_plans(vec![plan(1, "deployed")])
        .await
        .expect("it is taken");
    let former = vec![plan(1, "former"), plan(2, "former")];
    log.save_missing_plans(former)
        .await
        .expect("they are taken");
    let of_version = async |version| log.plan(&flow, version).await.expect("the log reads");
    assert_eq!(of_version(1).await.as_deref(), Some(b"deployed".as_slice()));
    assert_eq!(of_version(2).await.as_deref(), Some(b"former".as_slice()));

    // The flow continues with a version that is lower than one of before a restore.
    let added = Timestamp::now();
    while Timestamp::now() <= added {
        tokio::task::yield_now().await;
    }
    log.save_plans(vec![plan(1, "deployed")])
        .await
        .expect("it is taken");
    let soon = Timestamp::now().after(LONG);
    log.retain(soon).await.expect("it is taken");
    assert!(
        of_version(1).await.is_some(),
        "the plan that was saved last"
    );
    assert!(of_version(2).await.is_some());
    subject.close().await;
}
