//! A database that goes on at another server: its primary is killed, and a synchronous standby is
//! promoted.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use kanat_model::id::{FlowId, MessageId};
use kanat_model::message::Status;
use kanat_testing_postgres::{Cluster, Durability, Programs, Stop};

use super::outage::Node;
use crate::contract::{Harness, Subject, leased, message, tenant};
use crate::postgres::{Options, PostgresLog};
use crate::prelude::*;
use crate::{Error, LeasedWriteOutcome, Outcome, RenewalOutcome};

/// Longest time from the promotion to the first message that is taken, on a machine that does
/// nothing else.
const FOUND_WITHIN: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// A primary, and a standby that every commit waits for.
struct Pair {
    primary: Cluster,
    standby: Cluster,
}

impl Pair {
    fn start() -> Self {
        let primary = Cluster::start(Programs::find().unwrap(), Durability::OnDisk).unwrap();
        primary.create_database("messages").unwrap();
        let standby = primary.synchronous_standby().unwrap();
        Self { primary, standby }
    }

    /// The standby first, which is to be refused.
    fn urls(&self) -> String {
        format!(
            "{},{}",
            self.standby.url("messages"),
            self.primary.url("messages")
        )
    }
}

#[async_trait::async_trait]
impl Harness for Pair {
    async fn open(&self) -> Arc<dyn MessageLog> {
        Arc::new(
            PostgresLog::open(&self.urls(), Options::default())
                .await
                .unwrap(),
        )
    }
}

fn block<T>(call: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(call)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_promoted_standby_is_found_and_has_everything_that_was_acknowledged() {
    let pair = block(Pair::start);
    let node = Node::start(&pair.urls(), Options::default()).await;
    let promoted = AtomicBool::new(false);
    let senders = (0..8).map(|_| async {
        let mut acknowledged = Vec::new();
        // At least some before the kill, and some after the promotion.
        while acknowledged.len() < 60 || !promoted.load(Ordering::SeqCst) {
            let lease = node.send().await;
            acknowledged.push(lease.message_id.clone());
            assert_eq!(node.deliver(&lease).await, LeasedWriteOutcome::Done);
        }
        acknowledged
    });
    let outage = async {
        while node.log.stats().settled < 100 {
            node.log.changed().changed().await.unwrap();
        }
        block(|| pair.primary.kill().unwrap());
        assert!(matches!(
            node.log.append(node.message()).await,
            Err(Error::Unavailable(_))
        ));
        let begun = Instant::now();
        block(|| pair.standby.promote().unwrap());
        node.send().await;
        println!(
            "messages are taken {} ms after the promotion",
            begun.elapsed().as_millis()
        );
        assert!(begun.elapsed() < FOUND_WITHIN);
        promoted.store(true, Ordering::SeqCst);
    };
    let (acknowledged, ()) = futures::future::join(join_all(senders), outage).await;
    let acknowledged: HashSet<MessageId> = acknowledged.into_iter().flatten().collect();
    let delivered = node.ids(Some(Status::Delivered)).await;
    assert!(
        acknowledged.is_subset(&delivered),
        "{} of {}",
        delivered.len(),
        acknowledged.len()
    );
    node.log.close().await;
}

/// It had no standby any more, so its commits would be acknowledged at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_primary_that_comes_back_is_not_written_to() {
    let pair = block(Pair::start);
    let node = Node::start(&pair.urls(), Options::default()).await;
    node.send().await;
    block(|| {
        pair.primary
            .execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            .unwrap();
        pair.primary.stop(Stop::Immediate).unwrap();
        pair.standby.promote().unwrap();
        pair.primary.start_again().unwrap();
    });
    let sent = node.send().await.message_id;
    let at_standby = PostgresLog::open(&pair.standby.url("messages"), Options::default())
        .await
        .unwrap();
    let found = at_standby.get(&tenant(), &sent).await.unwrap();
    at_standby.close().await;
    assert!(found.is_some(), "it was written to the former primary");

    // The present primary goes, and the former one is all that is left.
    block(|| pair.standby.stop(Stop::Immediate).unwrap());
    loop {
        let refused = refusal(&node).await;
        if refused.contains("former primary") {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    node.log.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_became_read_only_is_left_for_one_that_takes_writes() {
    let pair = block(Pair::start);
    let node = Node::start(&pair.urls(), Options::default()).await;
    node.send().await;
    // It runs on, and its connections do not end by themselves.
    block(|| {
        pair.primary
            .execute("ALTER SYSTEM SET synchronous_standby_names = ''")
            .unwrap();
        pair.primary
            .execute("ALTER SYSTEM SET default_transaction_read_only = on")
            .unwrap();
        pair.primary.execute("SELECT pg_reload_conf()").unwrap();
    });
    let refused = refusal(&node).await;
    assert!(refused.contains("read-only"), "{refused}");
    block(|| pair.standby.promote().unwrap());
    let sent = node.send().await;
    assert_eq!(node.deliver(&sent).await, LeasedWriteOutcome::Done);
    becomes(
        &pair.primary,
        "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'kanat message log'",
    )
    .await;
    node.log.close().await;
}

/// A promotion begins a timeline, which a lease takes for another past.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_node_held_is_claimed_anew_after_a_promotion() {
    let pair = block(Pair::start);
    let subject = Subject::open(&pair).await;
    let flow = FlowId::generate();
    let held = subject.lease(message(&flow)).await;
    block(|| {
        pair.primary.kill().unwrap();
        pair.standby.promote().unwrap();
    });
    while subject.log.ping().await.is_err() {
        tokio::time::sleep(PAUSE).await;
    }
    assert!(matches!(
        subject.renew().await,
        RenewalOutcome::PastChanged { .. }
    ));
    let again = Subject::open_as(&pair, subject.node.clone()).await;
    let claimed = again.claim_one(&flow).await.lease;
    assert_eq!(claimed.message_id, held.message_id);
    assert_eq!(
        subject.settle(&held, 1, Outcome::Delivered).await,
        LeasedWriteOutcome::Fenced
    );
    again.deliver(&claimed).await;
    for node in [subject, again] {
        node.close().await;
    }
}

/// Its machine is gone, and nobody tells that its connections are over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_primary_that_falls_silent_is_left_for_the_promoted_standby() {
    let pair = block(Pair::start);
    // One writer, whose connection stands.
    let node = Node::start(
        &pair.urls(),
        Options {
            writers: 1,
            ..Options::default()
        },
    )
    .await;
    node.send().await;
    block(|| pair.primary.pause().unwrap());
    let waits = node.log.append(node.message());
    let promoted = async {
        let begun = Instant::now();
        block(|| pair.standby.promote().unwrap());
        let sent = node.send().await;
        (begun.elapsed(), sent)
    };
    let (waited, (taken, sent)) = futures::future::join(waits, promoted).await;
    // The former primary goes on where it stood, and knows nothing of the promotion.
    block(|| pair.primary.resume().unwrap());
    println!(
        "messages are taken {} ms after the promotion",
        taken.as_millis()
    );
    assert!(taken < 2 * FOUND_WITHIN);
    for lease in [leased(waited.unwrap()), sent] {
        assert_eq!(node.deliver(&lease).await, LeasedWriteOutcome::Done);
    }
    let sent = node.send().await.message_id;
    assert!(node.log.get(&tenant(), &sent).await.unwrap().is_some());
    node.log.close().await;
}

/// A session that ends while its commit waits for a standby leaves the commit on the disk of the
/// primary alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_no_standby_has_is_not_acknowledged() {
    let pair = block(Pair::start);
    let node = Node::start(&pair.urls(), Options::default()).await;
    node.send().await;
    block(|| pair.standby.stop(Stop::Immediate).unwrap());
    let message = node.message();
    let id = message.id.clone();
    let answered = AtomicBool::new(false);
    let append = async {
        let appended = node.log.append(message).await;
        answered.store(true, Ordering::SeqCst);
        appended
    };
    let outage = async {
        let waits = |query: &str| {
            format!(
                "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query \
                 LIKE '{query}'"
            )
        };
        becomes(&pair.primary, &waits("COMMIT")).await;
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE wait_event \
                   = 'SyncRep'";
        block(|| pair.primary.execute(end).unwrap());
        // Everybody sees it from now on. What became of it is answered once the standby has it.
        let is_stored =
            format!("SELECT EXISTS (SELECT 1 FROM kanat_log.messages WHERE id = '{id}')");
        becomes_in(&pair.primary, "messages", &is_stored).await;
        let asked = waits("SELECT pg_logical_emit_message%");
        while !answered.load(Ordering::SeqCst)
            && block(|| pair.primary.execute(&asked).unwrap()) != "t"
        {
            tokio::time::sleep(PAUSE).await;
        }
        block(|| {
            pair.primary.kill().unwrap();
            pair.standby.start_again().unwrap();
            pair.standby.promote().unwrap();
        });
    };
    let (appended, ()) = futures::future::join(append, outage).await;
    assert!(
        matches!(appended, Err(Error::Unavailable(_))),
        "{appended:?}"
    );
    node.send().await;
    assert!(node.log.get(&tenant(), &id).await.unwrap().is_none());
    node.log.close().await;
}

/// Waits until a question is answered by yes.
async fn becomes(server: &Cluster, question: &str) {
    becomes_in(server, "postgres", question).await;
}

async fn becomes_in(server: &Cluster, database: &str, question: &str) {
    while block(|| server.execute_in(database, question).unwrap()) != "t" {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the error of an append.
async fn refusal(node: &Node) -> String {
    loop {
        match node.log.append(node.message()).await {
            Err(Error::Unavailable(reason)) => return reason,
            Err(error) => panic!("{error}"),
            // The connection of before still stands.
            Ok(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
