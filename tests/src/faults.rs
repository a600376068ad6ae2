//! Faults that are caused again and again while messages come in, and the table of what became of
//! the messages. `cargo xtask soak --faults` runs this for minutes, and
//! `tests/it/planes/faults/power_loss.rs` the losses of power for seconds.

mod disk_full;
mod kill;
mod live;
mod power;
mod split;
mod tally;
mod workload;

use std::any::Any;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tempfile::TempDir;
use tokio::task::JoinSet;

pub use self::tally::{Row, Tally, table};
use crate::random::Random;

/// Kind of fault that a run causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL of a service of one process.
    Kill,
    /// A loss of power of such a service.
    Power,
    /// A loss of power of a disk that forgets the journal of the message log. It has to lose
    /// something: the check can fail.
    PowerControl,
    /// A loss of power after writes and syncs that failed.
    PowerEio,
    /// A disk without room under such a service.
    DiskFull,
    /// SIGKILL of one of three nodes, for longer than its lease at times.
    NodeKill,
    /// SIGKILL of one of two control planes.
    ControlKill,
    /// SIGSTOP of a node until its lease has ended.
    NodeStop,
    /// A stop of PostgreSQL as after a crash.
    DatabaseImmediate,
    /// SIGKILL of all processes of PostgreSQL.
    DatabaseKill,
    /// The end of all connections to PostgreSQL.
    Connections,
}

/// How a fault is caused.
#[derive(Debug, Clone, Copy)]
pub struct Extent {
    pub time: Duration,
    pub seed: u64,
}

/// State of a run.
struct Run {
    extent: Extent,
    random: Random,
    /// For all its files. It is kept when the run fails.
    folder: PathBuf,
}

/// How a run ended that found nothing wrong with the service.
enum Outcome {
    Ran(Tally),
    /// The machine does not allow it, for this reason.
    Skipped(String),
}

impl Fault {
    pub const ALL: [Self; 11] = [
        Self::Kill,
        Self::Power,
        Self::PowerControl,
        Self::PowerEio,
        Self::DiskFull,
        Self::NodeKill,
        Self::ControlKill,
        Self::NodeStop,
        Self::DatabaseImmediate,
        Self::DatabaseKill,
        Self::Connections,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Power => "power",
            Self::PowerControl => "power-control",
            Self::PowerEio => "power-eio",
            Self::DiskFull => "disk-full",
            Self::NodeKill => "node-kill",
            Self::ControlKill => "control-kill",
            Self::NodeStop => "node-stop",
            Self::DatabaseImmediate => "database-immediate",
            Self::DatabaseKill => "database-kill",
            Self::Connections => "connections",
        }
    }

    /// Reads a list with commas, or `all`.
    ///
    /// # Errors
    ///
    /// There is no such fault.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        if text == "all" {
            return Ok(Self::ALL.to_vec());
        }
        let find = |name: &str| match Self::ALL.into_iter().find(|fault| fault.name() == name) {
            Some(fault) => Ok(fault),
            None => bail!(
                "there is no fault {name:?}: there are all, {}",
                Self::ALL.map(Self::name).join(", ")
            ),
        };
        text.split(',').map(find).collect()
    }

    /// Causes it for some time. What goes wrong is in the row.
    pub async fn run(self, extent: Extent) -> Row {
        let mut row = Row {
            fault: self.name(),
            seed: extent.seed,
            tally: Tally::default(),
            skipped: None,
            problem: None,
            folder: None,
        };
        let folder = TempDir::with_prefix(format!("kanat-{}-", self.name()))
            .expect("a temporary folder can be made");
        let folder = folder.keep();
        let random = Random::new(extent.seed);
        let run = Run {
            extent,
            random,
            folder: folder.clone(),
        };
        let mut task = JoinSet::new();
        task.spawn(self.drive(run));
        // A wait in vain ends with a panic, which is this row's and leaves the others alone.
        match task.join_next().await.expect("there is one task") {
            Ok(Ok(Outcome::Ran(tally))) => {
                row.problem = self.judge(&tally).err().map(|error| format!("{error:#}"));
                row.tally = tally;
            }
            Ok(Ok(Outcome::Skipped(reason))) => row.skipped = Some(reason),
            Ok(Err(error)) => row.problem = Some(format!("{error:#}")),
            Err(error) => {
                row.problem = Some(error.try_into_panic().map_or("aborted".to_owned(), text_of))
            }
        }
        match row.problem {
            None => remove(&folder),
            Some(_) => row.folder = Some(folder),
        }
        row
    }

    async fn drive(self, run: Run) -> Result<Outcome> {
        match self {
            Self::Kill => kill::run(run).await,
            Self::Power => power::run(run, power::Kind::Plain).await,
            Self::PowerControl => power::run(run, power::Kind::Control).await,
            Self::PowerEio => power::run(run, power::Kind::Eio).await,
            Self::DiskFull => disk_full::run(run).await,
            Self::NodeKill => split::run(run, split::Disturbance::NodeKill).await,
            Self::ControlKill => split::run(run, split::Disturbance::ControlKill).await,
            Self::NodeStop => split::run(run, split::Disturbance::NodeStop).await,
            Self::DatabaseImmediate => split::run(run, split::Disturbance::DatabaseImmediate).await,
            Self::DatabaseKill => split::run(run, split::Disturbance::DatabaseKill).await,
            Self::Connections => split::run(run, split::Disturbance::Connections).await,
        }
    }

    fn judge(self, tally: &Tally) -> Result<()> {
        let Tally {
            rounds,
            acked,
            lost,
            given_up,
            out_of_order,
            ..
        } = tally;
        ensure!(
            *rounds > 0 && *acked > 0,
            "{rounds} rounds, {acked} acked: it has shown nothing"
        );
        if self == Self::PowerControl {
            ensure!(
                !lost.is_empty(),
                "nothing is missing on a disk that forgets: the check sees nothing"
            );
            return Ok(());
        }
        ensure!(
            lost.is_empty(),
            "{} of {acked} acked are lost: {}",
            lost.len(),
            lost.join(", ")
        );
        ensure!(
            given_up.is_empty(),
            "{} are given up: {}",
            given_up.len(),
            given_up.join(", ")
        );
        ensure!(*out_of_order == 0, "{out_of_order} came out of order");
        Ok(())
    }
}

fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder) {
        eprintln!("{} is left: {error}", folder.display());
    }
}

fn text_of(panic: Box<dyn Any + Send>) -> String {
    match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic
            .downcast::<&str>()
            .map_or("a panic without words".to_owned(), |text| {
                (*text).to_owned()
            }),
    }
}
