//! The client commands of the real binary, with settings of their own.

use std::path::PathBuf;
use std::process::{Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::TestApp;
use crate::app::{KEY, binary};

/// A shell of a person who has nothing saved yet, in a folder of its own.
pub struct Cli {
    home: TempDir,
    environment: Vec<(String, String)>,
}

/// Exit code and output of a command.
#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Outcome {
    /// The output of a command that must succeed.
    pub fn expect(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Returns the output of a command that must succeed, as JSON.
    pub fn json(self) -> Value {
        let text = self.expect();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text:?}"))
    }

    /// Returns the message of a command that must end with `code`.
    pub fn fails(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        assert!(
            self.stderr.lines().any(|line| line.starts_with("error: ")),
            "{}",
            self.stderr
        );
        self.stderr
    }
}

impl Cli {
    /// Knows of no service.
    pub fn new() -> Self {
        let home = TempDir::with_prefix("kanat-home-").expect("a temporary folder can be made");
        Self {
            home,
            environment: Vec::new(),
        }
    }

    /// Knows the service and the owner's key by its environment.
    pub fn of(app: &TestApp) -> Self {
        Self::at(&app.base)
    }

    /// Knows the service at an address, and the owner's key, by its environment.
    pub fn at(url: &str) -> Self {
        Self::new()
            .with("KANAT_URL", url)
            .with("KANAT_API_KEY", KEY)
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes a file into the folder in which commands run; gives its name.
    pub fn file(&self, name: &str, content: &str) -> String {
        std::fs::write(self.home.path().join(name), content).expect("the folder can be written");
        name.to_owned()
    }

    pub fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// The command, ready to be started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KANAT_")) {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", self.home.path())
            .envs(self.environment.iter().cloned())
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    pub async fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(
            self.command(arguments)
                .output()
                .await
                .expect("kanat starts"),
        )
    }

    /// Runs a command with text on standard input.
    pub async fn run_with(&self, arguments: &[&str], input: &str) -> Outcome {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .spawn()
            .expect("kanat starts");
        let mut stdin = child.stdin.take().expect("standard input is a pipe");
        stdin
            .write_all(input.as_bytes())
            .await
            .expect("kanat reads its input");
        drop(stdin);
        outcome(child.wait_with_output().await.expect("kanat ends"))
    }
}

impl Default for Cli {
    fn default() -> Self {
        Self::new()
    }
}

fn outcome(output: Output) -> Outcome {
    let text = |bytes| String::from_utf8(bytes).expect("kanat prints UTF-8");
    Outcome {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}
