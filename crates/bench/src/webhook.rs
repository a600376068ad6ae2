//! P1, P2, P3, P8 and the memory of P6: webhooks on SQLite, how many, at what price, how soon,
//! beside bare servers on the same disk.

use anyhow::Result;

use crate::bare::Mode;
use crate::figures::{median, plain};
use crate::plan::Plan;
use crate::report::{Finding, Goal, Measure, Ratio, Report};
use crate::subject::{Run, Subject};

/// Runs of all servers under all loads, one a round.
#[derive(Default)]
struct Runs {
    bare_loop: Vec<Run>,
    kanat: Vec<Run>,
    bare_append_alone: Vec<Run>,
    kanat_alone: Vec<Run>,
    bare_loop_paced: Vec<Run>,
    kanat_paced: Vec<Run>,
}

pub async fn measure(plan: &Plan, report: &mut Report) -> Result<()> {
    let mut runs = Runs::default();
    for round in 1..=plan.rounds {
        eprintln!("webhooks, round {round} of {}", plan.rounds);
        runs.round(plan).await?;
    }
    runs.compare(plan, report);
    Ok(())
}

impl Runs {
    async fn round(&mut self, plan: &Plan) -> Result<()> {
        let many = plan.sizes.connections;
        let length = plan.length;
        let pace = plan.sizes.pace;
        let folder = plan.scratch()?;

        let server = Subject::bare(Mode::Loop, folder.path()).await?;
        self.bare_loop.push(server.closed(many, length).await?);
        self.bare_loop_paced.push(server.open(pace).await?);
        server.server.stop().await?;
        let server = Subject::bare(Mode::Append, folder.path()).await?;
        self.bare_append_alone.push(server.closed(1, length).await?);
        server.server.stop().await?;
        let server = Subject::kanat(&plan.start(folder.path())).await?;
        self.kanat.push(server.closed(many, length).await?);
        self.kanat_paced.push(server.open(pace).await?);
        self.kanat_alone.push(server.closed(1, length).await?);
        server.server.stop().await
    }

    fn compare(&self, plan: &Plan, report: &mut Report) {
        let connections = plan.sizes.connections;
        let per_second = plan.sizes.pace.per_second;
        let rate = Ratio::of(&self.kanat, &self.bare_loop, |run| run.per_second);
        report.add(Finding::new(
            Measure::P1,
            format!("orders delivered a second, {connections} connections, of the bare loop's"),
            Goal::AtLeast(0.5),
            rate.value(),
            "",
            format!("delivered: {}; {}", rate.describe("/s"), self.doubles()),
        ));
        let cpu = Ratio::of(&self.kanat, &self.bare_loop, |run| run.cpu_us);
        report.add(Finding::new(
            Measure::P2,
            "CPU an order, storage included, of the bare loop's",
            Goal::AtMost(2.5),
            cpu.value(),
            "",
            format!("CPU: {}", cpu.describe("us")),
        ));
        let ack = Ratio::of(&self.kanat_alone, &self.bare_append_alone, |run| run.ack_ms);
        report.add(Finding::new(
            Measure::P3,
            "one connection, durable answer, median, of the bare append's",
            Goal::AtMost(2.0),
            ack.value(),
            "",
            format!("answer: {}", ack.describe("ms")),
        ));
        let p50 = Ratio::of(&self.kanat_paced, &self.bare_loop_paced, |run| {
            run.delivery_ms[0]
        });
        let p99 = Ratio::of(&self.kanat_paced, &self.bare_loop_paced, |run| {
            run.delivery_ms[1]
        });
        report.add(Finding::new(
            Measure::P3,
            format!("{per_second}/s open loop, end to end, 99 %, of the bare loop's"),
            Goal::AtMost(2.0),
            p99.value(),
            "",
            format!(
                "end to end, 99 %: {}; median: {}",
                p99.describe("ms"),
                p50.describe("ms")
            ),
        ));
        let memory = Ratio::of(&self.kanat, &self.bare_loop, |run| run.peak_memory_mib);
        report.add(Finding::new(
            Measure::P6,
            format!("memory under {connections} connections, at its peak"),
            Goal::AtMost(60.0),
            memory.kanat,
            "MiB",
            format!("bare {} MiB", plain(memory.bare)),
        ));
        let commits = median(self.kanat.iter().map(|run| run.commits_per_message));
        report.add(Finding::new(
            Measure::P8,
            format!(
                "commits of the log an acked order, {connections} connections, each synced once"
            ),
            Goal::AtMost(0.1),
            commits,
            "",
            format!("{} orders a commit", plain(1.0 / commits)),
        ));
    }

    fn doubles(&self) -> String {
        let series = [&self.kanat, &self.kanat_alone, &self.kanat_paced];
        let runs = series.into_iter().flatten();
        match runs.map(|run| run.doubles).sum::<u64>() {
            0 => "each arrived once".to_owned(),
            doubles => format!("{doubles} arrived twice"),
        }
    }
}
