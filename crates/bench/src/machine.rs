//! The machine of a measurement, and the versions that it measured.

use std::path::Path;
use std::process::Command;

/// Describes them, one line each.
pub fn describe(kanat: &Path) -> Vec<String> {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpu = field("/proc/cpuinfo", "model name");
    let memory = field("/proc/meminfo", "MemTotal:");
    let memory: u64 = memory.trim_end_matches(" kB").parse().unwrap_or_default();
    let kernel = first_line(Command::new("uname").args(["-s", "-r"]));
    let distribution = field("/etc/os-release", "PRETTY_NAME=");
    let version = first_line(Command::new(kanat).arg("--version"));
    let commit = first_line(Command::new("git").args(["rev-parse", "--short", "HEAD"]));
    let compiler = first_line(Command::new("rustc").arg("--version"));
    let postgres = kanat_testing_postgres::Programs::find().and_then(|found| found.version());
    let postgres = postgres.unwrap_or_else(|_| "no PostgreSQL".to_owned());
    let sqlite = rusqlite::version();
    vec![
        format!(
            "machine: {cores} cores, {cpu}, {} GiB of memory",
            memory >> 20
        ),
        format!("system: {kernel}, {distribution}"),
        format!("build: {version}, commit {commit}"),
        format!("compiler: {compiler}; SQLite {sqlite}; {postgres}"),
    ]
}

/// Value of the first line of a file that begins with `name`.
fn field(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.unwrap_or("unknown");
    value.trim_matches([' ', '\t', ':', '"']).to_owned()
}

fn first_line(command: &mut Command) -> String {
    let output = command.output().map(|output| output.stdout);
    let output = output.unwrap_or_default();
    let text = String::from_utf8_lossy(&output);
    text.lines().next().unwrap_or("unknown").to_owned()
}
