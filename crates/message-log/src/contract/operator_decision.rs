//! Promises about what an operator does to a message.

use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure, Status, Trigger};
use kanat_model::{Code, Timestamp};

use super::Harness;
use super::subject::{LONG, Subject, failure, message, ordered, tenant};
use crate::{
    AppendOutcome, Error, FlowEnd, LeasedWriteOutcome, NewMessage, Outcome, Placement,
    RetryVersion, key,
};

fn version(flow_version: u32, ordering: Option<&str>, idempotency: Option<&str>) -> RetryVersion {
    RetryVersion {
        flow_version,
        ordering_key: ordering.map(str::to_owned),
        dedupe_key: idempotency.map(|text| key::idempotency(text.to_owned())),
    }
}

pub async fn retries_a_dead_letter_with_as_many_attempts_again(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    let id = lease.message_id.clone();
    assert_eq!(
        subject.checkpoint(&lease, "contact", "{}").await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(
        subject.settle(&lease, 4, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Done
    );

    subject
        .log
        .retry(&tenant(), &id, Some(version(7, None, None)))
        .await
        .expect("it is a dead letter");
    let found = subject.get(&id).await;
    assert_eq!(found.status, Status::Received);
    assert_eq!(found.attempts, 4);
    assert_eq!(found.max_attempts, 8);
    assert_eq!(found.completed_at, None);
    assert_eq!(found.flow_version, 7);
    assert_eq!(
        subject.settle(&lease, 4, Outcome::Delivered).await,
        LeasedWriteOutcome::Fenced
    );
    let claimed = subject.claim_one(&flow).await;
    assert_eq!(claimed.attempts, 4);
    assert_eq!(claimed.max_attempts, 8);
    assert_eq!(claimed.flow_version, 7);
    assert_eq!(claimed.steps.len(), 1, "what succeeded is not run again");

    assert_eq!(
        subject.settle(&claimed.lease, 8, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Done
    );
    subject
        .log
        .retry(&tenant(), &id, None)
        .await
        .expect("it is a dead letter");
    let found = subject.get(&id).await;
    assert_eq!(found.attempts, 8);
    assert_eq!(found.max_attempts, 12);
    assert_eq!(found.flow_version, 7);
    let stages: Vec<String> = subject
        .trace(&id)
        .await
        .into_iter()
        .map(|record| record.stage)
        .collect();
    assert_eq!(
        stages,
        ["received", "delivery", "retried", "delivery", "retried"]
    );
    subject.close().await;
}

pub async fn retries_under_the_ordering_key_of_the_version(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let mut dead = Vec::new();
    for sent in [message(&flow), ordered(&flow, "former"), message(&flow)] {
        dead.push(subject.dead_letter(sent).await.message_id);
    }
    for id in &dead {
        let version = version(2, Some("a"), None);
        let retried = subject.log.retry(&tenant(), id, Some(version)).await;
        retried.expect("it is a dead letter");
        assert_eq!(subject.get(id).await.ordering_key.as_deref(), Some("a"));
    }
    // A later message of the key waits behind them, one of the former key does not.
    let later = ordered(&flow, "a");
    let later_id = later.id.clone();
    assert_eq!(subject.append(later).await, AppendOutcome::Waiting);
    subject.lease(ordered(&flow, "former")).await;
    for id in dead.iter().chain([&later_id]) {
        let claimed = subject.claim(10, &[&flow]).await;
        assert_eq!(claimed.len(), 1, "one of a key at a time");
        assert_eq!(&claimed[0].lease.message_id, id);
        subject.deliver(&claimed[0].lease).await;
    }

    // Under a version without a key it waits for no message.
    let alone = subject.dead_letter(ordered(&flow, "b")).await.message_id;
    subject.lease(ordered(&flow, "b")).await;
    let retried = subject
        .log
        .retry(&tenant(), &alone, Some(version(3, None, None)))
        .await;
    retried.expect("it is a dead letter");
    assert_eq!(subject.get(&alone).await.ordering_key, None);
    assert_eq!(subject.claim_one(&flow).await.lease.message_id, alone);
    subject.close().await;
}

pub async fn retries_under_the_idempotency_key_of_the_version(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let keyed = |text: &str| NewMessage {
        dedupe_keys: vec![key::idempotency(text.to_owned())],
        ..message(&flow)
    };
    let first = subject.dead_letter(message(&flow)).await.message_id;
    let second = subject.dead_letter(message(&flow)).await.message_id;
    for id in [&first, &second] {
        let version = version(2, None, Some("a"));
        let retried = subject.log.retry(&tenant(), id, Some(version)).await;
        retried.expect("a retry is no duplicate");
    }
    assert_eq!(
        subject.append(keyed("a")).await,
        AppendOutcome::Duplicate(first.clone())
    );

    // The key stays with a message that came meanwhile.
    let third = subject.dead_letter(message(&flow)).await.message_id;
    let fresh = keyed("b");
    let fresh_id = fresh.id.clone();
    assert_eq!(subject.append(fresh).await, AppendOutcome::Waiting);
    let retried = subject
        .log
        .retry(&tenant(), &third, Some(version(2, None, Some("b"))))
        .await;
    retried.expect("a retry is no duplicate");
    assert_eq!(
        subject.append(keyed("b")).await,
        AppendOutcome::Duplicate(fresh_id)
    );

    // A retry that is refused takes no key.
    let refused = subject
        .log
        .retry(&tenant(), &third, Some(version(2, None, Some("c"))))
        .await;
    assert!(matches!(refused, Err(Error::State(_))));
    assert_eq!(subject.append(keyed("c")).await, AppendOutcome::Waiting);
    subject.close().await;
}

pub async fn retries_nothing_but_a_dead_letter(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = message(&flow);
    let queued = sent.id.clone();
    subject.append(sent).await;
    let running = subject.lease(message(&flow)).await.message_id;
    let delivered = subject.lease(message(&flow)).await;
    subject.deliver(&delivered).await;
    for id in [&queued, &running, &delivered.message_id] {
        let before = subject.get(id).await.status;
        match subject.log.retry(&tenant(), id, None).await {
            Err(Error::State(error)) => assert_eq!(error.code, Code::FailedPrecondition),
            other => panic!(
                "a message that is {} was retried: {other:?}",
                before.as_str()
            ),
        }
        assert_eq!(subject.get(id).await.status, before);
    }
    let unknown = subject
        .log
        .retry(&tenant(), &MessageId::generate(), None)
        .await;
    assert!(matches!(unknown, Err(Error::NotFound(_))));
    subject.close().await;
}

pub async fn discards_what_waits_and_nothing_that_runs(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = message(&flow);
    let queued = sent.id.clone();
    subject.append(sent).await;
    let dead = subject.dead_letter(message(&flow)).await.message_id;
    let lease = subject.lease(message(&flow)).await;
    let retrying = lease.message_id.clone();
    let due = Timestamp::now().after(LONG);
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    for id in [&queued, &dead, &retrying] {
        subject
            .log
            .discard(&tenant(), id)
            .await
            .expect("it can be discarded");
        let found = subject.get(id).await;
        assert_eq!(found.status, Status::Discarded);
        assert_eq!(found.next_attempt_at, None);
        assert!(found.completed_at.is_some());
        assert_eq!(
            subject
                .trace(id)
                .await
                .last()
                .map(|record| record.stage.clone()),
            Some("discarded".to_owned())
        );
        assert!(matches!(
            subject.log.discard(&tenant(), id).await,
            Err(Error::State(_))
        ));
    }
    assert_eq!(
        subject.get(&dead).await.error,
        Some(failure()),
        "why it died is still there"
    );
    assert!(subject.claim(10, &[&flow]).await.is_empty());

    let running = subject.lease(message(&flow)).await;
    assert!(matches!(
        subject.log.discard(&tenant(), &running.message_id).await,
        Err(Error::State(_))
    ));
    subject.deliver(&running).await;
    subject.close().await;
}

pub async fn ends_what_waits_of_a_deleted_flow_and_leaves_the_rest_to_its_holders(
    harness: &dyn Harness,
) {
    let flow = FlowId::generate();
    let other = FlowId::generate();
    let subject = Subject::open(harness).await;
    let reason = Failure {
        kind: ErrorKind::FlowDeleted,
        message: "the flow was deleted".to_owned(),
        field: None,
        expression: None,
    };
    let mut waiting = Vec::new();
    for place in [Placement::Queued, Placement::Held] {
        let sent = NewMessage {
            place,
            ..message(&flow)
        };
        waiting.push(sent.id.clone());
        subject.append(sent).await;
    }
    for sent in [ordered(&flow, "a"), ordered(&flow, "a")] {
        waiting.push(sent.id.clone());
        subject.append(sent).await;
    }
    let lease = subject.lease(message(&flow)).await;
    waiting.push(lease.message_id.clone());
    let due = Timestamp::now().after(LONG);
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    let running = subject.lease(message(&flow)).await;
    let untouched = message(&other);
    let untouched_id = untouched.id.clone();
    subject.append(untouched).await;

    let end = async || {
        subject
            .log
            .end_flow(&flow, &reason)
            .await
            .expect("the log writes")
    };
    assert_eq!(end().await, FlowEnd::Partial);
    assert_eq!(end().await, FlowEnd::Held);
    for id in &waiting {
        let found = subject.get(id).await;
        assert_eq!(found.status, Status::Discarded);
        assert_eq!(found.next_attempt_at, None);
        assert_eq!(found.error.as_ref(), Some(&reason));
        assert!(found.completed_at.is_some());
        assert_eq!(
            subject
                .trace(id)
                .await
                .last()
                .map(|record| record.stage.clone()),
            Some("discarded".to_owned())
        );
    }
    assert!(subject.claim(10, &[&flow]).await.is_empty());
    assert_eq!(subject.get(&untouched_id).await.status, Status::Received);
    subject.deliver(&running).await;
    assert_eq!(end().await, FlowEnd::Complete);
    subject.close().await;
}

pub async fn replays_as_a_new_message(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let original = subject.dead_letter(message(&flow)).await.message_id;
    let content = subject
        .log
        .content(&tenant(), &original)
        .await
        .expect("the log reads")
        .expect("it is there");
    let replay = NewMessage {
        raw_body: content.raw_body,
        payload: content.payload,
        request: content.request,
        trigger: Trigger::Replay,
        replay_of: Some(original.clone()),
        ..message(&flow)
    };
    let id = replay.id.clone();
    assert_eq!(subject.append(replay).await, AppendOutcome::Waiting);
    let found = subject.get(&id).await;
    assert_eq!(found.replay_of, Some(original.clone()));
    assert_eq!(found.attempts, 0);
    assert_eq!(found.status, Status::Received);
    assert_eq!(subject.get(&original).await.status, Status::DeadLetter);
    assert_eq!(subject.claim_one(&flow).await.lease.message_id, id);
    subject.close().await;
}
