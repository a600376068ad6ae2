//! A `kanat up` on a free port and a folder of its own, and commands that speak to it.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub const KEY: &str = "kanat_ak_cli_0123456789abcdefghijklmnopqrstuvwxyz";

/// The binary, with nothing from this process's environment that could change what it does.
pub fn kanat() -> Command {
    isolated(env!("CARGO_BIN_EXE_kanat"))
}

fn isolated(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KANAT_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

pub struct Service {
    pub folder: TempDir,
    pub url: String,
    child: Child,
}

impl Service {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(arguments: &[&str]) -> Self {
        let folder = TempDir::with_prefix("kanat-cli-").unwrap();
        let mut child = kanat()
            .args(["up", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder.path().join("data"))
            .args(arguments)
            .env("KANAT_BOOTSTRAP_API_KEY", KEY)
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        if line.is_empty() {
            let mut log = String::new();
            child
                .stderr
                .take()
                .unwrap()
                .read_to_string(&mut log)
                .unwrap();
            panic!("kanat ended before it listened: {log}");
        }
        let version = env!("CARGO_PKG_VERSION");
        let url = line
            .trim_end()
            .strip_prefix(&format!("kanat {version} listening on "))
            .unwrap()
            .to_owned();
        Self { folder, url, child }
    }

    /// A client command, with address and key in its environment.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_kanat"), arguments)
    }

    /// Another program in the same folder and environment.
    pub fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = isolated(program);
        command
            .args(arguments)
            .env("KANAT_URL", &self.url)
            .env("KANAT_API_KEY", KEY);
        command
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .current_dir(self.folder.path());
        command
    }

    /// Runs a client command and returns its output, whether it succeeds or fails.
    pub fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a client command that succeeds, and returns its standard output.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    }

    /// A client command that has to fail: its exit code and what it says.
    pub fn fail(&self, arguments: &[&str]) -> (Option<i32>, String) {
        failure(self.command(arguments).output().unwrap())
    }

    /// A file in the service's folder; gives its path.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// SIGTERM; gives the exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        let sent = Command::new("kill")
            .arg("-TERM")
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(sent.success());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // Already gone after `terminate`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a service in `folder`, stops it once it listens, and returns its standard error.
pub fn log_of_a_start(mut service: Command, folder: &TempDir) -> String {
    service
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = service.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    Command::new("kill")
        .arg(child.id().to_string())
        .status()
        .unwrap();
    text(&child.wait_with_output().unwrap().stderr)
}

/// Exit code and standard error of a command that failed without a word on standard output.
pub fn failure(output: Output) -> (Option<i32>, String) {
    assert!(!output.status.success());
    (output.status.code(), text(&output.stderr))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file of `examples/`.
pub fn example(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    root.join(path).display().to_string()
}
