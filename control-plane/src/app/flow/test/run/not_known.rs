//! Values that a test does not know because they are not given. What reads them says nothing of a
//! run.

use std::collections::BTreeSet;
use std::time::Instant;

use kanat_engine::{Read, failure_reads};
use kanat_model::message::Failure;

use super::{End, Run};

impl Run<'_> {
    /// Returns the message about those of these values that are not given; none when all are.
    pub(super) fn not_known_of(&self, reads: Vec<Read>) -> Option<String> {
        let mut steps = BTreeSet::new();
        let mut sentences = Vec::new();
        for read in reads {
            match read {
                Read::Step(step) if self.not_known.contains(&step) => {
                    steps.insert(format!("{step:?}"));
                }
                Read::Api if self.sample.lacks_api && sentences.is_empty() => {
                    sentences.push("trigger.api is not known in a test: give api".to_owned());
                }
                Read::Step(_) | Read::Api => {}
            }
        }
        let names = steps.iter().map(String::as_str).collect::<Vec<_>>();
        let outputs = match names.as_slice() {
            [] => None,
            [step] => Some(format!("the output of step {step} is")),
            steps => Some(format!("the outputs of steps {} are", steps.join(", "))),
        };
        let outputs =
            outputs.map(|outputs| format!("{outputs} not known in a test: give stepOutputs"));
        sentences.extend(outputs);
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    /// A failure of an expression that reads what is not known says nothing of a run.
    pub(super) fn refused_or_not_known(&mut self, failure: Failure, begun: Instant) -> End {
        let Some(note) = self.not_known_of(failure_reads(&failure)) else {
            return self.refused(failure, begun);
        };
        let field = failure.field.unwrap_or_default();
        let stage = if field.starts_with("target.") {
            "delivery"
        } else {
            "mapped"
        };
        self.note(stage, &field, "skipped", note);
        End::NotKnown
    }
}
