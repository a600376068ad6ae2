//! Resource usage of the process under the standard names of Prometheus clients. It is known on
//! Linux only.

use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Length of a clock tick in `/proc`, a constant of the kernel's interface.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        if let Some(time) = cpu_time("self") {
            let help = "User and system time that the process took.";
            let encoder = encoder.encode_descriptor(
                "process_cpu_seconds",
                help,
                None,
                MetricType::Counter,
            )?;
            ConstCounter::new(time.as_secs_f64()).encode(encoder)?;
        }
        let gauges = [
            (
                "process_resident_memory_bytes",
                "Memory that is resident.",
                resident_bytes(),
            ),
            ("process_open_fds", "Open file descriptors.", open_files()),
            (
                "process_max_fds",
                "File descriptors that may be open.",
                max_files(),
            ),
            ("process_threads", "Threads.", status("Threads:")),
        ];
        for (name, help, value) in gauges {
            if let Some(value) = value {
                let encoder = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(encoder)?;
            }
        }
        Ok(())
    }
}

/// Returns the time that a process was on a core, to 10 ms; `None` where it is not known.
/// `process` is its id, or `self`.
pub fn cpu_time(process: &str) -> Option<Duration> {
    cpu_of(&std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
}

/// Reads fields 14 and 15. The second field is a name in parentheses that may contain anything.
fn cpu_of(stat: &str) -> Option<Duration> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u32>().ok();
    Some(TICK * ticks()?.saturating_add(ticks()?))
}

fn resident_bytes() -> Option<u64> {
    status("VmRSS:").map(|kib| kib * 1024)
}

fn status(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.split_whitespace().next()?.parse().ok()
}

fn open_files() -> Option<u64> {
    u64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

fn max_files() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_times_past_a_name_with_spaces_and_brackets() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 2040 0 0 0 250 50 0 0 20 0 3 0 100 200 300";
        assert_eq!(cpu_of(stat), Some(Duration::from_secs(3)));
        assert_eq!(cpu_of("7 (kanat) S 1"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_has_all_of_it() {
        assert!(cpu_time("self").is_some() && resident_bytes().is_some_and(|bytes| bytes > 0));
        assert!(
            open_files().is_some_and(|files| files > 2)
                && max_files().is_some()
                && status("Threads:").is_some()
        );
    }
}
