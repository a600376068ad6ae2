//! Promises about messages that are ordered by a key.

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;

use super::Harness;
use super::subject::{LONG, Subject, leased, message, ordered, tenant};
use crate::{
    AppendOutcome, AwaitedMessages, Claim, ClaimedMessage, Lease, LeasedWriteOutcome, NewMessage,
    Outcome, Placement,
};

/// Puts messages of one key in, to be leased to the node; gives what became of them, and their ids.
async fn send(
    subject: &Subject,
    flow: &FlowId,
    key: &str,
    count: usize,
) -> (Vec<AppendOutcome>, Vec<MessageId>) {
    let place = Placement::Leased(subject.boot.clone());
    let sent: Vec<NewMessage> = (0..count)
        .map(|_| NewMessage {
            place: place.clone(),
            ..ordered(flow, key)
        })
        .collect();
    let ids = sent.iter().map(|message| message.id.clone()).collect();
    (subject.append_all(sent).await, ids)
}

fn ids(claimed: &[ClaimedMessage]) -> Vec<MessageId> {
    claimed
        .iter()
        .map(|claimed| claimed.lease.message_id.clone())
        .collect()
}

pub async fn works_on_one_message_of_a_key_at_a_time(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let first = subject.lease(ordered(&flow, "a")).await;
    let second = ordered(&flow, "a");
    let second_id = second.id.clone();
    let third = ordered(&flow, "a");
    let third_id = third.id.clone();
    let place = Placement::Leased(subject.boot.clone());
    assert_eq!(
        subject.append(NewMessage { place, ..second }).await,
        AppendOutcome::Waiting
    );
    assert_eq!(subject.append(third).await, AppendOutcome::Waiting);
    let head_of = async |id: &MessageId| {
        let found = subject.log.head_of_key(&tenant(), id).await;
        found.expect("the log can be read")
    };
    assert_eq!(head_of(&third_id).await, Some(first.message_id.clone()));
    assert_eq!(head_of(&first.message_id).await, None);
    // Another key, another flow and no key at all are not held up.
    subject.lease(ordered(&flow, "b")).await;
    subject.lease(ordered(&FlowId::generate(), "a")).await;
    subject.lease(message(&flow)).await;

    assert!(subject.claim(10, &[&flow]).await.is_empty());
    subject.deliver(&first).await;
    let claimed = subject.claim(10, &[&flow]).await;
    assert_eq!(ids(&claimed), std::slice::from_ref(&second_id));
    assert_eq!(head_of(&third_id).await, Some(second_id));
    assert!(subject.claim(10, &[&flow]).await.is_empty());
    assert_eq!(
        subject
            .settle(&claimed[0].lease, 1, Outcome::Filtered)
            .await,
        LeasedWriteOutcome::Done
    );
    let claimed = subject.claim(10, &[&flow]).await;
    assert_eq!(ids(&claimed), std::slice::from_ref(&third_id));
    assert_eq!(head_of(&third_id).await, None);
    subject.deliver(&claimed[0].lease).await;
    subject.lease(ordered(&flow, "a")).await;
    subject.close().await;
}

pub async fn orders_by_key_within_one_group(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let (appended, sent) = send(&subject, &flow, "a", 20).await;
    let AppendOutcome::Leased(mut lease) = appended[0].clone() else {
        panic!("the first one runs")
    };
    assert_eq!(appended[1..], vec![AppendOutcome::Waiting; 19]);
    assert_eq!(lease.message_id, sent[0]);
    for id in &sent[1..] {
        assert!(subject.claim(10, &[&flow]).await.is_empty());
        subject.deliver(&lease).await;
        let claimed = subject.claim_one(&flow).await;
        assert_eq!(claimed.lease.message_id, *id);
        lease = claimed.lease;
    }
    subject.close().await;
}

pub async fn lets_a_retry_block_only_its_own_key(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let first = subject.lease(ordered(&flow, "a")).await;
    let due = Timestamp::now().after(LONG);
    assert_eq!(
        subject.settle(&first, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    let (appended, _) = send(&subject, &flow, "a", 2).await;
    assert_eq!(appended, vec![AppendOutcome::Waiting; 2]);
    assert!(subject.claim(10, &[&flow]).await.is_empty());
    subject.lease(ordered(&flow, "b")).await;
    subject.close().await;
}

pub async fn gives_up_a_key_with_its_dead_letter(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let (appended, sent) = send(&subject, &flow, "a", 2).await;
    let AppendOutcome::Leased(lease) = &appended[0] else {
        panic!("the first one runs")
    };
    assert_eq!(
        subject.settle(lease, 1, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(ids(&subject.claim(10, &[&flow]).await), [sent[1].clone()]);
    subject.close().await;
}

pub async fn puts_a_retried_dead_letter_before_those_that_wait(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let (appended, sent) = send(&subject, &flow, "a", 3).await;
    let AppendOutcome::Leased(lease) = &appended[0] else {
        panic!("the first one runs")
    };
    assert_eq!(
        subject.settle(lease, 1, Outcome::DeadLetter).await,
        LeasedWriteOutcome::Done
    );
    let second = subject.claim_one(&flow).await;
    subject
        .log
        .retry(&tenant(), &sent[0], None)
        .await
        .expect("it is a dead letter");
    assert!(
        subject.claim(10, &[&flow]).await.is_empty(),
        "the second one is being worked on"
    );
    subject.deliver(&second.lease).await;
    let first = subject.claim_one(&flow).await;
    assert_eq!(first.lease.message_id, sent[0]);
    assert_eq!(
        subject.settle(&first.lease, 2, Outcome::Delivered).await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(subject.claim_one(&flow).await.lease.message_id, sent[2]);

    // With nothing else of its key it is claimed at once.
    let alone = subject.dead_letter(ordered(&flow, "b")).await;
    subject
        .log
        .retry(&tenant(), &alone.message_id, None)
        .await
        .expect("it is a dead letter");
    assert_eq!(
        subject.claim_one(&flow).await.lease.message_id,
        alone.message_id
    );
    subject.close().await;
}

pub async fn moves_on_when_the_head_is_discarded(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let (appended, sent) = send(&subject, &flow, "a", 4).await;
    let AppendOutcome::Leased(lease) = &appended[0] else {
        panic!("the first one runs")
    };
    let due = Timestamp::now().after(LONG);
    assert_eq!(
        subject.settle(lease, 1, Outcome::Retry { due }).await,
        LeasedWriteOutcome::Done
    );
    // One from the middle is gone without a trace in the order.
    subject
        .log
        .discard(&tenant(), &sent[1])
        .await
        .expect("it waits");
    assert!(subject.claim(10, &[&flow]).await.is_empty());
    subject
        .log
        .discard(&tenant(), &sent[0])
        .await
        .expect("it waits");
    assert_eq!(subject.claim_one(&flow).await.lease.message_id, sent[2]);
    assert_eq!(subject.get(&sent[3]).await.status, Status::Received);
    subject.close().await;
}

/// Appends a message of key `a` that this node awaits, behind another.
async fn await_turn(subject: &Subject, flow: &FlowId) -> Lease {
    let message = NewMessage {
        place: Placement::Awaited(subject.boot.clone()),
        ..ordered(flow, "a")
    };
    match subject.append(message).await {
        AppendOutcome::Awaited(lease) => lease,
        other => panic!("it stands behind another: {other:?}"),
    }
}

async fn claim_awaited(subject: &Subject, leases: &[&Lease]) -> Vec<ClaimedMessage> {
    let awaited = AwaitedMessages {
        seqs: leases.iter().map(|lease| lease.seq).collect(),
        messages: 10,
    };
    let claim = Claim {
        owner: subject.boot.clone(),
        bytes: u64::MAX,
        budgets: Vec::new(),
        awaited: vec![awaited],
    };
    subject.log.claim(claim).await.expect("the log reads")
}

pub async fn keeps_an_awaited_message_for_its_node_until_its_turn(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    // One that stands behind none is leased as any other.
    let first = NewMessage {
        place: Placement::Awaited(subject.boot.clone()),
        ..ordered(&flow, "a")
    };
    let first = leased(subject.append(first).await);
    let second = await_turn(&subject, &flow).await;
    let third = await_turn(&subject, &flow).await;
    let both = [&third, &second];
    assert!(claim_awaited(&subject, &both).await.is_empty());
    assert_eq!(
        subject.get(&second.message_id).await.status,
        Status::Received
    );

    subject.deliver(&first).await;
    assert!(other.claim(10, &[&flow]).await.is_empty());
    assert!(claim_awaited(&other, &both).await.is_empty());
    assert!(
        subject
            .log
            .waiting()
            .await
            .expect("the log reads")
            .is_empty()
    );
    let claimed = claim_awaited(&subject, &both).await;
    assert_eq!(ids(&claimed), std::slice::from_ref(&second.message_id));
    assert!(claim_awaited(&subject, &both).await.is_empty());
    // A message that was taken up is not given up under the lease of before.
    assert_eq!(
        subject.settle(&second, 0, Outcome::Yield).await,
        LeasedWriteOutcome::Fenced
    );
    subject.deliver(&claimed[0].lease).await;
    assert_eq!(
        ids(&claim_awaited(&subject, &both).await),
        [third.message_id]
    );
    subject.close().await;
}

pub async fn gives_an_awaited_message_that_was_given_up_or_whose_node_left_to_any_other(
    harness: &dyn Harness,
) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let first = subject.lease(ordered(&flow, "a")).await;
    let before = await_turn(&subject, &flow).await;
    let after = await_turn(&subject, &flow).await;
    let left = await_turn(&subject, &flow).await;
    assert_eq!(
        subject.settle(&before, 0, Outcome::Yield).await,
        LeasedWriteOutcome::Done
    );
    assert!(
        other.claim(10, &[&flow]).await.is_empty(),
        "its turn has not come"
    );
    subject.deliver(&first).await;
    let claimed = other.claim_one(&flow).await;
    assert_eq!(claimed.lease.message_id, before.message_id);
    other.deliver(&claimed.lease).await;

    // One is given up after its turn has come.
    assert!(other.claim(10, &[&flow]).await.is_empty());
    assert_eq!(
        subject.settle(&after, 0, Outcome::Yield).await,
        LeasedWriteOutcome::Done
    );
    let claimed = other.claim_one(&flow).await;
    assert_eq!(claimed.lease.message_id, after.message_id);
    other.deliver(&claimed.lease).await;

    subject
        .log
        .hand_back(&subject.boot)
        .await
        .expect("it is taken");
    assert_eq!(
        other.claim_one(&flow).await.lease.message_id,
        left.message_id
    );
    subject.close().await;
}

pub async fn lets_a_key_move_on_past_an_awaited_message_that_was_discarded(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let first = subject.lease(ordered(&flow, "a")).await;
    let discarded = await_turn(&subject, &flow).await;
    let last = await_turn(&subject, &flow).await;
    assert_eq!(
        subject.settle(&discarded, 1, Outcome::Discarded).await,
        LeasedWriteOutcome::Done
    );
    assert!(
        claim_awaited(&subject, &[&last]).await.is_empty(),
        "the first one is still worked on"
    );
    subject.deliver(&first).await;
    assert_eq!(
        ids(&claim_awaited(&subject, &[&last]).await),
        [last.message_id]
    );
    subject.close().await;
}

pub async fn frees_an_awaited_message_whose_sender_went_away(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let mut keys = 0;
    // An answer that is there at once has its lease with it, and shows nothing.
    let (first, id) = loop {
        keys += 1;
        let key = format!("key {keys}");
        let first = subject.lease(ordered(&flow, &key)).await;
        let awaited = NewMessage {
            place: Placement::Awaited(subject.boot.clone()),
            ..ordered(&flow, &key)
        };
        let id = awaited.id.clone();
        let mut append = subject.log.append(awaited);
        if futures::poll!(&mut append).is_pending() {
            break (first, id);
        }
    };
    subject.deliver(&first).await;
    let claimed = loop {
        match other.claim(1, &[&flow]).await.pop() {
            Some(claimed) => break claimed,
            None => tokio::task::yield_now().await,
        }
    };
    assert_eq!(claimed.lease.message_id, id);
    subject.close().await;
}
