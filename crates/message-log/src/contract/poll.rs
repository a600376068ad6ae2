//! Promises about polls.

use std::time::Duration;

use bytes::Bytes;
use kanat_model::Timestamp;
use kanat_model::id::FlowId;

use super::Harness;
use super::subject::Subject;
use crate::{
    LeasedWriteOutcome, Poll, PollClaim, PollClaimOutcome, PollCycleEnd, PollStanding, SeenRecord,
};

const NOON: Timestamp = Timestamp::from_millis(1_769_860_800_000);

fn at(seconds: u64) -> Timestamp {
    NOON.after(Duration::from_secs(seconds))
}

fn claim(subject: &Subject, flow: &FlowId, version: u32, seconds: u64) -> PollClaim {
    let owner = subject.boot.clone();
    PollClaim {
        flow_id: flow.clone(),
        version,
        owner,
        now: at(seconds),
        held_until: at(seconds + 30),
    }
}

pub(super) async fn take(
    subject: &Subject,
    flow: &FlowId,
    version: u32,
    seconds: u64,
) -> (i64, Bytes) {
    match subject
        .log
        .claim_poll(&claim(subject, flow, version, seconds))
        .await
        .expect("the log answers")
    {
        PollClaimOutcome::Taken { token, state } => (token, state),
        PollClaimOutcome::Later(at) => panic!("not before {at}"),
    }
}

pub(super) fn next_state(
    subject: &Subject,
    flow: &FlowId,
    token: i64,
    due: u64,
    state: &'static str,
) -> Poll {
    let state = Some(Bytes::from_static(state.as_bytes()));
    let flow_id = flow.clone();
    let owner = subject.boot.clone();
    Poll {
        flow_id,
        owner,
        token,
        version: 1,
        due_at: at(due),
        held_until: NOON,
        state,
        ended: None,
    }
}

pub async fn gives_a_poll_to_one_at_a_time(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let (token, state) = take(&subject, &flow, 1, 0).await;
    assert!(state.is_empty());
    for seconds in [0, 29] {
        let refused = other
            .log
            .claim_poll(&claim(&other, &flow, 1, seconds))
            .await
            .expect("the log answers");
        assert_eq!(refused, PollClaimOutcome::Later(at(30)));
    }
    assert_eq!(
        subject
            .log
            .update_poll(&next_state(&subject, &flow, token, 300, "{\"a\":1}"))
            .await
            .expect("the log answers"),
        LeasedWriteOutcome::Done
    );
    let refused = other
        .log
        .claim_poll(&claim(&other, &flow, 1, 299))
        .await
        .expect("the log answers");
    assert_eq!(refused, PollClaimOutcome::Later(at(300)));
    let (_, state) = take(&other, &flow, 1, 300).await;
    assert_eq!(state, "{\"a\":1}");
    // Another flow has nothing to do with it.
    take(&subject, &FlowId::generate(), 1, 300).await;
    subject.close().await;
}

pub async fn takes_a_poll_over_when_its_holder_is_silent(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let (token, _) = take(&subject, &flow, 1, 0).await;
    let kept = Poll {
        held_until: at(45),
        ..next_state(&subject, &flow, token, 0, "page 2")
    };
    assert_eq!(
        subject
            .log
            .update_poll(&kept)
            .await
            .expect("the log answers"),
        LeasedWriteOutcome::Done
    );
    let renewed = Poll {
        held_until: at(60),
        state: None,
        ..kept
    };
    assert_eq!(
        subject
            .log
            .update_poll(&renewed)
            .await
            .expect("the log answers"),
        LeasedWriteOutcome::Done
    );
    assert_eq!(
        other
            .log
            .claim_poll(&claim(&other, &flow, 1, 59))
            .await
            .expect("the log answers"),
        PollClaimOutcome::Later(at(60))
    );
    let (_, state) = take(&other, &flow, 1, 60).await;
    assert_eq!(state, "page 2");
    // The former holder writes nothing any more.
    let late = next_state(&subject, &flow, token, 900, "late");
    assert_eq!(
        subject
            .log
            .update_poll(&late)
            .await
            .expect("the log answers"),
        LeasedWriteOutcome::Fenced
    );
    assert_eq!(take(&subject, &flow, 1, 90).await.1, "page 2");
    subject.close().await;
}

pub async fn gives_a_poll_to_the_next_boot_of_its_holder_at_once(harness: &dyn Harness) {
    let [flow, theirs] = [FlowId::generate(), FlowId::generate()];
    let subject = Subject::open(harness).await;
    let other = subject.beside().await;
    let (token, _) = take(&subject, &flow, 1, 0).await;
    take(&other, &theirs, 1, 0).await;
    let kept = Poll {
        held_until: at(30),
        ..next_state(&subject, &flow, token, 0, "page 2")
    };
    let kept = subject.log.update_poll(&kept).await;
    assert_eq!(kept.expect("the log answers"), LeasedWriteOutcome::Done);
    // It dies without a word.
    subject.close().await;

    let restarted = Subject::open_as(harness, subject.node.clone()).await;
    let (_, state) = take(&restarted, &flow, 1, 1).await;
    assert_eq!(state, "page 2");
    let claim = claim(&restarted, &theirs, 1, 1);
    let refused = restarted.log.claim_poll(&claim);
    assert_eq!(
        refused.await.expect("the log answers"),
        PollClaimOutcome::Later(at(30))
    );
    restarted.close().await;
}

pub async fn polls_a_later_version_at_once(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let subject = Subject::open(harness).await;
    let (token, _) = take(&subject, &flow, 1, 0).await;
    assert_eq!(
        subject
            .log
            .update_poll(&next_state(&subject, &flow, token, 300, "x"))
            .await
            .expect("the log answers"),
        LeasedWriteOutcome::Done
    );
    assert_eq!(
        subject
            .log
            .claim_poll(&claim(&subject, &flow, 1, 1))
            .await
            .expect("the log answers"),
        PollClaimOutcome::Later(at(300))
    );
    take(&subject, &flow, 2, 1).await;
    subject.close().await;
}

pub async fn knows_the_records_that_a_flow_has_seen(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let elsewhere = FlowId::generate();
    let record = |id: &str, hash: &str, count, seconds| SeenRecord {
        id: id.to_owned(),
        hash: hash.to_owned(),
        count,
        seen_at: at(seconds),
    };
    let subject = Subject::open(harness).await;
    let log = &subject.log;
    log.upsert_seen_records(
        &flow,
        vec![
            record("a", "1", 1, 0),
            record("b", "1", 1, 0),
            record("b", "2", 2, 0),
        ],
    )
    .await
    .expect("the log answers");
    log.upsert_seen_records(&flow, vec![record("a", "9", 2, 10)])
        .await
        .expect("the log answers");
    log.upsert_seen_records(&elsewhere, vec![record("c", "1", 1, 0)])
        .await
        .expect("the log answers");
    let ids = ["a", "b", "c", "it's \"d\""].map(str::to_owned);
    let seen = async || {
        let mut found = log
            .seen_records(&flow, &ids)
            .await
            .expect("the log answers");
        found.sort_by(|one, other| one.id.cmp(&other.id));
        found
    };
    assert_eq!(
        seen().await,
        [record("a", "9", 2, 10), record("b", "2", 2, 0)]
    );
    log.forget_records(&flow, at(5))
        .await
        .expect("the log answers");
    assert_eq!(seen().await, [record("a", "9", 2, 10)]);
    assert_eq!(
        log.seen_records(&elsewhere, &ids)
            .await
            .expect("the log answers")
            .len(),
        1
    );
    subject.close().await;
}

async fn standing(subject: &Subject, flow: &FlowId) -> Option<PollStanding> {
    let asked = [flow.clone(), FlowId::generate()];
    let found = subject.log.polls(&asked).await.expect("the log answers");
    assert!(found.iter().all(|(of, _)| of == flow));
    found.into_iter().next().map(|(_, standing)| standing)
}

pub async fn returns_the_status_of_polls_and_forgets_them(harness: &dyn Harness) {
    let flow = FlowId::generate();
    let other = FlowId::generate();
    let subject = Subject::open(harness).await;
    let log = &subject.log;
    assert_eq!(standing(&subject, &flow).await, None);
    let (token, _) = take(&subject, &flow, 1, 0).await;
    take(&subject, &other, 1, 0).await;
    assert_eq!(
        standing(&subject, &flow).await,
        Some(PollStanding {
            due_at: at(0),
            held_until: at(30),
            ended: None
        }),
        "it is polled, and its holder has so long"
    );
    let ends = |seconds, error: Option<&str>| PollCycleEnd {
        at: at(seconds),
        error: error.map(str::to_owned),
    };
    let failed = ends(7, Some("the endpoint answered 500"));
    for (ended, shown) in [
        (Some(failed.clone()), failed.clone()),
        // What says nothing of an end leaves what was known.
        (None, failed),
        (Some(ends(9, None)), ends(9, None)),
    ] {
        let kept = Poll {
            ended,
            ..next_state(&subject, &flow, token, 300, "x")
        };
        assert_eq!(
            log.update_poll(&kept).await.expect("the log answers"),
            LeasedWriteOutcome::Done
        );
        let found = standing(&subject, &flow).await;
        assert_eq!(
            found,
            Some(PollStanding {
                due_at: at(300),
                held_until: at(0),
                ended: Some(shown)
            })
        );
    }
    let seen = |n: i64| SeenRecord {
        id: n.to_string(),
        hash: "h".to_owned(),
        count: 1,
        seen_at: NOON,
    };
    for flow in [&flow, &other] {
        log.upsert_seen_records(flow, (0..7_000).map(seen).collect())
            .await
            .expect("the log answers");
    }
    let polled = log.polled_flows().await.expect("the log answers");
    assert!(
        polled.contains(&flow) && polled.contains(&other),
        "{polled:?}"
    );
    let mut rounds = 0;
    while log.forget_poll(&flow).await.expect("the log answers") {
        rounds += 1;
    }
    assert_eq!(rounds, 2);
    assert_eq!(standing(&subject, &flow).await, None);
    let ids = ["6999".to_owned()];
    assert_eq!(
        log.seen_records(&flow, &ids)
            .await
            .expect("the log answers"),
        []
    );
    assert_eq!(
        log.seen_records(&other, &ids)
            .await
            .expect("the log answers")
            .len(),
        1
    );
    assert!(
        !log.polled_flows()
            .await
            .expect("the log answers")
            .contains(&flow)
    );
    let late = next_state(&subject, &flow, token, 900, "late");
    assert_eq!(
        log.update_poll(&late).await.expect("the log answers"),
        LeasedWriteOutcome::Fenced,
        "who polls on is stopped"
    );
    subject.close().await;
}
