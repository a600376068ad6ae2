//! Promises about what an operator does to a message.

use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::{ErrorKind, Failure, Status, Trigger};
use kanat_model::{Code, Timestamp};

use super::Harness;
use super::subject::{LONG, Subject, failure, message, ordered, tenant};
use crate::{AppendOutcome, Error, FlowEnd, NewMessage, Outcome, Placement, SettleOutcome};

pub async fn retries_a_dead_letter_with_as_many_attempts_again(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    let id = lease.message_id.clone();
    assert_eq!(
        subject.checkpoint(&lease, "contact", "{}").await,
        SettleOutcome::Done
    );
    assert_eq!(
        subject.settle(&lease, 4, Outcome::DeadLetter).await,
        SettleOutcome::Done
    );

    subject
        .log
        .retry(&tenant(), &id, Some(7))
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
        SettleOutcome::Fenced
    );
    let claimed = subject.claim_one(&flow).await;
    assert_eq!(claimed.attempts, 4);
    assert_eq!(claimed.max_attempts, 8);
    assert_eq!(claimed.flow_version, 7);
    assert_eq!(claimed.steps.len(), 1, "what succeeded is not run again");

    assert_eq!(
        subject.settle(&claimed.lease, 8, Outcome::DeadLetter).await,
        SettleOutcome::Done
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
        SettleOutcome::Done
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
        SettleOutcome::Done
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
