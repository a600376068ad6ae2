//! Steps of an attempt: each is called once, and its output is durable before the next one begins.
//! No node calls a step again whose output is in the log.

use std::time::{Duration, Instant};

use kanat_engine::Step;
use kanat_message_log::{SettleOutcome, Step as Output, StepCheckpoint};
use kanat_model::Timestamp;
use kanat_model::message::ErrorKind;
use kanat_net::outbound::Response;

use super::call::CallSpec;
use super::{End, Run, configuration, outputs, trace};
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
        let answer = Box::pin(self.call(request, &spec))
            .await
            .map_err(|end| rejected(step, end))?;
        self.keep(step, &answer).await
    }

    /// Keeps the output with the message, first in the log, then in memory.
    async fn keep(&mut self, step: &Step, answer: &Response) -> Result<(), End> {
        let output = outputs::of_answer(answer);
        let together: usize = self.work.steps.iter().map(|done| done.output.len()).sum();
        if answer.truncated || together + output.len() > OUTPUTS_LIMIT {
            let most = if answer.truncated {
                answer.body.len()
            } else {
                OUTPUTS_LIMIT - together
            };
            let message = format!(
                "the answer to step {:?} is longer than the {most} bytes that can be kept of it",
                step.name()
            );
            let mut failure = configuration(&message);
            failure.field = Some(step.place());
            self.trace.failed("step", step.name(), message);
            return Err(End::Failed {
                failure,
                answer: None,
            });
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
            SettleOutcome::Done => {}
            SettleOutcome::Fenced => return Err(End::Lost),
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
}

/// Makes the failure of a step final, if the step is defined so.
fn rejected(step: &Step, end: End) -> End {
    match end {
        End::Failed {
            mut failure,
            answer,
        } if step.rejects() => {
            failure.kind = ErrorKind::Rejected;
            End::Failed { failure, answer }
        }
        End::Failed { .. } | End::Filtered | End::Waits { .. } | End::Lost => end,
    }
}
