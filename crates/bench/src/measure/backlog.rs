//! A message log that holds very many messages: whether orders come through as fast, whether what
//! is asked of it is still found by an index, and whether the file shrinks when they are old.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use kanat_message_log::sqlite::{Durability, Options, SqliteLog};
use kanat_message_log::{
    Appended, Claim, Filter, MessageLog, NewMessage, Outcome, Place, Position, Room, Settled,
    Settlement, Share, Tenant,
};
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, MessageId, NodeId};
use kanat_model::message::Trigger;
use kanat_model::page::Page;

use crate::figures::{median, plain};
use crate::finding::{Finding, Goal};
use crate::kanat::Start;
use crate::plan::Plan;
use crate::subject::Subject;
use crate::target::Target;

/// Flows that the messages are of.
const FLOWS: usize = 100;
/// Messages on their way into the log at a time.
const AT_ONCE: usize = 4_000;
/// Between two messages of the filled log: ten million are some days old at most.
const APART: Duration = Duration::from_millis(30);

/// What was read of the log, in milliseconds.
struct Reads {
    list: f64,
    waiting: f64,
    claim: f64,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let folder = plan.scratch()?;
    let start = Start {
        binary: &plan.kanat,
        folder: folder.path(),
        database: None,
    };
    let target = Target::start().await?;
    let kanat = start.run().await?;
    let path = kanat.set_up(target.address.port()).await?.path;
    kanat.server.stop().await?;
    let file = start.data().join("messages.db");

    eprintln!("the log, nearly empty");
    let empty_reads = reads(&file).await?;
    let (empty, target) = rate(plan, &start, target, &path).await?;
    eprintln!(
        "the log is filled with {} messages",
        plain(plan.sizes.messages as f64)
    );
    let begun = Instant::now();
    fill(&file, plan.sizes.messages).await?;
    let filled_in = begun.elapsed();
    let full_reads = reads(&file).await?;
    let (full, _) = rate(plan, &start, target, &path).await?;

    eprintln!("the log drops them");
    let log = open(&file, Durability::Full).await?;
    let peak = size(&file)?;
    let begun = Instant::now();
    let dropped = log.retain(Timestamp::now()).await?;
    let took = begun.elapsed();
    log.close().await;
    let left = size(&file)?;

    let count = plain(plan.sizes.messages as f64);
    let gib = |bytes: u64| plain(bytes as f64 / f64::from(1 << 30));
    Ok(vec![
        Finding::new(
            "P11",
            format!(
                "orders delivered a second with {count} messages in the log, of those with an \
                 empty one"
            ),
            Goal::AtLeast(0.8),
            full / empty,
            format!(
                "delivered: {} /s and {} /s; filled in {} s",
                plain(full),
                plain(empty),
                filled_in.as_secs()
            ),
        ),
        Finding::new(
            "P11",
            format!("the slowest of a list of one of {FLOWS} flows, a look at what waits, a claim"),
            Goal::AtMost(100.0),
            full_reads
                .list
                .max(full_reads.waiting)
                .max(full_reads.claim),
            format!("{}; empty: {}", full_reads.tell(), empty_reads.tell()),
        )
        .in_units("ms"),
        Finding::new(
            "P11",
            "size of the file after retention, of its peak",
            Goal::AtMost(0.2),
            left as f64 / peak as f64,
            format!(
                "{} of {} GiB, {} messages dropped in {} s",
                gib(left),
                gib(peak),
                plain(dropped as f64),
                took.as_secs()
            ),
        ),
    ])
}

impl Reads {
    fn tell(&self) -> String {
        format!(
            "list {} ms, waiting {} ms, claim {} ms",
            plain(self.list),
            plain(self.waiting),
            plain(self.claim)
        )
    }
}

async fn rate(plan: &Plan, start: &Start<'_>, target: Target, path: &str) -> Result<(f64, Target)> {
    let kanat = start.run().await?;
    kanat.takes(path).await?;
    let subject = Subject::of_kanat(kanat, target, path.to_owned(), None);
    let mut rates = Vec::new();
    for _ in 0..plan.rounds {
        rates.push(
            subject
                .closed(plan.sizes.connections, plan.length)
                .await?
                .delivered_per_second,
        );
    }
    Ok((median(rates), subject.stop().await?))
}

async fn open(file: &Path, durability: Durability) -> Result<SqliteLog> {
    SqliteLog::open(
        file,
        Options {
            durability,
            ..Options::default()
        },
    )
    .await
    .context("cannot open the log")
}

/// Messages that were taken in and delivered, a few hundred bytes each.
async fn fill(file: &Path, count: usize) -> Result<()> {
    let log = open(file, Durability::RelaxedMayLoseAckedMessages).await?;
    let owner = BootId::generate();
    log.open_lease(&owner, &NodeId::new("bench"), Duration::from_secs(3_600))
        .await?;
    let span = APART * u32::try_from(count)?;
    let oldest = Timestamp::now().before(span);
    let messages = stream::iter((0..count).map(|n| {
        let at = oldest.after(APART * u32::try_from(n).unwrap_or(u32::MAX));
        deliver(&log, message(n, at, Place::Leased(owner.clone())))
    }));
    messages
        .buffer_unordered(AT_ONCE)
        .try_collect::<()>()
        .await?;
    log.hand_back(&owner).await?;
    log.close().await;
    Ok(())
}

async fn deliver(log: &SqliteLog, message: NewMessage) -> Result<()> {
    let at = message.received_at;
    let Appended::Leased(lease) = log.append(message).await? else {
        anyhow::bail!("a message was not leased")
    };
    let output = Some(Bytes::from_static(br#"{"order_id":"SO-10241"}"#));
    let outcome = Outcome::Delivered;
    let settled = log
        .settle(&Settlement {
            lease,
            at,
            attempt: 1,
            outcome,
            output,
            failure: None,
            trace: Vec::new(),
        })
        .await?;
    ensure!(settled == Settled::Done, "a message was taken away");
    Ok(())
}

fn message(n: usize, received_at: Timestamp, place: Place) -> NewMessage {
    let Tenant {
        account_id,
        environment_id,
    } = tenant();
    NewMessage {
        id: MessageId::generate(),
        account_id,
        environment_id,
        flow_id: flow(n % FLOWS),
        flow_name: "bench-orders".to_owned(),
        flow_version: 1,
        trigger: Trigger::Webhook,
        raw_body: Bytes::from(format!(
            r#"{{"id":"SO-{n}","total":149.5,"currency":"EUR","customer":{{"id":"C-204"}}}}"#
        )),
        payload: None,
        request: Bytes::from_static(br#"{"method":"POST","headers":{},"query":{}}"#),
        received_at,
        ordering_key: None,
        dedupe: Vec::new(),
        replay_of: None,
        batch_id: None,
        max_attempts: 4,
        traceparent: None,
        place,
    }
}

fn tenant() -> Tenant {
    Tenant {
        account_id: AccountId::new("acc_bench"),
        environment_id: EnvironmentId::new("env_bench"),
    }
}

fn flow(n: usize) -> FlowId {
    FlowId::new(format!("flw_bench{n:08}"))
}

/// What a list and a claim take, of the flow that has the most.
async fn reads(file: &Path) -> Result<Reads> {
    let log = open(file, Durability::Full).await?;
    let owner = BootId::generate();
    log.open_lease(&owner, &NodeId::new("bench"), Duration::from_secs(60))
        .await?;
    // One to be found and claimed.
    log.append(message(0, Timestamp::now(), Place::Queued))
        .await?;
    let begun = Instant::now();
    let page = Page {
        limit: 50,
        offset: 0,
    };
    let listed = log
        .list(&Filter::flow(tenant(), flow(0)), Position::Page(page))
        .await?;
    let list = millis(begun);
    ensure!(!listed.messages.is_empty(), "the list is empty");
    let begun = Instant::now();
    let waiting = log.waiting().await?;
    let looked = millis(begun);
    ensure!(waiting.iter().any(|flow| flow.due > 0), "nothing waits");
    let begun = Instant::now();
    let rooms = vec![Room {
        flow_id: flow(0),
        messages: 10,
        without_versions: Vec::new(),
    }];
    let claimed = log
        .claim(Claim {
            owner: owner.clone(),
            bytes: u64::MAX,
            shares: vec![Share::unbounded(rooms)],
            awaited: Vec::new(),
        })
        .await?;
    let claim = millis(begun);
    ensure!(
        claimed.len() == 1,
        "{} messages were claimed",
        claimed.len()
    );
    let at = Timestamp::now();
    for claimed in claimed {
        let outcome = Outcome::Filtered;
        let end = Settlement {
            lease: claimed.lease,
            at,
            attempt: 1,
            outcome,
            output: None,
            failure: None,
            trace: Vec::new(),
        };
        ensure!(
            log.settle(&end).await? == Settled::Done,
            "a message was taken away"
        );
    }
    log.hand_back(&owner).await?;
    log.close().await;
    Ok(Reads {
        list,
        waiting: looked,
        claim,
    })
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// With what stands in the write-ahead log.
fn size(file: &Path) -> Result<u64> {
    let ahead = std::fs::metadata(file.with_extension("db-wal")).map_or(0, |ahead| ahead.len());
    Ok(std::fs::metadata(file)?.len() + ahead)
}
