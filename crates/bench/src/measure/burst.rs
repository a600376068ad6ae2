//! A burst of webhooks: how many are acked a second, and whether any is lost when the process is
//! killed in the middle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::bare::Mode;
use crate::figures::{median, plain};
use crate::finding::{Finding, Goal};
use crate::kanat::Start;
use crate::load::{self, Outcome, Until};
use crate::plan::Plan;
use crate::subject::Subject;

/// Orders of both bursts around a kill.
struct Kill {
    acked: u64,
    lost: u64,
    doubles: u64,
    /// Milliseconds from the new start to the last arrival.
    recovery_ms: f64,
}

pub async fn measure(plan: &Plan) -> Result<Vec<Finding>> {
    let mut bare = Vec::new();
    let mut ours = Vec::new();
    let mut kills = Vec::new();
    for round in 1..=plan.rounds {
        eprintln!("bursts, round {round} of {}", plan.rounds);
        let folder = plan.scratch()?;
        let append = Subject::bare(Mode::Append, folder.path()).await?;
        bare.push(burst(&append, plan).await?.per_second());
        append.stop().await?;
        let start = plan.start(folder.path());
        let kanat = Subject::kanat(&start, None).await?;
        let outcome = burst(&kanat, plan).await?;
        ours.push(outcome.per_second());
        kills.push(kill(kanat, &start, plan, &outcome).await?);
    }
    let ours = median(ours);
    let bare = median(bare);
    let sum = |count: fn(&Kill) -> u64| kills.iter().map(count).sum::<u64>();
    let burst = plan.sizes.burst;
    Ok(vec![
        Finding::new(
            "P4",
            format!("a burst of {burst} webhooks, acked a second, of the bare append's"),
            Goal::AtLeast(0.5),
            ours / bare,
            format!("acked: kanat {} /s, bare {} /s", plain(ours), plain(bare)),
        ),
        Finding::new(
            "P4",
            "orders lost at a kill -9 in the middle of a burst",
            Goal::AtMost(0.0),
            sum(|kill| kill.lost) as f64,
            format!(
                "{} acked before {} kills, {} arrived twice, the last {} ms after the start",
                plain(sum(|kill| kill.acked) as f64),
                kills.len(),
                sum(|kill| kill.doubles),
                plain(median(kills.iter().map(|kill| kill.recovery_ms)))
            ),
        ),
    ])
}

async fn burst(subject: &Subject, plan: &Plan) -> Result<Outcome> {
    let until = Until::Count(plan.sizes.burst, Arc::default());
    let address = subject.server().address;
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
    let address = subject.server().address;
    let call = subject.call.clone();
    let connections = plan.sizes.connections;
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { load::closed(address, &call, connections, until).await });
    while answered.load(Ordering::Relaxed) < plan.sizes.burst / 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    subject.kill().await?;
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
    let recovery = deliveries.last.map_or(Duration::ZERO, |last| {
        last.saturating_duration_since(restart)
    });
    Ok(Kill {
        acked: acked.len() as u64,
        lost: deliveries.lost,
        doubles: deliveries.doubles,
        recovery_ms: recovery.as_secs_f64() * 1000.0,
    })
}
