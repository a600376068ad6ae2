//! Several processes on one log.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kanat_model::Timestamp;
use kanat_model::id::{BootId, FlowId, MessageId, NodeId};
use sqlx::Connection;

use super::LogHarness;
use crate::contract::{Harness, Subject, message, ordered, settlement, tenant};
use crate::postgres::{PostgresLog, sequence};
use crate::prelude::*;
use crate::{
    AppendOutcome, Claim, ClaimBudget, DedupeKey, EventQuery, LeasedWriteOutcome, NewMessage,
    Outcome, Placement, RenewalOutcome, RepeatPolicy, Room,
};

const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn knows_the_repeats_that_come_to_several_nodes_at_once() {
    let place = LogHarness::new();
    let flow = FlowId::generate();
    let nodes = [place.open().await, place.open().await, place.open().await];
    let mut sends = Vec::new();
    for number in 0..40 {
        for node in &nodes {
            let dedupe_keys = vec![
                DedupeKey {
                    key: format!("key {number}"),
                    ttl: HOUR,
                    policy: RepeatPolicy::Refuse,
                },
                DedupeKey {
                    key: format!("delivery {number}"),
                    ttl: HOUR,
                    policy: RepeatPolicy::Refuse,
                },
            ];
            let sent = NewMessage {
                dedupe_keys,
                ..message(&flow)
            };
            sends.push(async move { (number, sent.id.clone(), node.append(sent).await.unwrap()) });
        }
    }
    let appended = join_all(sends).await;
    for number in 0..40 {
        let of_key: Vec<_> = appended.iter().filter(|(of, _, _)| *of == number).collect();
        let stored: Vec<&MessageId> = of_key
            .iter()
            .filter(|(_, _, appended)| *appended == AppendOutcome::Waiting)
            .map(|(_, id, _)| id)
            .collect();
        assert_eq!(stored.len(), 1, "one of {} is stored", of_key.len());
        let repeats = of_key
            .iter()
            .filter(|(_, _, appended)| *appended == AppendOutcome::Duplicate(stored[0].clone()));
        assert_eq!(repeats.count(), of_key.len() - 1);
    }
    for node in nodes {
        node.close().await;
    }
}

/// A node that runs what it holds of a flow to its end, and says in which order.
struct Worker {
    log: Arc<dyn MessageLog>,
    boot: BootId,
}

impl Worker {
    async fn start(place: &LogHarness) -> Self {
        let log = place.open().await;
        let boot = BootId::generate();
        log.open_lease(&boot, &NodeId::generate(), HOUR)
            .await
            .unwrap();
        Self { log, boot }
    }

    async fn append(&self, flow: &FlowId, key: &str) -> (MessageId, AppendOutcome) {
        let sent = NewMessage {
            place: Placement::Leased(self.boot.clone()),
            ..ordered(flow, key)
        };
        (sent.id.clone(), self.log.append(sent).await.unwrap())
    }

    async fn deliver(&self, lease: crate::Lease) -> MessageId {
        let id = lease.message_id.clone();
        let settlement = settlement(&lease, 1, Outcome::Delivered);
        assert_eq!(
            self.log.settle(&settlement).await.unwrap(),
            LeasedWriteOutcome::Done
        );
        id
    }

    async fn claim(&self, flow: &FlowId, messages: u32) -> Vec<crate::ClaimedMessage> {
        let rooms = vec![Room {
            flow_id: flow.clone(),
            messages,
            without_versions: Vec::new(),
        }];
        self.log
            .claim(Claim {
                owner: self.boot.clone(),
                bytes: u64::MAX,
                budgets: vec![ClaimBudget::unbounded(rooms)],
                awaited: Vec::new(),
            })
            .await
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_on_one_message_of_a_key_at_a_time_over_all_nodes() {
    let place = LogHarness::new();
    let flow = FlowId::generate();
    let workers = [
        Worker::start(&place).await,
        Worker::start(&place).await,
        Worker::start(&place).await,
    ];
    // All append with few keys while what they hold ends: a message comes to stand behind another
    // that ends just then.
    let rounds = workers.iter().map(|worker| {
        let flow = &flow;
        async move {
            let mut ids = Vec::new();
            for number in 0..60 {
                let (id, appended) = worker.append(flow, &format!("key {}", number % 3)).await;
                ids.push(id);
                if let AppendOutcome::Leased(lease) = appended {
                    worker.deliver(lease).await;
                }
            }
            ids
        }
    });
    let sent: HashSet<MessageId> = join_all(rounds).await.into_iter().flatten().collect();
    assert_eq!(sent.len(), 180);

    // What is left is claimed by all of them, at most one message of a key at any time; none is
    // stuck.
    let mut left = 0;
    loop {
        let claims = join_all(workers.iter().map(|worker| worker.claim(&flow, 10))).await;
        let keys: Vec<_> = claims
            .iter()
            .flatten()
            .map(|claimed| claimed.ordering_key.clone())
            .collect();
        assert_eq!(
            keys.iter().collect::<HashSet<_>>().len(),
            keys.len(),
            "two of one key: {keys:?}"
        );
        if keys.is_empty() {
            break;
        }
        for (worker, claimed) in workers.iter().zip(claims) {
            for claimed in claimed {
                worker.deliver(claimed.lease).await;
                left += 1;
            }
        }
    }
    let open = workers[0].log.waiting().await.unwrap();
    assert!(open.is_empty(), "{open:?} after {left} claims");
    let filter = crate::Filter {
        statuses: vec![kanat_model::message::Status::Delivered],
        ..crate::Filter::flow(tenant(), flow)
    };
    let page = crate::Position::Page(kanat_model::page::Page {
        limit: 1,
        offset: 0,
    });
    assert_eq!(workers[0].log.list(&filter, page).await.unwrap().total, 180);
    for worker in workers {
        worker.log.close().await;
    }
}

#[tokio::test]
async fn wakes_the_other_nodes() {
    let place = LogHarness::new();
    let one = place.open().await;
    let other = place.open().await;
    let mut claimable = other.claimable();
    // Until it has heard one message, it may not be listening yet.
    let flow = FlowId::generate();
    one.append(message(&flow)).await.unwrap();
    claimable.changed().await.unwrap();
    claimable.mark_unchanged();
    one.append(message(&flow)).await.unwrap();
    claimable.changed().await.unwrap();
    assert_eq!(other.waiting().await.unwrap()[0].due, 2);
    one.close().await;
    other.close().await;
}

#[tokio::test]
async fn a_stream_never_passes_an_event_that_is_still_to_be_committed() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let flow = FlowId::generate();
    let begin = subject.log.last_event().await.unwrap();
    subject.append(message(&flow)).await;

    // Another process has taken numbers and not committed yet.
    let mut conn = place.connect().await;
    let mut slow = sequence::begin(&mut conn, place.connecting().space, 3)
        .await
        .unwrap();
    let taken = slow.next().unwrap();
    subject.append(message(&flow)).await;
    subject.append(message(&flow)).await;
    let seen = subject.events(EventQuery::after(tenant(), begin)).await;
    assert_eq!(
        seen.len(),
        1,
        "what came after the numbers taken is held back"
    );
    assert!(subject.log.last_event().await.unwrap() < taken);

    sqlx::raw_sql("COMMIT").execute(&mut conn).await.unwrap();
    let page = subject
        .log
        .events(&EventQuery::after(tenant(), begin))
        .await
        .unwrap();
    assert_eq!(page.events.len(), 3);
    assert!(page.events[0].seq < taken && taken < page.events[1].seq);
    assert_eq!(page.next_after, subject.log.last_event().await.unwrap());
    assert!(!page.more);
    conn.close().await.unwrap();
    subject.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_the_stream_see_every_event_of_all_nodes_once() {
    let place = LogHarness::new();
    let flow = FlowId::generate();
    let nodes = [place.open().await, place.open().await, place.open().await];
    let begin = nodes[0].last_event().await.unwrap();
    let sends = nodes.iter().map(|node: &Arc<dyn MessageLog>| {
        let flow = &flow;
        async move {
            for _ in 0..30 {
                join_all((0..5).map(|_| node.append(message(flow)))).await;
            }
        }
    });
    let read = async {
        let mut query = EventQuery {
            limit: 20,
            ..EventQuery::after(tenant(), begin)
        };
        let mut seen = Vec::new();
        let mut changed = nodes[0].changed();
        while seen.len() < 450 {
            changed.mark_unchanged();
            let page = nodes[0].events(&query).await.unwrap();
            query.after = page.next_after;
            seen.extend(page.events.into_iter().map(|event| event.seq));
            if !page.more {
                changed.changed().await.unwrap();
            }
        }
        seen
    };
    let (_, seen) = futures::future::join(join_all(sends), read).await;
    assert!(seen.is_sorted_by(|one, next| one < next));
    assert_eq!(seen.len(), 450);
    for node in nodes {
        node.close().await;
    }
}

#[tokio::test]
async fn an_old_lease_ends_by_the_clock_of_the_database() {
    let place = LogHarness::new();
    let log: Arc<PostgresLog> = place.open_with(crate::postgres::Options::default()).await;
    let boot = BootId::generate();
    let mut lease = log
        .open_lease(&boot, &NodeId::generate(), Duration::MAX)
        .await
        .unwrap();
    assert_eq!(
        log.renew_lease(&mut lease).await.unwrap(),
        RenewalOutcome::Done
    );
    let mut conn = place.connect().await;
    let left: i64 = sqlx::query_scalar("SELECT expires_at FROM leases")
        .fetch_one(&mut conn)
        .await
        .unwrap();
    assert!(left > 1 << 48);
    let gone = BootId::generate();
    let of_late = BootId::generate();
    for owner in [&gone, &of_late] {
        log.open_lease(owner, &NodeId::generate(), Duration::ZERO)
            .await
            .unwrap();
    }
    let back =
        sqlx::query("UPDATE leases SET expires_at = expires_at - 604800001 WHERE owner = $1");
    back.bind(gone.as_str()).execute(&mut conn).await.unwrap();
    log.retain(Timestamp::now()).await.unwrap();
    let kept: Vec<String> = sqlx::query_scalar("SELECT owner FROM leases ORDER BY owner")
        .fetch_all(&mut conn)
        .await
        .unwrap();
    assert_eq!(kept, [boot.as_str(), of_late.as_str()]);
    log.close().await;
}

#[tokio::test]
async fn keeps_keys_with_characters_that_the_database_cannot_hold() {
    let place = LogHarness::new();
    let subject = Subject::open(&place).await;
    let flow = FlowId::generate();
    let key = || Some("a\0b".to_owned());
    let dedupe_keys = vec![DedupeKey {
        key: "c\0".to_owned(),
        ttl: HOUR,
        policy: RepeatPolicy::Refuse,
    }];
    let first = NewMessage {
        ordering_key: key(),
        dedupe_keys: dedupe_keys.clone(),
        ..message(&flow)
    };
    let id = first.id.clone();
    assert_eq!(subject.append(first).await, AppendOutcome::Waiting);
    assert_eq!(
        subject
            .append(NewMessage {
                dedupe_keys,
                ..message(&flow)
            })
            .await,
        AppendOutcome::Duplicate(id.clone())
    );
    assert_eq!(
        subject
            .append(NewMessage {
                ordering_key: key(),
                ..message(&flow)
            })
            .await,
        AppendOutcome::Waiting
    );
    assert_eq!(subject.claim_one(&flow).await.lease.message_id, id);
    assert!(
        subject
            .log
            .get(&tenant(), &MessageId::new("\0"))
            .await
            .unwrap()
            .is_none()
    );
    subject.close().await;
}
