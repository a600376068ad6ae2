//! P11: a message log with very many messages: whether orders come through as fast, whether reads
//! still find their rows by an index, and whether the file shrinks when the messages are old.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use kanat_message_log::prelude::*;
use kanat_message_log::sqlite::{Durability, Options, SqliteLog};
use kanat_message_log::{
    AppendOutcome, Claim, ClaimBudget, Filter, Lease, LeasedWriteOutcome, NewMessage, Outcome,
    Placement, Position, Room, Settlement, Tenant,
};
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, FlowId, MessageId, NodeId};
use kanat_model::message::Trigger;
use kanat_model::page::Page;

use crate::figures::plain;
use crate::kanat::Start;
use crate::load::Call;
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Report};
use crate::subject::Subject;
use crate::target::Target;

/// Flows that the messages belong to.
const FLOWS: usize = 100;

/// Appends in progress at a time.
const CONCURRENCY: usize = 4_000;

/// Time between two messages of the filled log: ten million are some days old at most.
const INTERVAL: Duration = Duration::from_millis(30);

/// Reads that are timed.
const READS: [&str; 3] = ["list", "waiting", "claim"];

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let folder = plan.scratch()?;
    let start = plan.start(folder.path());
    let target = Arc::new(Target::start().await?);
    let kanat = start.run().await?;
    let path = kanat.set_up(target.address.port()).await?.path;
    kanat.server.stop().await?;
    let file = start.data().join("messages.db");
    let count = plain(plan.sizes.messages as f64);

    eprintln!("the log, nearly empty");
    let empty_reads = reads(&file).await?;
    let empty = rate(plan, &start, &target, &path).await?;
    eprintln!("the log is filled with {count} messages");
    let begun = Instant::now();
    fill(&file, plan.sizes.messages).await?;
    let filled_s = begun.elapsed().as_secs();
    let full_reads = reads(&file).await?;
    let full = rate(plan, &start, &target, &path).await?;

    eprintln!("the log drops them");
    let log = open(&file, Durability::Full).await?;
    let peak = size(&file)?;
    let begun = Instant::now();
    let dropped = log.retain(Timestamp::now()).await?;
    let dropped_s = begun.elapsed().as_secs();
    log.close().await;
    let left = size(&file)?;

    let dropped = plain(dropped as f64);
    let gib = |bytes: u64| plain(bytes as f64 / f64::from(1 << 30));
    report.add(Finding::new(
        Measure::P11,
        format!(
            "orders delivered a second with {count} messages in the log, of those with an empty one"
        ),
        Goal::AtLeast(0.8),
        full / empty,
        "",
        format!(
            "delivered: {} /s and {} /s; filled in {filled_s} s",
            plain(full),
            plain(empty)
        ),
    ));
    report.add(Finding::new(
        Measure::P11,
        format!("the slowest of a list of one of {FLOWS} flows, a scan of waiting flows, a claim"),
        Goal::AtMost(100.0),
        full_reads.into_iter().fold(0.0, f64::max),
        "ms",
        format!("{}; empty: {}", describe(full_reads), describe(empty_reads)),
    ));
    report.add(Finding::new(
        Measure::P11,
        "size of the file after retention, of its peak",
        Goal::AtMost(0.2),
        left as f64 / peak as f64,
        "",
        format!(
            "{} of {} GiB, {dropped} messages dropped in {dropped_s} s",
            gib(left),
            gib(peak)
        ),
    ));
    Ok(())
}

fn describe(reads_ms: [f64; 3]) -> String {
    let times = READS.iter().zip(reads_ms);
    let times: Vec<String> = times
        .map(|(name, ms)| format!("{name} {} ms", plain(ms)))
        .collect();
    times.join(", ")
}

async fn rate(plan: &Plan, start: &Start<'_>, target: &Arc<Target>, path: &str) -> Result<f64> {
    let kanat = start.run().await?;
    let webhook = Call::webhook(path);
    kanat.wait_for(&webhook).await?;
    let subject = Subject::of(kanat, webhook, Some(Arc::clone(target)));
    subject.into_delivery_rate(plan).await
}

async fn open(file: &Path, durability: Durability) -> Result<SqliteLog> {
    let options = Options {
        durability,
        ..Options::default()
    };
    let log = SqliteLog::open(file, options).await;
    log.context("cannot open the log")
}

/// Adds messages of a few hundred bytes that were delivered.
async fn fill(file: &Path, count: usize) -> Result<()> {
    let log = open(file, Durability::RelaxedMayLoseAckedMessages).await?;
    let owner = lease(&log, Duration::from_secs(3_600)).await?;
    let oldest = Timestamp::now().before(INTERVAL * u32::try_from(count)?);
    let messages = stream::iter((0..count).map(|n| {
        let at = oldest.after(INTERVAL * u32::try_from(n).unwrap_or(u32::MAX));
        deliver(&log, message(n, at, Placement::Leased(owner.clone())))
    }));
    messages
        .buffer_unordered(CONCURRENCY)
        .try_collect::<()>()
        .await?;
    log.hand_back(&owner).await?;
    log.close().await;
    Ok(())
}

async fn lease(log: &SqliteLog, length: Duration) -> Result<BootId> {
    let owner = BootId::generate();
    log.open_lease(&owner, &NodeId::new("bench"), length)
        .await?;
    Ok(owner)
}

async fn deliver(log: &SqliteLog, message: NewMessage) -> Result<()> {
    let at = message.received_at;
    let AppendOutcome::Leased(lease) = log.append(message).await? else {
        anyhow::bail!("a message was not leased")
    };
    settle(log, lease, at).await
}

async fn settle(log: &SqliteLog, lease: Lease, at: Timestamp) -> Result<()> {
    let settlement = Settlement {
        lease,
        at,
        attempt: 1,
        outcome: Outcome::Delivered,
        output: Some(Bytes::from_static(br#"{"order_id":"SO-10241"}"#)),
        failure: None,
        trace: Vec::new(),
    };
    let settled = log.settle(&settlement).await?;
    ensure!(
        settled == LeasedWriteOutcome::Done,
        "a message was taken away"
    );
    Ok(())
}

fn message(n: usize, received_at: Timestamp, place: Placement) -> NewMessage {
    let tenant = tenant();
    let body = r#"{"total":149.5,"currency":"EUR","customer":{"id":"C-204","country":"DE"}}"#;
    NewMessage {
        id: MessageId::generate(),
        account_id: tenant.account_id,
        environment_id: tenant.environment_id,
        flow_id: flow(n % FLOWS),
        flow_name: "bench-orders".to_owned(),
        flow_version: 1,
        trigger: Trigger::Webhook,
        raw_body: Bytes::from_static(body.as_bytes()),
        payload: None,
        request: Bytes::from_static(br#"{"method":"POST","headers":{},"query":{}}"#),
        received_at,
        ordering_key: None,
        dedupe_keys: Vec::new(),
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

/// Returns the milliseconds of a list, a scan and a claim of the flow that has the most messages.
async fn reads(file: &Path) -> Result<[f64; 3]> {
    let log = open(file, Durability::Full).await?;
    let owner = lease(&log, Duration::from_secs(60)).await?;
    let waiting_message = message(0, Timestamp::now(), Placement::Queued);
    log.append(waiting_message).await?;

    let page = Page {
        limit: 50,
        offset: 0,
    };
    let filter = Filter::flow(tenant(), flow(0));
    let begun = Instant::now();
    let listed = log.list(&filter, Position::Page(page)).await?;
    let list = millis(begun);
    ensure!(!listed.messages.is_empty(), "the list is empty");

    let begun = Instant::now();
    let flows = log.waiting().await?;
    let waiting = millis(begun);
    ensure!(flows.iter().any(|flow| flow.due > 0), "no message waits");

    let room = Room {
        flow_id: flow(0),
        messages: 10,
        without_versions: Vec::new(),
    };
    let claim = Claim {
        owner: owner.clone(),
        bytes: u64::MAX,
        budgets: vec![ClaimBudget::unbounded(vec![room])],
        awaited: Vec::new(),
    };
    let begun = Instant::now();
    let claimed = log.claim(claim).await?;
    let claim = millis(begun);
    let count = claimed.len();
    ensure!(count == 1, "{count} messages were claimed");
    for claimed in claimed {
        settle(&log, claimed.lease, Timestamp::now()).await?;
    }
    log.hand_back(&owner).await?;
    log.close().await;
    Ok([list, waiting, claim])
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1000.0
}

/// Size of the file with its write-ahead log.
fn size(file: &Path) -> Result<u64> {
    let ahead = std::fs::metadata(file.with_extension("db-wal")).map_or(0, |ahead| ahead.len());
    Ok(std::fs::metadata(file)?.len() + ahead)
}
