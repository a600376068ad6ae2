//! Webhooks on SQLite: how many, at what price, how soon, beside bare servers on the same disk.

use anyhow::Result;

use crate::bare::Mode;
use crate::figures::plain;
use crate::finding::{Finding, Goal, Report};
use crate::plan::Plan;
use crate::subject::{Run, Series, Subject};

/// Runs of all servers under all loads.
struct Runs {
    bare_answer: Series,
    bare_append: Series,
    bare_loop: Series,
    kanat: Series,
    bare_append_alone: Series,
    kanat_alone: Series,
    bare_loop_paced: Series,
    kanat_paced: Series,
}

pub async fn measure(plan: &Plan) -> Result<Report> {
    let mut runs = Runs::new(plan);
    for round in 1..=plan.rounds {
        eprintln!("webhooks, round {round} of {}", plan.rounds);
        runs.round(plan).await?;
    }
    Ok(Report {
        findings: runs.findings(plan),
        series: runs.into_series(),
    })
}

impl Runs {
    fn new(plan: &Plan) -> Self {
        let many = format!("{} connections", plan.sizes.connections);
        let one = "1 connection";
        let paced = format!("{}/s", plan.sizes.pace.per_second);
        Self {
            bare_answer: Series::new("bare hyper", many.clone()),
            bare_append: Series::new("bare append", many.clone()),
            bare_loop: Series::new("bare loop", many.clone()),
            kanat: Series::new("kanat", many),
            bare_append_alone: Series::new("bare append", one),
            kanat_alone: Series::new("kanat", one),
            bare_loop_paced: Series::new("bare loop", paced.clone()),
            kanat_paced: Series::new("kanat", paced),
        }
    }

    async fn round(&mut self, plan: &Plan) -> Result<()> {
        let many = plan.sizes.connections;
        let length = plan.length;
        let pace = plan.sizes.pace;
        let folder = plan.scratch()?;

        let answer = Subject::bare(Mode::Answer, folder.path()).await?;
        self.bare_answer
            .runs
            .push(answer.closed(many, length).await?);
        answer.stop().await?;
        let whole = Subject::bare(Mode::Loop, folder.path()).await?;
        self.bare_loop.runs.push(whole.closed(many, length).await?);
        self.bare_loop_paced.runs.push(whole.open(pace).await?);
        whole.stop().await?;
        let append = Subject::bare(Mode::Append, folder.path()).await?;
        self.bare_append
            .runs
            .push(append.closed(many, length).await?);
        self.bare_append_alone
            .runs
            .push(append.closed(1, length).await?);
        append.stop().await?;

        let kanat = Subject::kanat(&plan.start(folder.path()), None).await?;
        self.kanat.runs.push(kanat.closed(many, length).await?);
        self.kanat_paced.runs.push(kanat.open(pace).await?);
        self.kanat_alone.runs.push(kanat.closed(1, length).await?);
        kanat.stop().await
    }

    fn into_series(self) -> Vec<Series> {
        vec![
            self.bare_answer,
            self.bare_append,
            self.bare_loop,
            self.kanat,
            self.bare_append_alone,
            self.kanat_alone,
            self.bare_loop_paced,
            self.kanat_paced,
        ]
    }

    fn findings(&self, plan: &Plan) -> Vec<Finding> {
        let connections = plan.sizes.connections;
        let per_second = plan.sizes.pace.per_second;
        let rate = Ratio::of(&self.kanat, &self.bare_loop, |run| run.delivered_per_second);
        let cpu = Ratio::of(&self.kanat, &self.bare_loop, |run| run.cpu_us);
        let ack = Ratio::of(&self.kanat_alone, &self.bare_append_alone, |run| {
            run.ack_ms[0]
        });
        let paced_p99 = Ratio::of(&self.kanat_paced, &self.bare_loop_paced, |run| {
            run.delivery_ms[1]
        });
        let paced_p50 = Ratio::of(&self.kanat_paced, &self.bare_loop_paced, |run| {
            run.delivery_ms[0]
        });
        let commits = self.kanat.median(|run| run.commits_per_message);
        let bare_memory = plain(self.bare_loop.median(|run| run.peak_memory_mib));
        vec![
            Finding::new(
                "P1",
                format!("orders delivered a second, {connections} connections, of the bare loop's"),
                Goal::AtLeast(0.5),
                rate.value(),
                format!("delivered: {}; {}", rate.describe("/s"), self.doubles()),
            ),
            Finding::new(
                "P2",
                "CPU an order, storage included, of the bare loop's",
                Goal::AtMost(2.5),
                cpu.value(),
                format!("CPU: {}", cpu.describe("us")),
            ),
            Finding::new(
                "P3",
                "one connection, durable answer, median, of the bare append's",
                Goal::AtMost(2.0),
                ack.value(),
                format!("answer: {}", ack.describe("ms")),
            ),
            Finding::new(
                "P3",
                format!("{per_second}/s open loop, end to end, 99 %, of the bare loop's"),
                Goal::AtMost(2.0),
                paced_p99.value(),
                format!(
                    "end to end, 99 %: {}; median: {}",
                    paced_p99.describe("ms"),
                    paced_p50.describe("ms")
                ),
            ),
            Finding::new(
                "P6",
                format!("memory under {connections} connections, at its peak"),
                Goal::AtMost(60.0),
                self.kanat.median(|run| run.peak_memory_mib),
                format!("bare {bare_memory} MiB"),
            )
            .in_units("MiB"),
            Finding::new(
                "P8",
                format!(
                    "commits of the log an acked order, {connections} connections, each synced once"
                ),
                Goal::AtMost(0.1),
                commits,
                format!("{} orders a commit", plain(1.0 / commits)),
            ),
        ]
    }

    fn doubles(&self) -> String {
        let series = [&self.kanat, &self.kanat_alone, &self.kanat_paced];
        let runs = series.iter().flat_map(|series| &series.runs);
        match runs.map(|run| run.doubles).sum::<u64>() {
            0 => "each arrived once".to_owned(),
            doubles => format!("{doubles} arrived twice"),
        }
    }
}

/// One figure of Kanat and of a bare server.
struct Ratio {
    kanat: f64,
    bare: f64,
}

impl Ratio {
    fn of(kanat: &Series, bare: &Series, figure: fn(&Run) -> f64) -> Self {
        Self {
            kanat: kanat.median(figure),
            bare: bare.median(figure),
        }
    }

    fn value(&self) -> f64 {
        self.kanat / self.bare
    }

    fn describe(&self, unit: &str) -> String {
        let kanat = plain(self.kanat);
        let bare = plain(self.bare);
        format!("kanat {kanat} {unit}, bare {bare} {unit}")
    }
}
