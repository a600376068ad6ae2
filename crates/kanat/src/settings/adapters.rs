//! Settings of the processes that run adapters.

use std::time::Duration;

use super::{Problems, flags, value};

flags! {
    /// Settings of adapters, as the command line, the environment and the file give them; each may
    /// be left out.
    pub struct Flags {
        /// Memory that an adapter may take, in MiB [default: 64].
        "KANAT_ADAPTER_MEMORY" => adapter_memory: Option<u64>,
        /// Time on a core that an adapter may take for one message, in milliseconds [default:
        /// 1000].
        "KANAT_ADAPTER_TIME" => adapter_time: Option<u64>,
        /// Processes that run adapters, at most [default: twice the cores, at least 4].
        "KANAT_ADAPTER_PROCESSES" => adapter_processes: Option<u64>,
    }
}

/// How adapters are run, checked.
#[derive(Debug, Clone)]
pub struct Settings(pub kanat_script::Options);

impl Flags {
    pub(super) fn check(&mut self, problems: &mut Problems) -> Settings {
        let mut options = kanat_script::Options::default();
        let limits = &mut options.limits;
        let mut within = |setting, asked: &mut Option<u64>, usual: u64, most: u64, is: &str| {
            let value = *asked.get_or_insert(usual);
            problems.take(setting, value::within(value, 1..=most, is))
        };
        let usual = (limits.memory >> 20) as u64;
        let memory = within(
            "adapter_memory",
            &mut self.adapter_memory,
            usual,
            1024,
            " MiB is",
        );
        limits.memory = usize::try_from(memory).map_or(limits.memory, |memory| memory << 20);
        let usual = u64::try_from(limits.cpu.as_millis()).unwrap_or(u64::MAX);
        let time = within(
            "adapter_time",
            &mut self.adapter_time,
            usual,
            60_000,
            " ms is",
        );
        limits.cpu = Duration::from_millis(time);
        let usual = options.processes as u64;
        let processes = within(
            "adapter_processes",
            &mut self.adapter_processes,
            usual,
            256,
            " is",
        );
        options.processes = usize::try_from(processes).unwrap_or(options.processes);
        Settings(options)
    }
}
