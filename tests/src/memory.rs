//! Memory of a process, read from `/proc`.

use std::fs;

/// Resident memory at present, in KiB.
pub fn resident_kib(process: u32) -> u64 {
    field(process, "VmRSS:")
}

/// The most that it ever held, in KiB.
pub fn peak_kib(process: u32) -> u64 {
    field(process, "VmHWM:")
}

fn field(process: u32, name: &str) -> u64 {
    let path = format!("/proc/{process}/status");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path} cannot be read: {error}"));
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("Linux tells it of every process");
    line.split_whitespace()
        .next()
        .and_then(|value| value.parse().ok())
        .expect("a number of KiB")
}
