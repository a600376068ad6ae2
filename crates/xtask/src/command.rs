//! Running other programs, said aloud, with their failures in plain words.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

/// A cargo command at the root of the workspace, with the cargo that runs this task.
pub fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command
        .args(arguments)
        .current_dir(crate::workspace::root());
    command
}

/// Runs `command` with its output in the open; an error when it fails.
pub fn run(mut command: Command) -> Result<()> {
    let text = describe(&command);
    eprintln!("\n$ {text}");
    let start = Instant::now();
    let status = command
        .status()
        .with_context(|| format!("cannot start `{text}`"))?;
    if !status.success() {
        bail!("`{text}` failed ({status})");
    }
    eprintln!("  {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs `command` and gives its standard output; its standard error stays in the open.
pub fn output(mut command: Command) -> Result<String> {
    let text = describe(&command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{text}`"))?;
    if !output.status.success() {
        bail!("`{text}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{text}` did not print UTF-8"))
}

/// Returns whether a program starts with these arguments and ends with success.
pub fn works(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// Sees to it that a program is there: its package is installed where it is missing and that is
/// ours to do.
pub fn installed(package: &str, is_here: impl Fn() -> bool) -> Result<()> {
    if is_here() {
        return Ok(());
    }
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if is_root && Path::new("/usr/bin/apt-get").exists() {
        let mut update = Command::new("apt-get");
        update.args(["update", "-q"]);
        run(update)?;
        let mut install = Command::new("apt-get");
        install.args(["install", "-y", "-q", "--no-install-recommends", package]);
        install.env("DEBIAN_FRONTEND", "noninteractive");
        run(install)?;
    }
    ensure!(
        is_here(),
        "{package} is not here: apt-get install {package}"
    );
    Ok(())
}

fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program
        .file_name()
        .unwrap_or(command.get_program())
        .to_string_lossy()
        .into_owned();
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(program)
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
