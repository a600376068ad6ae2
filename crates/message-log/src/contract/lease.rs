//! Promises about nodes that live, die and come back.

use std::time::Duration;

use kanat_model::id::{BootId, FlowId, NodeId};
use kanat_model::message::Status;

use super::Harness;
use super::poll::{next_state, take};
use super::subject::{Subject, leased, message};
use crate::{
    Claim, ClaimBudget, LeasedWriteOutcome, NewMessage, Outcome, Placement, RenewalOutcome, Room,
};

pub async fn leaves_alone_what_a_living_node_holds(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let lease = subject.lease(message(&flow)).await;
    assert!(other.claim(10, &[&flow]).await.is_empty());
    assert!(
        subject.claim(10, &[&flow]).await.is_empty(),
        "it has it already"
    );
    assert!(
        subject
            .log
            .waiting()
            .await
            .expect("the log reads")
            .is_empty()
    );
    subject.deliver(&lease).await;
    subject.close().await;
}

pub async fn hands_the_messages_of_a_dead_node_to_another(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    // A lease of no length has run out when it begins.
    let dead = BootId::generate();
    subject
        .log
        .open_lease(&dead, &NodeId::generate(), Duration::ZERO)
        .await
        .expect("it is taken");
    let sent = NewMessage {
        place: Placement::Leased(dead.clone()),
        ..message(&flow)
    };
    let former = leased(subject.append(sent).await);
    let waiting = subject.log.waiting().await.expect("the log reads");
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].due, 1);

    let claimed = subject.claim_one(&flow).await;
    assert_eq!(claimed.lease.message_id, former.message_id);
    assert_ne!(claimed.lease.token, former.token);
    assert_eq!(claimed.lease.owner, subject.boot);
    assert_eq!(
        subject.settle(&former, 1, Outcome::Delivered).await,
        LeasedWriteOutcome::Fenced
    );
    subject.deliver(&claimed.lease).await;
    subject.close().await;
}

pub async fn leaves_a_node_its_own_messages_when_its_lease_ran_out(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    // As after a while in which nothing could be renewed, and nobody else has come.
    let late = BootId::generate();
    subject
        .log
        .open_lease(&late, &NodeId::generate(), Duration::ZERO)
        .await
        .expect("it is taken");
    let lease = leased(
        subject
            .append(NewMessage {
                place: Placement::Leased(late.clone()),
                ..message(&flow)
            })
            .await,
    );
    let rooms = vec![Room {
        flow_id: flow,
        messages: 10,
        without_versions: Vec::new(),
    }];
    let claimed = subject
        .log
        .claim(Claim {
            owner: late,
            bytes: u64::MAX,
            budgets: vec![ClaimBudget::unbounded(rooms)],
            awaited: Vec::new(),
        })
        .await
        .expect("the log reads");
    assert!(claimed.is_empty(), "it works on it: {claimed:?}");
    assert_eq!(
        subject.settle(&lease, 1, Outcome::Delivered).await,
        LeasedWriteOutcome::Done
    );
    subject.close().await;
}

pub async fn hands_the_messages_of_an_unknown_owner_to_another(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = NewMessage {
        place: Placement::Leased(BootId::generate()),
        ..message(&flow)
    };
    subject.append(sent).await;
    let claimed = subject.claim_one(&flow).await;
    subject.deliver(&claimed.lease).await;
    subject.close().await;
}

pub async fn gives_a_restarted_node_its_messages_at_once(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let mine = subject.lease(message(&flow)).await;
    let theirs = other.lease(message(&flow)).await;
    // It dies without a word.
    subject.close().await;

    let restarted = Subject::open_as(harness, subject.node.clone()).await;
    let claimed = restarted.claim_one(&flow).await;
    assert_eq!(claimed.lease.message_id, mine.message_id);
    assert_eq!(
        restarted.get(&theirs.message_id).await.status,
        Status::Processing
    );
    assert_eq!(
        subject.renew_in(restarted.log.as_ref()).await,
        RenewalOutcome::Ended
    );
    assert_eq!(
        other.renew_in(restarted.log.as_ref()).await,
        RenewalOutcome::Done
    );
    restarted.close().await;
}

pub async fn hands_back_at_once(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    for _ in 0..3 {
        subject.lease(message(&flow)).await;
    }
    subject
        .log
        .hand_back(&subject.boot)
        .await
        .expect("it is taken");
    assert_eq!(other.claim(10, &[&flow]).await.len(), 3);
    subject.close().await;
}

pub async fn renews_only_a_lease_that_stands(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    subject
        .log
        .hand_back(&subject.boot)
        .await
        .expect("it is taken");
    assert_eq!(subject.renew().await, RenewalOutcome::Ended);
    subject.reopen().await;
    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    subject.close().await;
}

pub async fn counts_settlements_of_messages_only(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    let settled = || subject.log.stats().settled;
    let before = settled();

    assert_eq!(subject.renew().await, RenewalOutcome::Done);
    assert_eq!(settled(), before, "after a renewal of the node's lease");
    assert_eq!(
        subject.checkpoint(&lease, "contact", "{}").await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(settled(), before, "after a step checkpoint");
    let (token, _) = take(&subject, &flow, 1, 0).await;
    let poll = next_state(&subject, &flow, token, 300, "{}");
    assert_eq!(
        subject
            .log
            .update_poll(&poll)
            .await
            .expect("the log answers"),
        LeasedWriteOutcome::Done
    );
    assert_eq!(settled(), before, "after an update of a poll");

    subject.deliver(&lease).await;
    assert_eq!(settled(), before + 1, "after a settlement");
    subject.close().await;
}
