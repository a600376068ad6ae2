//! `cargo xtask test`: the one test command. It builds the binary that the black-box tests start,
//! looks for what they need from the machine, and runs every test of the workspace.

use anyhow::{Context, Result, bail};
use kanat_testing_postgres::Programs;

use crate::command::{self, cargo};

/// The points at which the fault tests let the binary die.
pub const FAILPOINTS: &str = "kanat/failpoints";

/// Variable that says how many tests of a target run at a time.
const THREADS: &str = "RUST_TEST_THREADS";

/// Runs all tests; `filters` (test names, or `--nocapture` and its kin) go to the test binaries.
pub fn run(filters: &[String]) -> Result<()> {
    prepare()?;
    // No crate has doc tests: looking for them in each would take a minute.
    let targets = ["--lib", "--bins", "--tests"];
    let mut test = cargo(["test", "--workspace", "--locked", "--features", FAILPOINTS]);
    test.args(targets).arg("--").args(filters);
    // Tests wait more than they compute: for disks, databases and processes.
    if std::env::var_os(THREADS).is_none() {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        test.env(THREADS, (cores * 2).to_string());
    }
    command::run(test)
}

/// Looks for what the tests need of the machine, installs what is ours to install, and builds them.
pub fn prepare() -> Result<()> {
    look_for_tools()?;
    look_for_postgres()?;
    look_for_nginx()?;
    build()
}

/// Builds the tests and the binary that they start: together, because by itself it would have other
/// features of what both depend on, all of which would be built twice.
pub fn build() -> Result<()> {
    command::run(cargo([
        "build",
        "--workspace",
        "--bins",
        "--tests",
        "--locked",
        "--features",
        FAILPOINTS,
    ]))
}

/// The message log and the store are tested on PostgreSQL too: a server that `DATABASE_URL` names,
/// or a throw-away cluster from the programs of this machine, which are installed where they are
/// missing and that is ours to do.
fn look_for_postgres() -> Result<()> {
    if std::env::var_os("DATABASE_URL").is_some() {
        return Ok(());
    }
    Programs::find_or_install().map(drop).context(
        "the tests need PostgreSQL: apt-get install postgresql, or name a server by DATABASE_URL",
    )
}

/// The proxy of `deploy/nginx`, run for real.
fn look_for_nginx() -> Result<()> {
    // Debian puts it where only root's path leads.
    let is_here = || {
        ["nginx", "/usr/sbin/nginx"]
            .iter()
            .any(|program| command::works(program, &["-v"]))
    };
    command::installed("nginx", is_here)
        .context("the tests need nginx, for the proxy in front of nodes")
}

/// Looks for the programs that the tests start. One error names all that are missing, each with the
/// command that installs it.
fn look_for_tools() -> Result<()> {
    let mut missing = Vec::new();
    if !command::works("cc", &["--version"]) {
        missing.push("a C compiler (cc), for the bundled SQLite: apt-get install gcc libc6-dev");
    }
    if !command::works("python3", &["-c", "import venv, ensurepip"]) {
        missing.push(
            "Python 3 with venv, for the gRPC client made from proto/: apt-get install \
                      python3 python3-venv",
        );
    }
    if !command::works("curl", &["--version"]) {
        missing.push("curl, for the walk over /api/v1: apt-get install curl");
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!(
        "the tests need what is not here:\n  - {}",
        missing.join("\n  - ")
    )
}
