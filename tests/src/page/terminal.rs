//! Terminals: shells that stay, with an environment of their own, and processes that run until the
//! reader goes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// Folder and variables of every terminal of a reader.
pub struct Environment {
    pub folder: PathBuf,
    pub variables: Vec<(String, String)>,
}

impl Environment {
    fn bash(&self) -> Command {
        let mut command = Command::new("bash");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KANAT_")) {
            command.env_remove(name);
        }
        command
            .env_remove("XDG_CONFIG_HOME")
            .envs(self.variables.iter().cloned())
            .current_dir(&self.folder)
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

/// A shell that takes one script after another and keeps its variables between them.
pub struct Shell {
    _group: Group,
    input: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Shell {
    pub fn open(environment: &Environment) -> Self {
        let mut command = environment.bash();
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut group = Group(child.expect("bash starts"));
        let input = group.0.stdin.take().expect("standard input is a pipe");
        let answers = group.0.stdout.take().expect("standard output is a pipe");
        Self {
            _group: group,
            input,
            answers: BufReader::new(answers).lines(),
        }
    }

    /// Runs a script until a command of it fails; gives whether none did.
    pub async fn run(&mut self, script: &Path, output: &Path) -> bool {
        let script = script.display();
        let output = output.display();
        let line = format!("set -e; . '{script}' </dev/null >'{output}' 2>&1; set +e; echo done\n");
        self.input
            .write_all(line.as_bytes())
            .await
            .expect("the shell takes a script");
        // A failure ends the shell.
        self.answers
            .next_line()
            .await
            .expect("the shell answers")
            .is_some()
    }
}

/// A process of a terminal, and all that it started; they are killed when dropped.
pub struct Group(Child);

impl Group {
    /// Starts a script that is not waited for.
    pub fn start(environment: &Environment, script: &Path, output: &Path) -> Self {
        let file = File::create(output).expect("the folder can be written");
        let errors = file.try_clone().expect("a file can be shared");
        let child = environment
            .bash()
            .arg(script)
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn();
        Self(child.expect("bash starts"))
    }

    /// Returns whether the process has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.0
            .try_wait()
            .expect("a process can be waited for")
            .is_some()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0.id() {
            // The group is gone where all of it has ended.
            let _ = std::process::Command::new("kill")
                .args(["-KILL", "--"])
                .arg(format!("-{group}"))
                .status();
        }
    }
}
