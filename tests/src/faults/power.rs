//! A loss of power of a service of one process. What it did under load is recorded; then images of
//! what the disk may hold at some moments are made, and the service is started on each.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::tally::Tally;
use super::workload::{Ack, Mix, Workload};
use super::{Outcome, Run};
use crate::TestApp;
use crate::power_loss::{Disk, Failure, Recorder, Trace, Writeback};
use crate::random::Random;
use crate::wait::DEADLINE;

/// How long one recording goes on.
const MIN_RECORDING: Duration = Duration::from_millis(500);
const MAX_RECORDING: Duration = Duration::from_millis(3_000);
/// How long calls are waited for that have to fail.
const MAX_FAILURE: Duration = Duration::from_secs(1);
/// Images of one recording.
const CUTS: usize = 8;
/// One image of so many is cut again while the service starts on it.
const SECOND_CUT: usize = 3;
/// How long a start may go on until it is cut.
const MAX_START: Duration = Duration::from_millis(500);

const JOURNAL: &str = "messages.db-intake";

/// Calls that fail, for [`Kind::Eio`].
const FAILURES: [(&str, &str); 7] = [
    ("sync", JOURNAL),
    ("write", JOURNAL),
    ("sync", "messages.db-wal"),
    ("write", "messages.db-wal"),
    ("sync", "messages.db"),
    ("sync", "config.db-wal"),
    ("write", "config.db-wal"),
];

/// Further fault of the disk at the loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// No sync of the journal reaches it.
    Control,
    /// Some writes and syncs fail.
    Eio,
}

struct Machine {
    app: TestApp,
    workload: Workload,
    kind: Kind,
    random: Random,
    /// The files of the service before each recording.
    base: PathBuf,
}

pub(super) async fn run(run: Run, kind: Kind) -> Result<Outcome> {
    let mut machine = Machine::prepare(&run, kind).await?;
    let mut tally = Tally::default();
    let begun = Instant::now();
    while begun.elapsed() < run.extent.time
        || !machine.has_shown(&tally) && begun.elapsed() < DEADLINE
    {
        machine
            .lose_power(begun + run.extent.time, &mut tally)
            .await?;
        if machine.has_failed(&tally) {
            break;
        }
    }
    Ok(Outcome::Ran(tally))
}

impl Machine {
    /// Makes a service with its flows, and stops it.
    async fn prepare(run: &Run, kind: Kind) -> Result<Self> {
        let mut workload = Workload::start().await;
        let mut app = TestApp::start_in(&run.folder, &[]).await;
        workload.deploy(&app.api, &app.base).await;
        ensure!(
            app.terminate().await == Some(0),
            "the service does not stop"
        );
        let base = run.folder.join("base");
        fs::rename(app.data_dir(), &base)?;
        Ok(Self {
            app,
            workload,
            kind,
            random: run.random.clone(),
            base,
        })
    }

    /// Records once, then starts on images until `end`, on one at least.
    async fn lose_power(&mut self, end: Instant, tally: &mut Tally) -> Result<()> {
        self.workload.forget();
        fresh(&self.app.data_dir())?;
        Disk::read(&self.base)?.write_image(&Writeback::nothing(), &self.app.data_dir())?;
        let ignored_sync = (self.kind == Kind::Control).then_some(JOURNAL);
        let recorder = Recorder::new(&self.app.data_dir(), "load", ignored_sync)?;
        let acks = self.record(&recorder, tally).await?;
        let trace = Trace::read(recorder.trace())?;
        let recorded = self.workload.arrived();
        for _ in 0..CUTS {
            let cut = self.random.below(trace.records.len());
            self.start_after(&trace, cut, &acks, recorded, tally)
                .await?;
            tally.rounds += 1;
            if Instant::now() >= end || self.has_failed(tally) {
                break;
            }
        }
        Ok(())
    }

    /// Returns whether the tally can be judged: an instant before the first ack shows nothing.
    fn has_shown(&self, tally: &Tally) -> bool {
        tally.acked > 0 && (self.kind != Kind::Control || !tally.lost.is_empty())
    }

    /// Returns whether a message is lost or given up; the files are then kept.
    fn has_failed(&self, tally: &Tally) -> bool {
        self.kind != Kind::Control && !(tally.lost.is_empty() && tally.given_up.is_empty())
    }

    /// Records a service under load until it is stopped or killed. Returns what it acked, with the
    /// length of the trace at that time.
    async fn record(&mut self, recorder: &Recorder, tally: &mut Tally) -> Result<Vec<Ack>> {
        let environment = recorder.environment();
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.app.restart_with(&environment).await;
        let trace = fs::File::open(recorder.trace())?;
        let clock = move || trace.metadata().map_or(u64::MAX, |metadata| metadata.len());
        let addresses = [self.app.base.clone()];
        let is_plain = self.kind == Kind::Control || self.random.below(2) == 0;
        let mix = if is_plain { Mix::Plain } else { Mix::Every };
        let senders = self.workload.send(&self.app.api, &addresses, mix, clock);
        senders.acked_after(Instant::now(), &addresses).await?;
        tokio::time::sleep(self.random.pause(MIN_RECORDING, MAX_RECORDING)).await;
        if self.kind == Kind::Eio {
            let (operation, file) = *self.random.choose(&FAILURES);
            let count = 1 + self.random.below(4);
            recorder.fail(Failure {
                operation,
                file,
                count,
            })?;
            let asked = Instant::now();
            while recorder.failed()? < u32::try_from(count)? && asked.elapsed() < MAX_FAILURE {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            eprintln!(
                "  {operation} of {file}: {} of {count} calls failed",
                recorder.failed()?
            );
            let ended = Instant::now();
            senders.acked_after(ended, &addresses).await?;
            tally.recovery.push(ended.elapsed());
            tokio::time::sleep(self.random.pause(MIN_RECORDING, MAX_RECORDING)).await;
        }
        // A record that was not written because of the kill is of a change that was made.
        if self.random.below(2) == 0 {
            self.app.kill().await;
        } else {
            ensure!(
                self.app.terminate().await == Some(0),
                "the service does not stop"
            );
            self.is_complete(recorder)?;
        }
        senders.abort()
    }

    /// Errors when the files are not as the trace says.
    fn is_complete(&self, recorder: &Recorder) -> Result<()> {
        let mut disk = Disk::read(&self.base)?;
        let trace = Trace::read(recorder.trace())?;
        trace
            .records
            .iter()
            .try_for_each(|record| disk.follow(record))?;
        disk.is_like(&self.app.data_dir())
            .context("the recorder has missed something")
    }

    /// Starts on an image of the disk after this record, and counts what is there of what was acked
    /// until then.
    async fn start_after(
        &mut self,
        trace: &Trace,
        cut: usize,
        acks: &[Ack],
        recorded: usize,
        tally: &mut Tally,
    ) -> Result<()> {
        let mut disk = Disk::read(&self.base)?;
        trace.records[..=cut]
            .iter()
            .try_for_each(|record| disk.follow(record))?;
        let end = trace.records[cut].end;
        let seed = self.random.number();
        eprintln!("  cut at {end}, image {seed}");
        let folder = self.app.data_dir();
        fresh(&folder)?;
        disk.write_image(&Writeback::random(seed), &folder)?;
        if self.random.below(SECOND_CUT) == 0 {
            self.cut_again().await?;
        }
        let arrived = self.workload.arrived();
        let begun = Instant::now();
        self.app.restart_with(&[]).await;
        if self.kind != Kind::Eio {
            tally.recovery.push(begun.elapsed());
        }
        let messages = self.workload.ended(&self.app.api).await;
        let acked: Vec<_> = acks.iter().filter(|ack| ack.at <= end).cloned().collect();
        let all = self.workload.arrivals(0);
        let delivered: HashSet<_> = all.iter().map(|arrival| arrival.id.clone()).collect();
        tally.count(&acked, &messages, &all[arrived.max(recorded)..], &delivered);
        self.app.kill().await;
        Ok(())
    }

    /// Starts on the image and loses power meanwhile; another image is in its place then.
    async fn cut_again(&mut self) -> Result<()> {
        let folder = self.app.data_dir();
        let first = folder.with_extension("first");
        fresh(&first)?;
        let disk = Disk::read(&folder)?;
        disk.write_image(&Writeback::nothing(), &first)?;
        let recorder = Recorder::new(&folder, "start", None)?;
        let environment = recorder.environment();
        let environment: Vec<_> = environment
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.app.restart_with(&environment).await;
        tokio::time::sleep(self.random.pause(Duration::ZERO, MAX_START)).await;
        self.app.kill().await;
        let trace = Trace::read(recorder.trace())?;
        let mut disk = Disk::read(&first)?;
        let cut = self.random.below(trace.records.len());
        trace.records[..=cut]
            .iter()
            .try_for_each(|record| disk.follow(record))?;
        let seed = self.random.number();
        eprintln!(
            "  cut again at record {cut} of {}, image {seed}",
            trace.records.len()
        );
        fresh(&folder)?;
        disk.write_image(&Writeback::random(seed), &folder)
    }
}

/// Leaves no folder there.
fn fresh(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    Ok(())
}
