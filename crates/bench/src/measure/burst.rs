//! A burst of webhooks: how many are acked a second; and that nothing is lost when the process is
//! killed in its middle.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bare::Work;
use crate::figures::{median, plain};
use crate::finding::{Finding, Goal};
use crate::kanat::Start;
use crate::load::{self, Call, Outcome, Until};
use crate::plan::Plan;
use crate::subject::Subject;

/// What became of those that were acked before the kill.
struct Killed {
    acked: u64,
    lost: u64,
    doubles: u64,
    /// From the new start to the last arrival.
    recovery: Duration,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let mut bare = Vec::new();
    let mut ours = Vec::new();
    let mut killed = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("bursts, round {round} of {}", plan.rounds);
        let folder = plan.scratch()?;
        let append = Subject::bare(Work::Append, folder.path()).await?;
        bare.push(burst(&append, plan).await?.per_second());
        append.stop().await?;
        let start = Start {
            binary: &plan.kanat,
            folder: folder.path(),
            database: None,
        };
        let kanat = Subject::kanat(&start, None).await?;
        let outcome = burst(&kanat, plan).await?;
        ours.push(outcome.per_second());
        killed.push(kill(kanat, &start, plan, &outcome).await?);
    }
    let ours = median(ours);
    let bare = median(bare);
    let sum = |count: fn(&Killed) -> u64| killed.iter().map(count).sum::<u64>();
    Ok(vec![
        Finding::new(
            "P4",
            format!(
                "a burst of {} webhooks, acked a second, of the bare append's",
                plan.sizes.burst
            ),
            Goal::AtLeast(0.5),
            ours / bare,
            format!("acked: kanat {} /s, bare {} /s", plain(ours), plain(bare)),
        ),
        Finding::new(
            "P4",
            "orders lost at a kill -9 in the middle of a burst",
            Goal::AtMost(0.0),
            sum(|killed| killed.lost) as f64,
            format!(
                "{} acked before {} kills, {} arrived twice, the last {} ms after the start",
                plain(sum(|killed| killed.acked) as f64),
                killed.len(),
                sum(|killed| killed.doubles),
                plain(median(
                    killed
                        .iter()
                        .map(|killed| killed.recovery.as_secs_f64() * 1000.0)
                ))
            ),
        ),
    ])
}

async fn burst(subject: &Subject, plan: &Plan) -> Result<Outcome> {
    let until = Until::Count(plan.sizes.burst, Arc::default());
    let call = Call::webhook(&subject.path);
    load::until(
        subject.address(),
        &call,
        plan.sizes.connections,
        until,
        subject.target.start,
    )
    .await
}

/// Another burst, killed when half of it was acked; then all of both bursts has to arrive.
async fn kill(kanat: Subject, start: &Start<'_>, plan: &Plan, first: &Outcome) -> Result<Killed> {
    let answered = Arc::new(AtomicU64::new(0));
    let until = Until::Count(u64::MAX, Arc::clone(&answered));
    let address = kanat.address();
    let call = Call::webhook(&kanat.path);
    let begun = kanat.target.start;
    let mut tasks = tokio::task::JoinSet::new();
    let connections = plan.sizes.connections;
    tasks.spawn(async move { load::until(address, &call, connections, until, begun).await });
    while answered.load(std::sync::atomic::Ordering::Relaxed) < plan.sizes.burst / 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let target = kanat.kill().await?;
    let second = tasks
        .join_next()
        .await
        .context("the load has no task")???;
    let again = Instant::now();
    let kanat = start.run().await?;
    let acked: Vec<_> = first.acked.iter().chain(&second.acked).copied().collect();
    let arrived = target.collect(&acked).await;
    kanat.server.stop().await?;
    Ok(Killed {
        acked: acked.len() as u64,
        lost: arrived.lost,
        doubles: arrived.doubles,
        recovery: arrived
            .last
            .map_or(Duration::ZERO, |last| last.saturating_duration_since(again)),
    })
}
