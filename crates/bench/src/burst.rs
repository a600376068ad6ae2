//! P4: a burst of webhooks: how many are acked a second, and whether any is lost when the process
//! is killed in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;

use crate::bare::Mode;
use crate::figures::{median, plain};
use crate::kanat::Start;
use crate::load::{self, Outcome, Until};
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Ratio, Report};
use crate::subject::Subject;

/// Orders of both bursts around a kill.
struct Kill {
    acked: u64,
    lost: u64,
    doubles: u64,
    /// Milliseconds from the new start to the last arrival.
    recovery_ms: f64,
}

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let mut bare = Vec::new();
    let mut kanat = Vec::new();
    let mut kills = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("bursts, round {round} of {}", plan.rounds);
        let folder = plan.scratch()?;
        let append = Subject::bare(Mode::Append, folder.path()).await?;
        bare.push(burst(&append, plan).await?.per_second());
        append.server.stop().await?;
        let start = plan.start(folder.path());
        let subject = Subject::kanat(&start).await?;
        let outcome = burst(&subject, plan).await?;
        kanat.push(outcome.per_second());
        kills.push(kill(subject, &start, plan, &outcome).await?);
    }
    let rate = Ratio {
        kanat: median(kanat),
        bare: median(bare),
    };
    report.add(Finding::new(
        Measure::P4,
        format!(
            "a burst of {} webhooks, acked a second, of the bare append's",
            plan.sizes.burst
        ),
        Goal::AtLeast(0.5),
        rate.value(),
        "",
        format!("acked: {}", rate.describe("/s")),
    ));
    let sum = |count: fn(&Kill) -> u64| kills.iter().map(count).sum::<u64>();
    report.add(Finding::new(
        Measure::P4,
        "orders lost at a kill -9 in the middle of a burst",
        Goal::AtMost(0.0),
        sum(|kill| kill.lost) as f64,
        "",
        format!(
            "{} acked before {} kills, {} arrived twice, the last {} ms after the start",
            plain(sum(|kill| kill.acked) as f64),
            kills.len(),
            sum(|kill| kill.doubles),
            plain(median(kills.iter().map(|kill| kill.recovery_ms)))
        ),
    ));
    Ok(())
}

async fn burst(subject: &Subject, plan: &Plan) -> Result<Outcome> {
    let until = Until::Count(plan.sizes.burst, Arc::default());
    let address = subject.server.address;
    load::closed(address, &subject.call, plan.sizes.connections, until).await
}

/// Sends another burst and kills the process when half of it was acked; then every order of both
/// bursts has to arrive.
async fn kill(
    mut subject: Subject,
    start: &Start<'_>,
    plan: &Plan,
    first: &Outcome,
) -> Result<Kill> {
    let answered = Arc::new(AtomicU64::new(0));
    let until = Until::Count(u64::MAX, Arc::clone(&answered));
    let address = subject.server.address;
    let call = subject.call.clone();
    let connections = plan.sizes.connections;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { load::closed(address, &call, connections, until).await });
    while answered.load(Ordering::Relaxed) < plan.sizes.burst / 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    subject.server.kill().await?;
    let second = tasks
        .join_next()
        .await
        .context("the load has no task")???;
    let restart = Instant::now();
    let kanat = start.run().await?;
    let acked: Vec<_> = first.acked.iter().chain(&second.acked).copied().collect();
    let target = subject.target.context("kanat has a target")?;
    let deliveries = target.collect(&acked).await;
    kanat.server.stop().await?;
    let last = deliveries.last.unwrap_or(restart);
    Ok(Kill {
        acked: acked.len() as u64,
        lost: deliveries.lost,
        doubles: deliveries.doubles,
        recovery_ms: last.saturating_duration_since(restart).as_secs_f64() * 1000.0,
    })
}
