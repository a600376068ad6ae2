//! Promises about what waits.

use std::collections::HashSet;
use std::time::Duration;

use kanat_model::Timestamp;
use kanat_model::id::FlowId;
use kanat_model::message::{ErrorKind, Failure, Status};

use super::Harness;
use super::subject::{LONG, Subject, message, settlement};
use crate::{
    Claim, ClaimBudget, LeasedWriteOutcome, NewMessage, Outcome, Placement, Room, Settlement,
};

pub async fn claims_within_the_room_of_each_flow(harness: &dyn Harness) {
    let one = FlowId::generate();
    let other = FlowId::generate();
    let third = FlowId::generate();
    let subject = Subject::open(harness).await;
    for flow in [&one, &other, &third] {
        subject
            .append_all((0..5).map(|_| message(flow)).collect())
            .await;
    }
    let rooms = vec![
        Room {
            flow_id: one.clone(),
            messages: 2,
            without_versions: Vec::new(),
        },
        Room {
            flow_id: other.clone(),
            messages: 100,
            without_versions: Vec::new(),
        },
        Room {
            flow_id: FlowId::generate(),
            messages: 9,
            without_versions: Vec::new(),
        },
    ];
    let claimed = subject
        .log
        .claim(Claim {
            owner: subject.boot.clone(),
            bytes: u64::MAX,
            budgets: vec![ClaimBudget::unbounded(rooms)],
            awaited: Vec::new(),
        })
        .await
        .expect("it is taken");
    let of = |flow: &FlowId| {
        claimed
            .iter()
            .filter(|claimed| claimed.flow_id == *flow)
            .count()
    };
    assert_eq!(of(&one), 2);
    assert_eq!(of(&other), 5);
    assert_eq!(of(&third), 0);
    assert_eq!(claimed.len(), 7);
    for claimed in &claimed {
        assert_eq!(
            subject.get(&claimed.lease.message_id).await.status,
            Status::Processing
        );
        subject.deliver(&claimed.lease).await;
    }
    subject.close().await;
}

pub async fn claims_what_is_due_only(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let now = Timestamp::now();
    let past = now.before(Duration::from_secs(5));
    let future = now.after(LONG);
    for due in [past, future] {
        let lease = subject.lease(message(&flow)).await;
        assert_eq!(
            subject.settle(&lease, 1, Outcome::Retry { due }).await,
            LeasedWriteOutcome::Done
        );
    }
    let waiting = subject.log.waiting().await.expect("the log reads");
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].due, 1);
    assert_eq!(waiting[0].oldest, Some(past));
    assert_eq!(waiting[0].next_due, Some(future));
    let claimed = subject.claim_one(&flow).await;
    assert_eq!(claimed.attempts, 1);
    assert_eq!(claimed.due_at, past);
    // Given back by one who has no use for it, it has waited as long as before.
    let undone = Outcome::Release {
        due: claimed.due_at,
    };
    assert_eq!(
        subject.settle(&claimed.lease, 0, undone).await,
        LeasedWriteOutcome::Done
    );
    assert_eq!(
        subject.log.waiting().await.expect("the log reads")[0].oldest,
        Some(past)
    );
    let claimed = subject.claim_one(&flow).await;
    let waiting = subject.log.waiting().await.expect("the log reads");
    assert_eq!(waiting[0].due, 0);
    assert_eq!(waiting[0].oldest, None);
    assert_eq!(waiting[0].next_due, Some(future));
    assert_eq!(
        subject.settle(&claimed.lease, 2, Outcome::Delivered).await,
        LeasedWriteOutcome::Done
    );
    subject.close().await;
}

pub async fn claims_the_oldest_first(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let now = Timestamp::now();
    let mut sent = Vec::new();
    for age in [3, 1, 2] {
        let received_at = now.before(Duration::from_secs(age));
        let sent_now = NewMessage {
            received_at,
            ..message(&flow)
        };
        sent.push((age, sent_now.id.clone()));
        subject.append(sent_now).await;
    }
    sent.sort_by_key(|(age, _)| std::cmp::Reverse(*age));
    for (_, id) in sent {
        let claimed = subject.claim(1, &[&flow]).await;
        assert_eq!(claimed[0].lease.message_id, id);
    }
    subject.close().await;
}

pub async fn never_gives_one_message_to_two(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    subject
        .append_all((0..100).map(|_| message(&flow)).collect())
        .await;
    let mut nodes = Vec::new();
    for _ in 0..4 {
        nodes.push(subject.beside().await);
    }
    let mut seen = HashSet::new();
    loop {
        let flows = [&flow];
        let claims =
            futures::future::join_all(nodes.iter().map(|node| node.claim(7, &flows))).await;
        if claims.iter().all(Vec::is_empty) {
            break;
        }
        for claimed in claims.into_iter().flatten() {
            assert!(
                seen.insert(claimed.lease.message_id.clone()),
                "one message went to two"
            );
        }
    }
    assert_eq!(seen.len(), 100);
    subject.close().await;
}

pub async fn does_not_let_a_backlog_hide_other_flows(harness: &dyn Harness) {
    let subject = Subject::open(harness).await;
    let busy = FlowId::generate();
    let sent = 1_200;
    subject
        .append_all((0..sent).map(|_| message(&busy)).collect())
        .await;
    let mut quiet: Vec<FlowId> = (0..5).map(|_| FlowId::generate()).collect();
    quiet.push(FlowId::new("a"));
    quiet.push(FlowId::new("z"));
    for flow in &quiet {
        subject.append(message(flow)).await;
    }
    let waiting = subject.log.waiting().await.expect("the log reads");
    let flows: HashSet<&FlowId> = waiting.iter().map(|waiting| &waiting.flow_id).collect();
    assert_eq!(waiting.len(), 8);
    assert!(quiet.iter().all(|flow| flows.contains(flow)));
    let backlog = waiting
        .iter()
        .find(|waiting| waiting.flow_id == busy)
        .expect("it waits too");
    assert_eq!(backlog.due, crate::Waiting::COUNT_LIMIT);
    let claimed = subject
        .claim(3, &quiet.iter().chain([&busy]).collect::<Vec<_>>())
        .await;
    assert_eq!(claimed.len(), 7 + 3);
    subject.close().await;
}

pub async fn holds_the_messages_of_a_paused_flow_until_they_are_claimed(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let sent = NewMessage {
        place: Placement::Held,
        ..message(&flow)
    };
    let id = sent.id.clone();
    subject.append(sent).await;
    assert_eq!(subject.get(&id).await.status, Status::Held);
    assert!(subject.claim(10, &[]).await.is_empty());
    // It has been resumed: nothing has to be written for that, its messages are simply claimed
    // again.
    let claimed = subject.claim_one(&flow).await;
    assert_eq!(subject.get(&id).await.status, Status::Processing);
    subject.deliver(&claimed.lease).await;
    subject.close().await;
}

pub async fn wakes_those_who_wait_for_changes(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let mut changed = subject.log.changed();
    changed.mark_unchanged();
    subject.append(message(&flow)).await;
    changed.changed().await.expect("the log is open");
    let claimed = subject.claim_one(&flow).await;
    changed.mark_unchanged();
    let due = Timestamp::now();
    assert_eq!(
        subject
            .settle(&claimed.lease, 1, Outcome::Release { due })
            .await,
        LeasedWriteOutcome::Done
    );
    changed.changed().await.expect("the log is open");
    subject.claim_one(&flow).await;
    changed.mark_unchanged();
    subject
        .log
        .hand_back(&subject.boot)
        .await
        .expect("it is taken");
    changed.changed().await.expect("the log is open");
    subject.close().await;
}

pub async fn claims_as_many_bytes_as_flows_share(harness: &dyn Harness) {
    let one = FlowId::generate();
    let other = FlowId::generate();
    let apart = FlowId::generate();
    let subject = Subject::open(harness).await;
    for flow in [&one, &other, &apart] {
        subject
            .append_all((0..3).map(|_| message(flow)).collect())
            .await;
    }
    let stored = message(&one).stored_bytes();
    let room = |flow: &FlowId| Room {
        flow_id: flow.clone(),
        messages: 2,
        without_versions: Vec::new(),
    };
    let claim = |bytes: u64, budget: u64, single_bytes: u64| Claim {
        owner: subject.boot.clone(),
        bytes,
        budgets: vec![
            ClaimBudget {
                bytes: budget,
                single_bytes,
                rooms: vec![room(&one), room(&other)],
            },
            ClaimBudget::unbounded(vec![room(&apart)]),
        ],
        awaited: Vec::new(),
    };
    let claimed = async |claim: Claim| {
        let claimed = subject.log.claim(claim).await.expect("it is taken");
        let of = |flow: &FlowId| claimed.iter().filter(|one| one.flow_id == *flow).count();
        [of(&one), of(&other), of(&apart)]
    };
    assert_eq!(claimed(claim(u64::MAX, 4 * stored - 1, 0)).await, [2, 1, 2]);
    assert_eq!(claimed(claim(2 * stored, stored, 0)).await, [1, 0, 1]);
    assert_eq!(claimed(claim(u64::MAX, stored - 1, 0)).await, [0, 0, 0]);
    // One that is larger than the budget is taken alone, within the memory of all.
    let single = claim(u64::MAX, stored - 1, stored);
    assert_eq!(claimed(single).await, [0, 1, 0]);
    let beyond = claim(stored - 1, stored - 1, stored);
    assert_eq!(claimed(beyond).await, [0, 0, 0]);
    subject.close().await;
}

pub async fn leaves_out_versions_that_the_claimer_does_not_run(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let mut ids = Vec::new();
    for flow_version in 1..=3 {
        let message = NewMessage {
            flow_version,
            ..message(&flow)
        };
        ids.push(message.id.clone());
        subject.append(message).await;
    }
    let rooms = vec![Room {
        flow_id: flow.clone(),
        messages: 10,
        without_versions: vec![1, 3],
    }];
    let claim = Claim {
        owner: subject.boot.clone(),
        bytes: u64::MAX,
        budgets: vec![ClaimBudget::unbounded(rooms)],
        awaited: Vec::new(),
    };
    let claimed = subject.log.claim(claim).await.expect("it is taken");
    let claimed: Vec<_> = claimed
        .into_iter()
        .map(|claimed| claimed.lease.message_id)
        .collect();
    assert_eq!(claimed, ids[1..2]);
    assert_eq!(subject.claim(10, &[&flow]).await.len(), 2);
    subject.close().await;
}

pub async fn holds_a_message_that_its_holder_cannot_run_with_the_reason(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let lease = subject.lease(message(&flow)).await;
    let due = Timestamp::now();
    let reason = Failure {
        kind: ErrorKind::Configuration,
        message: "it waits for plans".to_owned(),
        field: None,
        expression: None,
    };
    let hold = Settlement {
        failure: Some(reason.clone()),
        ..settlement(&lease, 0, Outcome::Hold { due })
    };
    assert_eq!(
        subject.log.settle(&hold).await.expect("it is taken"),
        LeasedWriteOutcome::Done
    );
    let held = subject.get(&lease.message_id).await;
    assert_eq!(held.status, Status::Held);
    assert_eq!(held.error, Some(reason));
    assert_eq!(held.attempts, 0);

    let claimed = subject.claim_one(&flow).await;
    subject.deliver(&claimed.lease).await;
    let delivered = subject.get(&lease.message_id).await;
    assert_eq!(delivered.status, Status::Delivered);
    assert_eq!(delivered.error, None);
    subject.close().await;
}
