//! Confinement of a worker. Before it runs any code it gives up files, sockets, other processes,
//! new privileges, and all system calls but the few that an engine at work makes. So an exploited
//! bug of the engine gives access to nothing else.

#[cfg(target_os = "linux")]
mod system_calls;

use rustix::param::page_size;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::limits::Limits;

/// Memory of the process beside what the engine counts, and for frames.
const BESIDE: u64 = 768 << 20;

/// Confines this process for good. System calls are refused to this thread and those that it
/// starts.
///
/// # Errors
///
/// The first reason why the system refused a part; the other parts hold all the same.
pub fn confine(limits: Limits) -> Result<(), String> {
    // Read while files can still be opened.
    let set_aside = set_aside();
    let limited =
        limit(limits, set_aside).map_err(|error| format!("resources cannot be limited: {error}"));
    limited.and(refuse_system_calls())
}

/// Limits what the process takes. Its priority stays: code that loops would have its time so late
/// that it were told as starved.
fn limit(limits: Limits, set_aside: u64) -> rustix::io::Result<()> {
    // An allocator may have set aside a lot of what it never uses.
    let memory = (limits.memory as u64)
        .saturating_mul(2)
        .saturating_add(BESIDE)
        .saturating_add(set_aside);
    let bounds = [
        // Descriptors that are open stay; there is no number left for another one.
        (Resource::Nofile, 0),
        (Resource::Fsize, 0),
        (Resource::Core, 0),
        (Resource::Nproc, 0),
        (Resource::Data, memory),
    ];
    let set = |(resource, bound)| {
        setrlimit(
            resource,
            Rlimit {
                current: Some(bound),
                maximum: Some(bound),
            },
        )
    };
    bounds.map(set).into_iter().collect()
}

/// Returns the bytes of data that the process has asked the kernel for, as far as they are known.
fn set_aside() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|pages| pages.split_ascii_whitespace().nth(5)?.parse::<u64>().ok());
    pages.unwrap_or(0).saturating_mul(page_size() as u64)
}

#[cfg(target_os = "linux")]
fn refuse_system_calls() -> Result<(), String> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    let closed = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let closed =
        closed.map_err(|error| format!("memory cannot be closed to other processes: {error}"));
    closed.and(system_calls::refuse())
}

#[cfg(not(target_os = "linux"))]
fn refuse_system_calls() -> Result<(), String> {
    Err("this system has no filter of system calls".to_owned())
}
