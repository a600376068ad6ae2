//! A worker in the hands of one caller: its calls share the time that one call may take.

use std::time::{Duration, Instant};

use kanat_telemetry::metrics;

use crate::failure::{Failure, Kind};
use crate::pool::Permit;
use crate::process::{CallError, GRACE, Process};
use crate::script::Script;
use crate::wire::{Answer, Log, Outcome};

/// Wall time for which a worker is waited for, as a multiple of its time on a core.
const WALL_TIME_FACTOR: u32 = 5;

/// One worker for a while; the pool has it back when this is dropped.
pub struct Session {
    // Given back before the permit is.
    process: Option<Process>,
    permit: Permit,
    /// Remaining time on a core, and remaining time until the worker is killed.
    left: (Duration, Duration),
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResult {
    /// JSON; nothing when the adapter gave undefined.
    pub output: Result<Option<String>, Failure>,
    pub logs: Vec<Log>,
}

impl Session {
    pub(crate) fn new(permit: Permit) -> Self {
        let cpu = permit.options().limits.cpu;
        Self {
            process: None,
            permit,
            left: (cpu, cpu * WALL_TIME_FACTOR + GRACE),
        }
    }

    /// Goes on with what another session of the same message has left of its time.
    pub fn set_time_left(&mut self, left: (Duration, Duration)) {
        self.left = left;
    }

    /// Returns the remaining time.
    pub fn time_left(&self) -> (Duration, Duration) {
        self.left
    }

    /// Runs a script on an input and a context, JSON texts. Blocks until the worker has answered or
    /// is killed.
    pub fn call(&mut self, script: &Script, input: &str, context: &str) -> CallResult {
        let called = self.answered(script, input, context);
        metrics().adapter_calls.count(
            called
                .output
                .as_ref()
                .map_or_else(|failure| failure.kind.as_str(), |_| "ok"),
        );
        called
    }

    fn answered(&mut self, script: &Script, input: &str, context: &str) -> CallResult {
        let (output, logs) = match self.ask(script, Some((input, context))) {
            Ok(answer) => (self.output(answer.outcome), answer.logs),
            Err(failure) => (Err(failure), Vec::new()),
        };
        CallResult { output, logs }
    }

    fn output(&self, outcome: Outcome) -> Result<Option<String>, Failure> {
        match outcome {
            Outcome::Output(output) => Ok(output),
            Outcome::Failed(failure) => Err(self.worded(failure)),
            Outcome::Unknown => Err(Failure::unavailable("its worker does not know it")),
        }
    }

    /// Checks that the code runs and defines `transform`.
    pub fn load(&mut self, script: &Script) -> Result<(), Failure> {
        match self.ask(script, None)?.outcome {
            Outcome::Output(_) | Outcome::Unknown => Ok(()),
            Outcome::Failed(failure) => Err(self.worded(failure)),
        }
    }

    /// The worker's process id, when there is one.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    fn ask(&mut self, script: &Script, on: Option<(&str, &str)>) -> Result<Answer, Failure> {
        if self.left.0.is_zero() || self.left.1.is_zero() {
            return Err(self.out_of_time(""));
        }
        // A worker may have died while it was idle, or by another hand: the next one decides.
        let mut gone = String::new();
        for _ in 0..3 {
            let mut process = match self.process.take() {
                Some(process) => process,
                None => self.permit.process().map_err(Failure::unavailable)?,
            };
            let begun = Instant::now();
            let answer = process.ask(script, on, self.left.0, self.left.1);
            self.left.1 = self.left.1.saturating_sub(begun.elapsed());
            match answer {
                Ok(answer) => {
                    self.left.0 = self
                        .left
                        .0
                        .saturating_sub(Duration::from_nanos(answer.used));
                    self.process = Some(process);
                    return Ok(answer);
                }
                Err(broken @ (CallError::Late { .. } | CallError::OutOfTime)) => {
                    metrics().adapter_kills.inc();
                    let allowed = self.left.0;
                    self.left = (Duration::ZERO, Duration::ZERO);
                    return Err(match broken {
                        CallError::Late {
                            on_core: Some(used),
                        } if used < allowed => Failure::unavailable(format!(
                            "it did not end within {} ms and had only {} of its {} ms on a core: \
                             its code may not end, or the machine is too busy",
                            begun.elapsed().as_millis(),
                            used.as_millis(),
                            allowed.as_millis()
                        )),
                        CallError::Late { .. } | CallError::OutOfTime | CallError::Gone(_) => {
                            self.out_of_time(" in a built-in function")
                        }
                    });
                }
                Err(CallError::Gone(how)) => gone = how,
            }
        }
        Err(Failure::new(
            Kind::Thrown,
            format!("the adapter ended the process that ran it ({gone})"),
        ))
    }

    /// A worker knows how much it was allowed, not how much there was.
    fn worded(&self, failure: Failure) -> Failure {
        match failure.kind {
            Kind::Time => Failure {
                position: failure.position,
                ..self.out_of_time("")
            },
            Kind::Code | Kind::Thrown | Kind::Memory | Kind::Unavailable => failure,
        }
    }

    fn out_of_time(&self, place: &str) -> Failure {
        let allowed = self.permit.options().limits.cpu;
        Failure::new(
            Kind::Time,
            format!(
                "the adapter used up its time of {} ms{place}",
                allowed.as_millis()
            ),
        )
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            self.permit.give_back(process);
        }
    }
}
