//! Settings of the processes that run adapters.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Problems, or};

/// Settings of adapters, as the command line, the environment and the file give them; each may be
/// left out.
#[derive(Default, Clone, clap::Args, Serialize, Deserialize)]
#[group(skip)]
#[serde(default)]
pub struct Flags {
    /// Memory that an adapter may take, in MiB [default: 64].
    #[arg(long, env = "KANAT_ADAPTER_MEMORY")]
    pub adapter_memory: Option<u64>,
    /// Time on a core that an adapter may take for one message, in milliseconds [default: 1000].
    #[arg(long, env = "KANAT_ADAPTER_TIME")]
    pub adapter_time: Option<u64>,
    /// Processes that run adapters, at most [default: twice the cores, at least 4].
    #[arg(long, env = "KANAT_ADAPTER_PROCESSES")]
    pub adapter_processes: Option<u64>,
}

/// How adapters are run, checked.
#[derive(Debug, Clone)]
pub struct Settings(pub kanat_script::Options);

impl Flags {
    pub(super) fn or(mut self, file: Self) -> Self {
        or!(self, file; adapter_memory, adapter_time, adapter_processes);
        self
    }

    pub(super) fn check(self, problems: &mut Problems) -> Settings {
        let mut options = kanat_script::Options::default();
        let mut within = |setting, asked: Option<u64>, usual: u64, most: u64, unit: &str| {
            let value = asked.unwrap_or(usual);
            let checked = if (1..=most).contains(&value) {
                Ok(value)
            } else {
                Err(format!("{value}{unit} is not between 1 and {most}"))
            };
            problems.take(setting, checked)
        };
        let limits = &mut options.limits;
        let memory = within(
            "adapter_memory",
            self.adapter_memory,
            (limits.memory >> 20) as u64,
            1024,
            " MiB",
        );
        limits.memory = usize::try_from(memory).map_or(limits.memory, |memory| memory << 20);
        let usual = u64::try_from(limits.cpu.as_millis()).unwrap_or(u64::MAX);
        limits.cpu = Duration::from_millis(within(
            "adapter_time",
            self.adapter_time,
            usual,
            60_000,
            " ms",
        ));
        let usual = options.processes as u64;
        let processes = within("adapter_processes", self.adapter_processes, usual, 256, "");
        options.processes = usize::try_from(processes).unwrap_or(options.processes);
        Settings(options)
    }
}

impl Settings {
    pub(super) fn to_flags(&self) -> Flags {
        let kanat_script::Options {
            limits, processes, ..
        } = &self.0;
        Flags {
            adapter_memory: Some((limits.memory >> 20) as u64),
            adapter_time: u64::try_from(limits.cpu.as_millis()).ok(),
            adapter_processes: Some(*processes as u64),
        }
    }
}
