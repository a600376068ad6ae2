//! Promises about what a holder writes.

use std::sync::Arc;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_model::message::Status;

use super::Harness;
use super::subject::{LONG, Subject, failure, message, record, settlement, tenant};
use crate::{AttemptedMessage, Error, EventQuery, LeasedWriteOutcome, Outcome, Settlement};

pub async fn settles_each_outcome(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let due = Timestamp::now().after(LONG);
    let finals = [
        (Outcome::Delivered, Status::Delivered, None),
        (Outcome::Filtered, Status::Filtered, None),
        (Outcome::DeadLetter, Status::DeadLetter, Some(failure())),
        (Outcome::Discarded, Status::Discarded, Some(failure())),
    ];
    for (outcome, status, error) in finals {
        let lease = subject.lease(message(&flow)).await;
        assert_eq!(
            subject.get(&lease.message_id).await.status,
            Status::Processing
        );
        let settlement = settlement(&lease, 1, outcome);
        let at = settlement.at;
        assert_eq!(
            subject.log.settle(&settlement).await.expect("it is taken"),
            LeasedWriteOutcome::Done
        );
        let found = subject.get(&lease.message_id).await;
        assert_eq!(found.status, status);
        assert_eq!(found.attempts, 1);
        assert_eq!(found.completed_at, Some(at));
        assert_eq!(found.error, error);
        assert_eq!(found.next_attempt_at, None);
        assert_eq!(
            found.output.as_deref(),
            Some(br#"{"attempt":1}"#.as_slice())
        );
    }

    // A caller was not served by what was delivered.
    let lease = subject.lease(message(&flow)).await;
    let noted = Settlement {
        failure: Some(failure()),
        ..settlement(&lease, 1, Outcome::Delivered)
    };
    let settled = subject.log.settle(&noted).await.expect("it is taken");
    assert_eq!(settled, LeasedWriteOutcome::Done);
    let found = subject.get(&lease.message_id).await;
    assert_eq!(found.status, Status::Delivered);
    assert_eq!(found.error, Some(failure()));

    let lease = subject.lease(message(&flow)).await;
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    let found = subject.get(&lease.message_id).await;
    assert_eq!(found.status, Status::Retrying);
    assert_eq!(found.attempts, 1);
    assert_eq!(found.next_attempt_at, Some(due));
    assert_eq!(found.error, Some(failure()));
    assert_eq!(found.completed_at, None);

    let lease = subject.lease(message(&flow)).await;
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Release { due }).await,
        LeasedWriteOutcome::Done
    );
    let found = subject.get(&lease.message_id).await;
    assert_eq!(found.status, Status::Received);
    assert_eq!(found.attempts, 0);
    assert_eq!(found.error, None);
    assert!(
        subject.claim(10, &[&flow]).await.is_empty(),
        "nothing is due"
    );
    subject.close().await;
}

pub async fn keeps_messages_that_come_with_their_first_attempt(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let begin = subject.log.last_event().await.expect("the log reads");
    let at = Timestamp::now();
    let due = Timestamp::now().after(LONG);
    let cases = [
        (Outcome::Delivered, Status::Delivered, 1, Some(failure())),
        (Outcome::Filtered, Status::Filtered, 1, None),
        (Outcome::DeadLetter, Status::DeadLetter, 1, Some(failure())),
        (Outcome::Discarded, Status::Discarded, 1, Some(failure())),
        (Outcome::Retry { due }, Status::Retrying, 1, Some(failure())),
        (Outcome::Release { due }, Status::Received, 0, None),
    ];
    let tried = |outcome| {
        Arc::new(AttemptedMessage {
            message: message(&flow),
            at,
            outcome,
            output: Some(bytes::Bytes::from_static(b"{\"made\":1}")),
            failure: Some(failure()),
            trace: vec![record("answered", 1)],
        })
    };
    let all: Vec<Arc<AttemptedMessage>> =
        cases.iter().map(|(outcome, ..)| tried(*outcome)).collect();
    subject
        .log
        .append_attempted(all.clone())
        .await
        .expect("they are taken");
    for (tried, (outcome, status, attempts, error)) in all.iter().zip(cases) {
        let found = subject.get(&tried.message.id).await;
        assert_eq!(found.status, status, "{outcome:?}");
        assert_eq!(found.attempts, attempts, "{outcome:?}");
        assert_eq!(found.error, error, "{outcome:?}");
        let next = (status == Status::Retrying).then_some(due);
        assert_eq!(found.completed_at, status.is_final().then_some(at));
        assert_eq!(found.next_attempt_at, next);
        assert_eq!(found.output.as_deref(), Some(br#"{"made":1}"#.as_slice()));
        assert_eq!(found.payload, tried.message.raw_body);
        assert_eq!(
            subject
                .trace(&tried.message.id)
                .await
                .last()
                .map(|last| last.stage.clone()),
            Some("answered".into())
        );
    }
    let events = subject.events(EventQuery::after(tenant(), begin)).await;
    let of = |id| -> Vec<Status> {
        events
            .iter()
            .filter(|event| event.message.id == id)
            .map(|event| event.message.status)
            .collect()
    };
    assert_eq!(
        of(all[0].message.id.clone()),
        [Status::Received, Status::Delivered]
    );
    assert_eq!(events.len(), 2 * all.len());
    subject
        .log
        .retry(&tenant(), &all[2].message.id, None)
        .await
        .expect("it is a dead letter");
    assert_eq!(
        subject.claim_one(&flow).await.lease.message_id,
        all[2].message.id
    );

    // All or none.
    let known = tried(Outcome::Delivered);
    let fresh = tried(Outcome::Delivered);
    subject
        .log
        .append_attempted(vec![Arc::clone(&known)])
        .await
        .expect("it is taken");
    let refused = subject
        .log
        .append_attempted(vec![Arc::clone(&fresh), known])
        .await;
    assert!(matches!(refused, Err(Error::Other(_))), "{refused:?}");
    assert!(
        subject
            .log
            .get(&tenant(), &fresh.message.id)
            .await
            .expect("the log reads")
            .is_none()
    );
    subject.close().await;
}

pub async fn fences_a_second_settlement(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    let both = futures::future::join(
        subject.settle(&lease, 1, Outcome::Delivered),
        subject.settle(&lease, 1, Outcome::Delivered),
    );
    let (one, other) = both.await;
    assert_ne!(one, other, "one of two at the same time takes effect");
    assert_eq!(
        subject.settle(&lease, 2, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Fenced
    );
    let found = subject.get(&lease.message_id).await;
    assert_eq!(found.status, Status::Delivered);
    assert_eq!(found.attempts, 1);
    assert_eq!(subject.trace(&lease.message_id).await.len(), 2);
    subject.close().await;
}

pub async fn fences_the_former_holder_after_a_takeover(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let lost = subject.lease(message(&flow)).await;
    let kept = subject.lease(message(&FlowId::generate())).await;
    subject
        .log
        .hand_back(&subject.boot)
        .await
        .expect("it is taken");
    let taken = other.claim_one(&flow).await;
    assert_eq!(taken.lease.message_id, lost.message_id);

    assert_eq!(
        subject.checkpoint(&lost, "contact", "1").await,
        LeasedWriteOutcome::Fenced
    );
    // One write that is refused does not take another one with it.
    let both = futures::future::join(
        subject.settle(&lost, 1, Outcome::DeadLetter),
        subject.settle(&kept, 1, Outcome::Delivered),
    );
    assert_eq!(
        both.await,
        (LeasedWriteOutcome::Fenced, LeasedWriteOutcome::Done)
    );
    assert_eq!(
        subject.get(&lost.message_id).await.status,
        Status::Processing
    );
    other.deliver(&taken.lease).await;
    assert_eq!(
        subject
            .settle(
                &lost,
                1,
                Outcome::Retry {
                    due: Timestamp::now()
                }
            )
            .await,
        LeasedWriteOutcome::Fenced
    );
    assert_eq!(
        subject.get(&lost.message_id).await.status,
        Status::Delivered
    );
    subject.close().await;
}

pub async fn keeps_step_outputs_for_the_next_attempt(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    assert_eq!(
        subject.checkpoint(&lease, "contact", r#"{"id":1}"#).await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(
        subject.checkpoint(&lease, "invoice", r#"{"id":2}"#).await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(
        subject.checkpoint(&lease, "invoice", r#"{"id":3}"#).await,
        LeasedWriteOutcome::Done
    );
    let due = Timestamp::now().before(Duration::from_millis(1));
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(
        subject.checkpoint(&lease, "late", "{}").await,
        LeasedWriteOutcome::Fenced
    );

    let claimed = subject.claim_one(&flow).await;
    let steps: Vec<_> = claimed
        .steps
        .iter()
        .map(|step| (step.name.as_str(), step.status, step.output.as_ref()))
        .collect();
    let expected = [
        ("contact", 201, br#"{"id":1}"#.as_slice()),
        ("invoice", 201, br#"{"id":3}"#.as_slice()),
    ];
    assert_eq!(steps, expected);
    assert_eq!(claimed.attempts, 1);
    subject.close().await;
}

pub async fn puts_traces_together_in_order(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    let id = lease.message_id.clone();
    let stages = |records: Vec<crate::TraceRecord>| -> Vec<(String, u32)> {
        records
            .into_iter()
            .map(|record| (record.stage, record.attempt))
            .collect()
    };
    assert_eq!(
        stages(subject.trace(&id).await),
        [("received".to_owned(), 0)]
    );

    let mut first = settlement(
        &lease,
        1,
        Outcome::Retry {
            due: Timestamp::now(),
        },
    );
    first.trace = vec![
        record("received", 1),
        record("delivery", 1),
        record("retry_scheduled", 1),
    ];
    let expected = first.trace.clone();
    assert_eq!(
        subject.log.settle(&first).await.expect("it is taken"),
        LeasedWriteOutcome::Done
    );
    assert_eq!(subject.trace(&id).await, expected);
    let claimed = subject.claim_one(&flow).await;
    assert_eq!(
        subject.settle(&claimed.lease, 2, Outcome::Delivered).await,
        LeasedWriteOutcome::Done
    );
    let stages = stages(subject.trace(&id).await);
    let expected = [
        ("received", 1),
        ("delivery", 1),
        ("retry_scheduled", 1),
        ("delivery", 2),
    ];
    assert_eq!(
        stages,
        expected.map(|(stage, attempt)| (stage.to_owned(), attempt))
    );
    subject.close().await;
}
