//! Waiting times of operations, groups of callers, and the close of the inbox.

use super::*;
use crate::contract::message;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId};
use kanat_model::message::Status;

fn end(ordered: bool) -> Operation {
    let lease = Lease {
        message_id: MessageId::new("msg_1"),
        seq: 1,
        owner: BootId::new("boot_1"),
        token: 1,
        ordered,
    };
    let now = Timestamp::from_millis(0);
    let change = Change {
        status: Some(Status::Delivered),
        due_at: None,
        ..Change::release(lease, now, Some(now))
    };
    Operation {
        work: Work::Settle(Box::new(change)),
        reply: None,
    }
}

fn append() -> Operation {
    Operation {
        work: Work::Append(Box::new(message(&FlowId::new("flow_1")))),
        reply: None,
    }
}

#[test]
fn an_end_waits_only_while_messages_arrive() {
    let now = Instant::now();
    let inbox = Inbox::default();
    inbox.push(end(false));
    let mut state = inbox.state.lock();
    assert_eq!(state.sleep(now), Sleep::None);
    state.last_append_at = Some(now);
    assert_eq!(state.sleep(now), Sleep::Limited(LINGER));
    assert_eq!(state.sleep(now + LINGER), Sleep::None);
}

#[test]
fn no_other_operation_waits() {
    let now = Instant::now();
    let sleep_after = |operations: Vec<Operation>| {
        let inbox = Inbox::default();
        inbox.state.lock().last_append_at = Some(now);
        operations
            .into_iter()
            .for_each(|operation| inbox.push(operation));
        inbox.state.lock().sleep(now)
    };
    assert_eq!(sleep_after(Vec::new()), Sleep::Unlimited);
    assert_eq!(sleep_after(vec![end(false)]), Sleep::Limited(LINGER));
    assert_eq!(sleep_after(vec![end(false), end(true)]), Sleep::None);
    assert_eq!(
        sleep_after(vec![
            end(false),
            Operation {
                work: Work::TruncateWal,
                reply: None
            }
        ]),
        Sleep::None
    );
    assert_eq!(
        sleep_after((0..=MAX_LINGERING_OPERATIONS).map(|_| end(false)).collect()),
        Sleep::None
    );
}

#[test]
fn gathers_the_messages_of_all_unanswered_callers_for_a_limited_time() {
    let took = Duration::from_micros(200);
    let began = Instant::now();
    let now = began + took;
    let state = |appends, last_append_group_size, arrived_meanwhile| State {
        is_urgent: true,
        operations: vec![end(true)],
        appends,
        last_append_group_size,
        expected_appends: last_append_group_size + arrived_meanwhile,
        group_began: Some(began),
        group_ended: Some(now),
        ..State::default()
    };
    assert_eq!(state(1, 1, 1).sleep(now), Sleep::None, "a single caller");
    assert_eq!(
        state(1, MIN_GROUP - 1, 1).sleep(now),
        Sleep::None,
        "a few callers"
    );
    assert_eq!(
        state(9, 20, 0).sleep(now),
        Sleep::Limited(took * GATHER_FACTOR)
    );
    assert_eq!(
        state(20, 20, 0).sleep(now),
        Sleep::None,
        "all callers appended again"
    );
    assert_eq!(
        state(20, 20, 10).sleep(now),
        Sleep::Limited(took * GATHER_FACTOR),
        "two halves in turn"
    );
    assert_eq!(state(30, 20, 10).sleep(now), Sleep::None);
    assert_eq!(
        state(31, 40, 24).sleep(now),
        Sleep::Limited(took * GATHER_FACTOR)
    );
    assert_eq!(
        state(32, 40, 24).sleep(now),
        Sleep::None,
        "the others arrive while these are written"
    );
    assert_eq!(
        state(9, 40, 9).sleep(now + took * GATHER_FACTOR),
        Sleep::None
    );
    assert_eq!(
        state(0, 40, 0).sleep(now),
        Sleep::None,
        "an operation without messages gathers none"
    );
    let slow = |appends| State {
        group_ended: Some(began + MAX_GATHER_TIME),
        ..state(appends, 40, 24)
    };
    assert_eq!(
        slow(40).sleep(began + MAX_GATHER_TIME),
        Sleep::Limited(MAX_GATHER_TIME),
        "a slow disk commits for all callers"
    );
    assert_eq!(slow(64).sleep(began + MAX_GATHER_TIME), Sleep::None);
}

#[test]
fn an_append_ends_the_wait_of_a_final_settlement() {
    let began = Instant::now();
    let inbox = Inbox {
        state: Mutex::new(State {
            operations: vec![end(false)],
            is_asleep: true,
            wakes_soon: true,
            last_append_at: Some(began),
            last_append_group_size: MIN_GROUP,
            expected_appends: MIN_GROUP,
            group_began: Some(began),
            group_ended: Some(began),
            ..State::default()
        }),
        ..Inbox::default()
    };
    inbox.push(append());
    assert!(
        !inbox.state.lock().is_asleep,
        "the writer limits its sleep to the time of a gathering"
    );
}

#[test]
fn an_append_after_another_wakes_no_writer_that_gathers() {
    let inbox = Inbox {
        state: Mutex::new(State {
            operations: vec![append()],
            appends: 1,
            is_urgent: true,
            is_asleep: true,
            wakes_soon: true,
            last_append_group_size: MIN_GROUP,
            expected_appends: MIN_GROUP,
            ..State::default()
        }),
        ..Inbox::default()
    };
    inbox.push(append());
    assert!(inbox.state.lock().is_asleep);
}

#[test]
fn counts_the_callers_of_the_last_group_and_those_that_arrived_meanwhile() {
    let inbox = Inbox::default();
    (0..5).for_each(|_| inbox.push(append()));
    let mut taken = Vec::new();
    inbox.take(&mut taken, None);
    assert_eq!(taken.len(), 5);
    (0..3).for_each(|_| inbox.push(append()));
    inbox.close();
    taken.clear();
    inbox.take(&mut taken, None);
    assert_eq!(inbox.state.lock().expected_appends, 8);
}

#[test]
fn a_closed_inbox_returns_its_operations_and_refuses_more() {
    let inbox = Inbox::default();
    inbox.push(end(false));
    inbox.close();
    inbox.push(end(false));
    let mut taken = Vec::new();
    assert_eq!(inbox.take(&mut taken, None), Wakeup::Operations);
    assert_eq!(taken.len(), 1);
    taken.clear();
    assert_eq!(inbox.take(&mut taken, None), Wakeup::Closed);
    assert!(taken.is_empty());
}

#[test]
fn an_empty_inbox_returns_after_the_idle_timeout() {
    let inbox = Inbox::default();
    let mut taken = Vec::new();
    assert_eq!(
        inbox.take(&mut taken, Some(Duration::ZERO)),
        Wakeup::TimedOut
    );
    inbox.push(end(true));
    assert_eq!(
        inbox.take(&mut taken, Some(Duration::ZERO)),
        Wakeup::Operations
    );
}
