//! One worker, seen from the service: asked over its pipes, with a time by which it has answered or
//! is killed.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use kanat_telemetry::metrics::cpu_time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionbio;

use crate::limits::Limits;
use crate::script::Script;
use crate::wire::{Answer, LARGEST, Outcome, Request};
use crate::worker;

/// Scripts that a worker is taken to know; it says when it does not.
const KNOWN: usize = 1_000;
/// The kernel's signal for a process that has used up its time.
const OUT_OF_TIME: i32 = 24;

/// Time that a worker may take beyond its time on a core before it is killed.
pub(crate) const GRACE: Duration = Duration::from_millis(800);

/// Time limits of an answer.
struct Deadline {
    /// Time of the next check whether the worker has had its time.
    next_check: Instant,
    /// End of the wait, whatever the machine had to do.
    end: Instant,
    allowed: Duration,
}

impl Deadline {
    /// Returns whether to go on waiting for a worker that has used so much time on a core: the
    /// machine may have had no more for it.
    fn goes_on(&mut self, used: Duration, now: Instant) -> bool {
        let missing = self.allowed.saturating_sub(used);
        if missing.is_zero() || now >= self.end {
            return false;
        }
        self.next_check = (now + missing + GRACE).min(self.end);
        true
    }
}

/// A running worker. Dropped, it is killed.
pub(crate) struct Process {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// The only one whose code it runs.
    environment: String,
    known: HashSet<[u8; 32]>,
    /// Time on a core that it had had by its last answer.
    used: Duration,
}

/// Why there is no answer. The process is of no use any more.
#[derive(Debug)]
pub(crate) enum CallError {
    /// It has not answered in time. It was on a core for so long.
    Late { on_core: Option<Duration> },
    /// It used up its time, and the kernel ended it.
    OutOfTime,
    /// It is gone.
    Gone(String),
}

impl Process {
    /// Starts `program` as a worker for an environment of flows.
    pub fn start(program: &Path, limits: Limits, environment: &str) -> io::Result<Self> {
        let mut child = command(program, limits).stdin(Stdio::piped()).spawn()?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::Error::other("the worker has no pipes"));
        };
        let environment = environment.to_owned();
        let process = Self {
            child,
            input,
            output,
            environment,
            known: HashSet::new(),
            used: Duration::ZERO,
        };
        ioctl_fionbio(&process.input, true)?;
        ioctl_fionbio(&process.output, true)?;
        Ok(process)
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The environment whose code it runs.
    pub fn environment(&self) -> &str {
        &self.environment
    }

    /// Runs a script, or only loads it, on at most `allowed` on a core and `wall` in all. It is not
    /// waited for as long as that once it has had its time on a core.
    pub fn ask(
        &mut self,
        script: &Script,
        on: Option<(&str, &str)>,
        allowed: Duration,
        wall: Duration,
    ) -> Result<Answer, CallError> {
        let now = Instant::now();
        let mut deadline = Deadline {
            next_check: now + (allowed + GRACE).min(wall),
            end: now + wall,
            allowed,
        };
        let allowed = u64::try_from(allowed.as_nanos()).unwrap_or(u64::MAX);
        let mut known = on.is_some() && self.known.contains(&script.hash);
        loop {
            let code = (!known).then_some(script.code.as_str());
            let frame = Request {
                allowed,
                hash: script.hash,
                code,
                on,
            }
            .encode();
            let answer = self
                .exchange(&frame, &mut deadline)
                .map_err(|error| self.broken(&error))?;
            let Some(answer) = Answer::decode(&answer) else {
                return Err(CallError::Gone(
                    "the worker gave an answer that is none".to_owned(),
                ));
            };
            if answer.outcome == Outcome::Unknown && known {
                known = false;
                continue;
            }
            if self.known.len() >= KNOWN {
                self.known.clear();
            }
            self.known.insert(script.hash);
            self.used = Duration::from_nanos(answer.total);
            return Ok(answer);
        }
    }

    fn exchange(&mut self, frame: &[u8], deadline: &mut Deadline) -> io::Result<Vec<u8>> {
        let mut rest = frame;
        while !rest.is_empty() {
            match self.input.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(&self.input, PollFlags::OUT, deadline)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let mut length = [0; 4];
        self.read(&mut length, deadline)?;
        let length = u32::from_le_bytes(length) as usize;
        if length > LARGEST {
            return Err(io::Error::other(
                "the worker gave an answer beyond all bounds",
            ));
        }
        let mut answer = vec![0; length];
        self.read(&mut answer, deadline)?;
        Ok(answer)
    }

    fn read(&mut self, mut buffer: &mut [u8], deadline: &mut Deadline) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.output.read(buffer) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => buffer = &mut buffer[read..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(&self.output, PollFlags::IN, deadline)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn broken(&mut self, error: &io::Error) -> CallError {
        if error.kind() == io::ErrorKind::TimedOut {
            let used = self.on_core();
            self.end();
            return CallError::Late { on_core: used };
        }
        let status = self.end();
        match status.as_ref().and_then(ExitStatus::signal) {
            Some(OUT_OF_TIME) => CallError::OutOfTime,
            _ => CallError::Gone(
                status.map_or_else(|| error.to_string(), |status| status.to_string()),
            ),
        }
    }

    /// Waits until the pipe can be used, or fails with `TimedOut`.
    fn wait(&self, pipe: &impl AsFd, what: PollFlags, deadline: &mut Deadline) -> io::Result<()> {
        let now = Instant::now();
        if now >= deadline.next_check
            && !self
                .on_core()
                .is_some_and(|used| deadline.goes_on(used, now))
        {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let left = deadline.next_check.saturating_duration_since(now);
        let timeout = Timespec::try_from(left).map_err(io::Error::other)?;
        match poll(&mut [PollFd::new(pipe, what)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// How long it has been on a core since its last answer.
    fn on_core(&self) -> Option<Duration> {
        cpu_time(&self.id().to_string()).map(|used| used.saturating_sub(self.used))
    }

    /// Kills what is still there, and gives how it ended: by itself, if it was gone already.
    fn end(&mut self) -> Option<ExitStatus> {
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Tells whether this system confines workers. Starts one that tries, and waits some milliseconds.
///
/// # Errors
///
/// The first reason why a part of the confinement does not hold.
pub fn probe(program: &Path) -> Result<(), String> {
    let mut command = command(program, Limits::default());
    let ended = command.arg(worker::PROBE).stdin(Stdio::null()).output();
    let ended = ended.map_err(|error| format!("no process can be started for them: {error}"))?;
    match String::from_utf8_lossy(&ended.stdout) {
        told if !told.is_empty() => Err(told.into_owned()),
        _ if !ended.status.success() => Err(format!(
            "the process that runs them ended: {}",
            ended.status
        )),
        _ => Ok(()),
    }
}

/// Returns the command of a worker, which has no environment and no part in the service's group.
fn command(program: &Path, limits: Limits) -> Command {
    let mut command = Command::new(program);
    command
        .arg(worker::COMMAND)
        .args(worker::arguments(limits))
        .env_clear()
        .current_dir("/")
        .process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}
