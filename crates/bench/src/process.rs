//! A server in a process of its own, and its use of resources.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// A running server; killed when dropped.
pub struct Server {
    child: Child,
    pub address: SocketAddr,
}

/// Resources that a process has used since its start.
#[derive(Clone, Copy)]
pub struct Usage {
    /// Time on a core, in user and system mode.
    pub cpu: Duration,
    /// Time of its children that have ended.
    pub ended_children_cpu: Duration,
    /// Memory at present.
    pub memory_kib: u64,
    pub peak_memory_kib: u64,
}

/// Reads the usage of any process from `/proc`.
pub fn usage(pid: u32) -> Result<Usage> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("unreadable stat")?;
    // Fields 14 to 17 of stat, in ticks of a hundredth of a second.
    let fields = fields.split_whitespace().skip(11).take(4);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let [user, system, children_user, children_system] = ticks[..] else {
        bail!("unreadable stat")
    };
    let time = |ticks: u64| Duration::from_millis(ticks * 10);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = |name: &str| {
        let rest = status.lines().find_map(|line| line.strip_prefix(name));
        let rest = rest.context("no such line in status")?;
        anyhow::Ok(rest.trim().trim_end_matches(" kB").parse()?)
    };
    Ok(Usage {
        cpu: time(user + system),
        ended_children_cpu: time(children_user + children_system),
        memory_kib: kib("VmRSS:")?,
        peak_memory_kib: kib("VmHWM:")?,
    })
}

impl Server {
    /// Starts `command` and waits for its first line, which ends with the address that it listens
    /// on. Standard error goes to `log`.
    pub async fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let log = std::fs::File::create(log).context("cannot make the server's log")?;
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the server")?;
        let stdout = child.stdout.take();
        let stdout = stdout.context("the server has no standard output")?;
        let line = BufReader::new(stdout).lines().next_line().await?;
        let line = line.context("the server ended before it listened")?;
        let address = line.rsplit("http://").next().unwrap_or_default().trim();
        let address = address
            .parse()
            .with_context(|| format!("no address in {line:?}"))?;
        Ok(Self { child, address })
    }

    pub fn usage(&self) -> Result<Usage> {
        usage(self.child.id().context("the server has ended")?)
    }

    /// Kills the process at once, as a crash would.
    pub async fn kill(&mut self) -> Result<()> {
        self.child.kill().await.context("cannot kill the server")
    }

    /// Asks the process to stop, and waits until it has.
    pub async fn stop(mut self) -> Result<()> {
        if let Some(pid) = self.child.id() {
            let mut kill = Command::new("kill");
            kill.arg("-TERM").arg(pid.to_string()).status().await?;
        }
        self.child.wait().await?;
        Ok(())
    }
}
