//! The worker: a process that runs adapters' code and nothing else. It reads a request, answers,
//! and reads the next one; it ends with its input.
//!
//! It has no environment, and gives up the rest before it reads the first request (`confinement`).
//! Its own limits hold when nobody watches: loops stop at their time, and the kernel ends a process
//! whose built-in functions do not.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::time::{ClockId, Timespec, clock_gettime};

pub use crate::confinement::confine;
use crate::limits::Limits;
use crate::sandbox::{Sandbox, clock};
use crate::wire::{Answer, LARGEST, Outcome, Request};

/// The command of the binary that is a worker.
pub const COMMAND: &str = "adapter-worker";
/// The argument after the limits of a worker that only says whether the system confines it.
pub(crate) const PROBE: &str = "probe";

/// Serves standard input and output until they end. The arguments are those of `arguments`, and
/// then maybe `probe`.
pub fn main(arguments: impl Iterator<Item = String>) -> ExitCode {
    let arguments: Vec<String> = arguments.collect();
    let numbers: Vec<u64> = arguments
        .iter()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let [memory, cpu] = numbers[..] else {
        return ExitCode::from(2);
    };
    let limits = Limits {
        memory: usize::try_from(memory).unwrap_or(usize::MAX),
        cpu: Duration::from_millis(cpu),
    };
    // Where the system refuses a part, the other bounds hold all the same. A probe has reported it.
    let confined = confine(limits);
    if arguments.last().is_some_and(|last| last == PROBE) {
        return report(confined);
    }
    match serve(limits, &mut io::stdin().lock(), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the arguments of a worker with these limits, after [`COMMAND`].
pub(crate) fn arguments(limits: Limits) -> [String; 2] {
    [
        limits.memory.to_string(),
        limits.cpu.as_millis().to_string(),
    ]
}

/// Writes why a part of the confinement was refused to standard output.
fn report(confined: Result<(), String>) -> ExitCode {
    let written = confined.map_or_else(|refused| io::stdout().write_all(refused.as_bytes()), Ok);
    written.map_or(ExitCode::FAILURE, |()| ExitCode::SUCCESS)
}

fn serve(limits: Limits, input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    let mut sandbox = Sandbox::new(limits);
    let mut fuse = Fuse::default();
    while let Some(frame) = read_frame(input)? {
        let request = Request::decode(&frame).ok_or(io::ErrorKind::InvalidData)?;
        let allowed = Duration::from_nanos(request.allowed);
        fuse.set(allowed);
        let begun = clock::used();
        let answer = answer(&mut sandbox, &request, allowed);
        let used =
            u64::try_from(clock::used().saturating_sub(begun).as_nanos()).unwrap_or(u64::MAX);
        let total = nanoseconds(clock_gettime(ClockId::ProcessCPUTime));
        output.write_all(
            &Answer {
                used,
                total,
                ..answer
            }
            .encode(),
        )?;
        output.flush()?;
        sandbox.prepare();
    }
    Ok(())
}

fn answer(sandbox: &mut Sandbox, request: &Request<'_>, allowed: Duration) -> Answer {
    let answer = |outcome| Answer {
        used: 0,
        total: 0,
        logs: Vec::new(),
        outcome,
    };
    let begun = clock::used();
    if let Some(code) = request.code
        && let Err(failure) = sandbox.load(request.hash, code, allowed)
    {
        return answer(Outcome::Failed(failure));
    }
    let allowed = allowed.saturating_sub(clock::used().saturating_sub(begun));
    let Some((input, context)) = request.on else {
        return answer(Outcome::Output(None));
    };
    let called = sandbox.call(&request.hash, input, context, allowed);
    Answer {
        logs: called.logs,
        ..answer(called.outcome)
    }
}

fn nanoseconds(time: Timespec) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// `None` at the end of the input.
fn read_frame(input: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LARGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut frame = vec![0; length];
    input.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// The kernel's end of a worker that nobody is left to kill: so many seconds on a core, moved on
/// with each call.
#[derive(Default)]
struct Fuse {
    end: u64,
}

impl Fuse {
    fn set(&mut self, allowed: Duration) {
        let used = u64::try_from(clock_gettime(ClockId::ProcessCPUTime).tv_sec).unwrap_or(0);
        // Whole seconds: one for the time used that is cut here.
        let end = used + allowed.as_secs() + 1 + u64::from(allowed.subsec_nanos() > 0);
        if end != self.end {
            self.end = end;
            let _ = setrlimit(
                Resource::Cpu,
                Rlimit {
                    current: Some(end),
                    maximum: None,
                },
            );
        }
    }
}
