//! Webhooks on SQLite: how many, at what price, how soon, beside bare servers on the same disk.

use anyhow::Result;

use crate::bare::Work;
use crate::figures::{median, plain};
use crate::finding::{Finding, Found, Goal, Row};
use crate::kanat::Start;
use crate::plan::Plan;
use crate::subject::{Run, Subject};

/// The runs of all rounds.
#[derive(Default)]
struct Runs {
    bare_answer: Vec<Run>,
    bare_append: Vec<Run>,
    bare: Vec<Run>,
    ours: Vec<Run>,
    bare_alone: Vec<Run>,
    ours_alone: Vec<Run>,
    bare_paced: Vec<Run>,
    ours_paced: Vec<Run>,
}

pub async fn measure(plan: &Plan) -> Result<Found> {
    let mut runs = Runs::default();
    for round in 1..=plan.rounds {
        eprintln!("webhooks, round {round} of {}", plan.rounds);
        runs.round(plan).await?;
    }
    Ok(Found {
        findings: runs.findings(plan),
        runs: runs.rows(plan),
    })
}

impl Runs {
    async fn round(&mut self, plan: &Plan) -> Result<()> {
        let many = plan.sizes.connections;
        let length = plan.length;
        let pace = plan.sizes.pace;
        let folder = plan.scratch()?;
        let start = Start {
            binary: &plan.kanat,
            folder: folder.path(),
            database: None,
        };

        let answer = Subject::bare(Work::Answer, folder.path()).await?;
        self.bare_answer.push(answer.closed(many, length).await?);
        answer.stop().await?;
        let bare = Subject::bare(Work::Loop, folder.path()).await?;
        self.bare.push(bare.closed(many, length).await?);
        self.bare_paced.push(bare.open(pace).await?);
        bare.stop().await?;
        let append = Subject::bare(Work::Append, folder.path()).await?;
        self.bare_append.push(append.closed(many, length).await?);
        self.bare_alone.push(append.closed(1, length).await?);
        append.stop().await?;

        let ours = Subject::kanat(&start, None).await?;
        self.ours.push(ours.closed(many, length).await?);
        self.ours_paced.push(ours.open(pace).await?);
        self.ours_alone.push(ours.closed(1, length).await?);
        ours.stop().await?;
        Ok(())
    }

    fn rows(&self, plan: &Plan) -> Vec<Row> {
        let many = format!("{} connections", plan.sizes.connections);
        let one = "1 connection".to_owned();
        let paced = format!("{}/s", plan.sizes.pace.per_second);
        let rows = [
            ("bare hyper", many.clone(), &self.bare_answer),
            ("bare append", many.clone(), &self.bare_append),
            ("bare loop", many.clone(), &self.bare),
            ("kanat", many, &self.ours),
            ("bare append", one.clone(), &self.bare_alone),
            ("kanat", one, &self.ours_alone),
            ("bare loop", paced.clone(), &self.bare_paced),
            ("kanat", paced, &self.ours_paced),
        ];
        rows.map(|(server, load, runs)| row(server, load, runs))
            .into()
    }

    fn findings(&self, plan: &Plan) -> Vec<Finding> {
        let many = plan.sizes.connections;
        let per_second = plan.sizes.pace.per_second;
        let doubles: u64 = self
            .ours
            .iter()
            .chain(&self.ours_alone)
            .chain(&self.ours_paced)
            .map(|run| run.doubles)
            .sum();
        let rate = |runs: &[Run]| of(runs, |run| run.delivered_per_second);
        let cpu = |runs: &[Run]| of(runs, |run| run.cpu_us);
        let ack = |runs: &[Run]| of(runs, |run| run.ack_p50_ms);
        let p99 = |runs: &[Run]| of(runs, |run| run.end_to_end_p99_ms);
        let beside = |what: &str, ours: f64, bare: f64, unit: &str| {
            format!(
                "{what}: kanat {} {unit}, bare {} {unit}",
                plain(ours),
                plain(bare)
            )
        };
        let doubled = match doubles {
            0 => "each arrived once".to_owned(),
            doubles => format!("{doubles} arrived twice"),
        };
        vec![
            Finding::new(
                "P1",
                format!("orders delivered a second, {many} connections, of the bare loop's"),
                Goal::AtLeast(0.5),
                rate(&self.ours) / rate(&self.bare),
                format!(
                    "{}; {doubled}",
                    beside("delivered", rate(&self.ours), rate(&self.bare), "/s")
                ),
            ),
            Finding::new(
                "P2",
                "CPU an order, storage included, of the bare loop's",
                Goal::AtMost(2.5),
                cpu(&self.ours) / cpu(&self.bare),
                beside("CPU", cpu(&self.ours), cpu(&self.bare), "us"),
            ),
            Finding::new(
                "P3",
                "one connection, durable answer, median, of the bare append's",
                Goal::AtMost(2.0),
                ack(&self.ours_alone) / ack(&self.bare_alone),
                beside("answer", ack(&self.ours_alone), ack(&self.bare_alone), "ms"),
            ),
            Finding::new(
                "P3",
                format!("{per_second}/s open loop, end to end, 99 %, of the bare loop's"),
                Goal::AtMost(2.0),
                p99(&self.ours_paced) / p99(&self.bare_paced),
                beside(
                    "end to end, 99 %",
                    p99(&self.ours_paced),
                    p99(&self.bare_paced),
                    "ms",
                ) + &format!(
                    "; median {} and {} ms",
                    plain(of(&self.ours_paced, |run| run.end_to_end_p50_ms)),
                    plain(of(&self.bare_paced, |run| run.end_to_end_p50_ms))
                ),
            ),
            Finding::new(
                "P6",
                format!("memory under {many} connections, at its peak"),
                Goal::AtMost(60.0),
                of(&self.ours, |run| run.peak_memory_mib),
                format!(
                    "bare {} MiB",
                    plain(of(&self.bare, |run| run.peak_memory_mib))
                ),
            )
            .in_units("MiB"),
            Finding::new(
                "P8",
                format!("commits of the log an acked order, {many} connections, each synced once"),
                Goal::AtMost(0.1),
                of(&self.ours, |run| run.commits_per_message),
                format!(
                    "{} orders a commit",
                    plain(1.0 / of(&self.ours, |run| run.commits_per_message))
                ),
            ),
        ]
    }
}

fn row(server: &'static str, load: String, runs: &[Run]) -> Row {
    Row {
        server,
        load,
        acked_per_second: of(runs, |run| run.acked_per_second),
        delivered_per_second: of(runs, |run| run.delivered_per_second),
        ack_ms: [
            of(runs, |run| run.ack_p50_ms),
            of(runs, |run| run.ack_p99_ms),
        ],
        delivery_ms: [
            of(runs, |run| run.end_to_end_p50_ms),
            of(runs, |run| run.end_to_end_p99_ms),
        ],
        cpu_seconds_per_10_000: of(runs, |run| run.cpu_us) / 100.0,
        peak_memory_mib: of(runs, |run| run.peak_memory_mib),
        messages_per_commit: 1.0 / of(runs, |run| run.commits_per_message),
    }
}

fn of(runs: &[Run], figure: impl Fn(&Run) -> f64) -> f64 {
    median(runs.iter().map(figure))
}
