//! The real binary, started on a free port with a folder of its own.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::Rest;

/// The owner's key of every service under test.
pub const KEY: &str = "kanat_ak_test_0123456789abcdefghijklmnopqrstuvwxyzABCDEF";

/// A running `kanat up`. It is killed, and its folder removed, when dropped.
pub struct TestApp {
    folder: TempDir,
    child: Child,
    pub base: String,
    pub api: Rest,
    start: Start,
}

/// How the process is started.
struct Start {
    environment: Vec<(String, String)>,
    listen: String,
    /// No file of the process grows past this many KiB, as on a disk that is full.
    file_limit_kib: Option<u32>,
    /// The data folder is a disk of its own, in memory, of so many MiB.
    disk_mib: Option<u32>,
}

impl Start {
    fn with(environment: &[(&str, &str)]) -> Self {
        let environment = environment
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Self {
            environment,
            listen: "127.0.0.1:0".to_owned(),
            file_limit_kib: None,
            disk_mib: None,
        }
    }
}

/// The binary under test: `KANAT_BIN`, or the one that was built beside the tests.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("KANAT_BIN") {
        return PathBuf::from(path);
    }
    build_folder().join("kanat")
}

/// `target/<profile>`, where what tests build for themselves may lie too.
pub fn build_folder() -> PathBuf {
    let own = std::env::current_exe().expect("a program has a path");
    let folder = own.parent().expect("a program lies in a folder");
    // Tests lie in target/<profile>/deps.
    if folder.ends_with("deps") {
        folder.parent().unwrap_or(folder).to_owned()
    } else {
        folder.to_owned()
    }
}

impl TestApp {
    /// A fresh service.
    pub async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// A fresh service with these variables in its environment.
    pub async fn start_with(environment: &[(&str, &str)]) -> Self {
        Self::launch(Start::with(environment)).await
    }

    /// A fresh service whose data folder is a disk of so many MiB, which only the service sees.
    pub async fn start_on_a_disk_of(mib: u32) -> Self {
        Self::launch(Start {
            disk_mib: Some(mib),
            ..Start::with(&[])
        })
        .await
    }

    /// Makes the disk of the running service so many MiB large.
    pub async fn resize_the_disk(&self, mib: u32) {
        let mut enter = Command::new("nsenter");
        enter.args([
            "--preserve-credentials",
            "--user",
            "--mount",
            "--target",
            &self.pid().to_string(),
            "mount",
            "-o",
        ]);
        let resized = enter
            .arg(format!("remount,size={mib}m"))
            .arg(self.data_dir())
            .status()
            .await;
        assert!(resized.expect("nsenter runs").success());
    }

    /// A fresh service that finds no room for a file of more than `file_limit_kib`, until
    /// [`Self::free_the_disk`].
    pub async fn start_on_a_small_disk(file_limit_kib: u32) -> Self {
        Self::launch(Start {
            file_limit_kib: Some(file_limit_kib),
            ..Start::with(&[])
        })
        .await
    }

    /// A fresh service with its files in a new folder below this one, where they are kept.
    pub async fn start_in(folder: &Path, environment: &[(&str, &str)]) -> Self {
        let mut own =
            TempDir::with_prefix_in("up-", folder).expect("a temporary folder can be made");
        own.disable_cleanup(true);
        Self::launch_in(own, Start::with(environment)).await
    }

    /// From now on the running service finds room again.
    pub async fn free_the_disk(&self) {
        let mut prlimit = Command::new("prlimit");
        prlimit
            .args(["--fsize=unlimited", "--pid"])
            .arg(self.pid().to_string());
        assert!(prlimit.status().await.expect("prlimit runs").success());
    }

    /// Lets the running service open no file with this number or a higher one; gives the bound that
    /// it had. What is open stays.
    pub async fn limit_open_files(&self, bound: u64) -> u64 {
        let pid = self.pid().to_string();
        let mut prlimit = Command::new("prlimit");
        let told = prlimit
            .args([
                "--nofile",
                "--output",
                "SOFT",
                "--noheadings",
                "--pid",
                &pid,
            ])
            .output()
            .await;
        let told = String::from_utf8(told.expect("prlimit runs").stdout).expect("a number is text");
        let mut prlimit = Command::new("prlimit");
        prlimit
            .arg(format!("--nofile={bound}:"))
            .args(["--pid", &pid]);
        assert!(prlimit.status().await.expect("prlimit runs").success());
        told.trim().parse().expect("a bound")
    }

    async fn launch(start: Start) -> Self {
        Self::launch_in(
            TempDir::with_prefix("kanat-test-").expect("a temporary folder can be made"),
            start,
        )
        .await
    }

    async fn launch_in(folder: TempDir, start: Start) -> Self {
        let (child, base) = launch(folder.path(), &start).await.expect("kanat starts");
        let base = base
            .unwrap_or_else(|| panic!("kanat ended before it listened:\n{}", log(folder.path())));
        let api = Rest::new(&base, KEY);
        Self {
            folder,
            child,
            base,
            api,
            start,
        }
    }

    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Every file of the data folder, with what is in it.
    pub fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        let mut folders = vec![self.data_dir()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder can be read") {
                let path = entry.expect("an entry can be read").path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => files.push((
                        path.clone(),
                        std::fs::read(&path).expect("a file can be read"),
                    )),
                }
            }
        }
        files
    }

    pub fn pid(&self) -> u32 {
        self.child.id().expect("the service runs")
    }

    /// Returns the standard error of the service, over all its starts.
    pub fn log(&self) -> String {
        log(self.folder.path())
    }

    /// SIGKILL, and wait until the process is gone.
    pub async fn kill(&mut self) {
        self.child.start_kill().expect("the process can be killed");
        self.child.wait().await.expect("the process ends");
    }

    /// SIGTERM; gives the exit code.
    pub async fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM").await;
        self.child.wait().await.expect("the process ends").code()
    }

    pub async fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.pid().to_string())
            .status()
            .await;
        assert!(sent.expect("kill runs").success());
    }

    /// Waits until the process has ended by itself; gives the exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        self.child.wait().await.expect("the process ends").code()
    }

    /// Starts the service again, with these variables instead of its former ones. When they give it
    /// a point to die at, it may be dead before it prints its address.
    pub async fn restart_with(&mut self, environment: &[(&str, &str)]) {
        self.start.environment = environment
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let listens = self.launch_again().await;
        assert!(
            listens || dies(environment),
            "kanat ended before it listened:\n{}",
            log(self.folder.path())
        );
    }

    /// Starts again on the same folder and the same port, with all the room that the disk has.
    pub async fn restart(&mut self) {
        assert!(
            self.launch_again().await,
            "kanat ended before it listened:\n{}",
            log(self.folder.path())
        );
    }

    /// Starts again on the same folder and port, with as little room as before.
    pub async fn restart_on_the_small_disk(&mut self) {
        let limit = self.start.file_limit_kib;
        assert!(
            self.launch_with(limit).await,
            "kanat ended before it listened:\n{}",
            log(self.folder.path())
        );
    }

    /// Starts the service again, and returns whether it began to listen.
    async fn launch_again(&mut self) -> bool {
        self.launch_with(None).await
    }

    async fn launch_with(&mut self, file_limit_kib: Option<u32>) -> bool {
        self.start.listen = self.base.trim_start_matches("http://").to_owned();
        self.start.file_limit_kib = file_limit_kib;
        let (child, base) = launch(self.folder.path(), &self.start)
            .await
            .expect("kanat starts again");
        self.child = child;
        base.map(|base| assert_eq!(base, self.base)).is_some()
    }
}

/// Returns whether these variables give a process a point to die at.
pub(crate) fn dies(environment: &[(&str, &str)]) -> bool {
    environment
        .iter()
        .any(|(name, value)| *name == "KANAT_FAILPOINT" && !value.is_empty())
}

fn log(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// The process, and where it listens; no place when it ended before.
async fn launch(folder: &Path, start: &Start) -> Result<(Child, Option<String>)> {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("log"))?;
    let mut command = match (start.file_limit_kib, start.disk_mib) {
        (None, None) => Command::new(binary()),
        (None, Some(mib)) => {
            let data = folder.join("data");
            std::fs::create_dir(&data)?;
            let mut unshare = Command::new("unshare");
            unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
            let mounted = format!(
                "mount -t tmpfs -o size={mib}m,mode=700 kanat \"$1\" && shift && exec \"$@\""
            );
            unshare.args([&mounted, "sh"]).arg(data).arg(binary());
            unshare
        }
        (Some(kib), _) => {
            // The shell counts in blocks of 512 bytes; without the signal a write past the limit is
            // an error.
            let mut shell = Command::new("sh");
            let limited = format!(
                "trap '' XFSZ; ulimit -S -f {}; exec \"$@\"",
                u64::from(kib) * 2
            );
            shell.args(["-c", &limited, "sh"]).arg(binary());
            shell
        }
    };
    let mut child = command
        .args(["up", "--listen", &start.listen, "--data-dir"])
        .arg(folder.join("data"))
        .env("KANAT_BOOTSTRAP_API_KEY", KEY)
        .envs(start.environment.iter().cloned())
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", binary().display()))?;
    let stdout = child.stdout.take().context("no standard output")?;
    let Some(line) = BufReader::new(stdout).lines().next_line().await? else {
        return Ok((child, None));
    };
    let base = line
        .rsplit(' ')
        .next()
        .context("an empty first line")?
        .to_owned();
    anyhow::ensure!(
        line.starts_with("kanat ") && base.starts_with("http://"),
        "unexpected first line {line:?}"
    );
    Ok((child, Some(base)))
}
