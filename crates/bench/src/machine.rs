//! What was measured on, and with which versions.

use std::path::Path;
use std::process::Command;

/// One line each, as `what: which`.
pub fn describe(kanat: &Path) -> Vec<String> {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpu = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .unwrap_or_default();
    let memory: u64 = memory
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap_or_default();
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![
        format!(
            "machine: {cores} cores, {}, {} GiB of memory",
            cpu.trim_start_matches([' ', '\t', ':']),
            memory >> 20
        ),
        format!("system: Linux {}, {}", kernel.trim(), distribution()),
        format!(
            "build: {}, commit {}",
            said(Command::new(kanat).arg("--version")),
            commit()
        ),
        format!(
            "compiler: {}; SQLite {}; {}",
            said(Command::new("rustc").arg("--version")),
            rusqlite::version(),
            postgres()
        ),
    ]
}

fn commit() -> String {
    said(Command::new("git").args(["rev-parse", "--short", "HEAD"]))
}

fn distribution() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("unknown").trim_matches('"').to_owned()
}

fn postgres() -> String {
    let version = kanat_testing_postgres::Programs::find().and_then(|programs| programs.version());
    version.unwrap_or_else(|_| "no PostgreSQL".to_owned())
}

/// The first line that a program says.
fn said(command: &mut Command) -> String {
    let output = command
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    text.lines().next().unwrap_or("unknown").to_owned()
}
