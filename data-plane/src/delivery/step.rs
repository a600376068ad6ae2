//! Steps of an attempt: each is called once, and its output is durable before the next one begins.
//! No node calls a step again whose output is in the log.

use std::time::{Duration, Instant};

use kanat_engine::Step;
use kanat_message_log::{LeasedWriteOutcome, Step as Output, StepCheckpoint};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use kanat_net::outbound::Response;

use super::call::CallSpec;
use super::{End, Run, outputs, trace};
use crate::persist::persist;

/// Size limit of the outputs of all steps of one message, in bytes.
const OUTPUTS_LIMIT: usize = 8 << 20;

/// Delay of a message for whose outputs there is no memory.
const MEMORY_PAUSE: Duration = Duration::from_secs(1);

impl Run<'_> {
    pub(super) async fn step(&mut self, step: &Step) -> Result<(), End> {
        let is_done = |done: &&Output| done.name == step.name();
        if let Some(done) = self.work.steps.iter().find(is_done) {
            trace::kept(&mut self.trace, self.work, done, &self.mask);
            return Ok(());
        }
        let begun = Instant::now();
        let made = self
            .evaluate(|program, input, resources| program.step_request(step, input, resources))
            .await;
        let request = match made {
            Ok(Some(request)) => request,
            Ok(None) => {
                self.trace.skipped(step.name());
                return Ok(());
            }
            Err(failure) => return Err(self.refused(failure, begun)),
        };
        let key = format!("{}.{}", self.work.id, step.name());
        let spec = CallSpec::step(step, &key);
        let kept = match Box::pin(self.call(request, &spec)).await {
            Ok(answer) => self.keep(step, &answer).await,
            Err(end) => Err(end),
        };
        kept.map_err(|end| rejected(step, end))
    }

    /// Keeps the output with the message, first in the log, then in memory.
    async fn keep(&mut self, step: &Step, answer: &Response) -> Result<(), End> {
        let together: usize = self.work.steps.iter().map(|done| done.output.len()).sum();
        if answer.truncated {
            return Err(self.too_long(step, answer.body.len()));
        }
        let output = match outputs::read_answer(answer) {
            Ok(output) => output,
            Err(error) => {
                let status = answer.status;
                let message = format!(
                    "the answer {status} to step {:?} contradicts its content type: {error}",
                    step.name()
                );
                return Err(self.unusable(step, ErrorKind::TargetRefused, message));
            }
        };
        if together + output.len() > OUTPUTS_LIMIT {
            return Err(self.too_long(step, OUTPUTS_LIMIT - together));
        }
        let Some(lease) = self.lease.cloned() else {
            return Err(End::Lost);
        };
        let bytes = output.len();
        let name = step.name().to_owned();
        let status = u32::from(answer.status);
        let checkpoint = StepCheckpoint {
            lease,
            name,
            status,
            output: output.clone(),
        };
        let log = self.tools.log;
        let id = &self.work.id;
        match persist(id, || log.checkpoint(checkpoint.clone())).await {
            LeasedWriteOutcome::Done => {}
            LeasedWriteOutcome::Fenced => return Err(End::Lost),
        }
        kanat_failpoint::hit("step.kept");
        self.work.steps.push(Output {
            name: checkpoint.name,
            status,
            output,
        });
        self.steps = outputs::document(&self.work.steps);
        match self.tools.memory.take(bytes) {
            Some(taken) => {
                self.memory.push(taken);
                Ok(())
            }
            None => Err(End::Waits {
                due: Timestamp::steady().after(MEMORY_PAUSE),
            }),
        }
    }

    /// Fails a step whose answer is longer than the `most` bytes that there is room for.
    fn too_long(&mut self, step: &Step, most: usize) -> End {
        let message = format!(
            "the answer to step {:?} is longer than the {most} bytes that can be kept of it",
            step.name()
        );
        self.unusable(step, ErrorKind::Configuration, message)
    }

    /// Fails a step whose call was recorded as a success, and whose answer cannot be used.
    fn unusable(&mut self, step: &Step, kind: ErrorKind, message: String) -> End {
        let message = self.mask.apply(&message).into_owned();
        self.trace.failed("step", step.name(), message.clone());
        End::Failed {
            failure: Failure {
                field: Some(step.place()),
                ..Failure::new(kind, message)
            },
            answer: None,
        }
    }
}

/// Makes the failure of a step final, if the step is defined so.
fn rejected(step: &Step, end: End) -> End {
    match end {
        End::Failed {
            mut failure,
            answer,
        } if step.rejects() && failure.kind != ErrorKind::Condition => {
            failure.kind = ErrorKind::Rejected;
            End::Failed { failure, answer }
        }
        End::Failed { .. } | End::Filtered | End::Waits { .. } | End::Lost => end,
    }
}
