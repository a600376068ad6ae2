//! Warnings of a test about values that are valid and hardly meant: comparisons of a text with a
//! number, and parts of templates that render to nothing.

use kanat_engine::{Input, Program, Resources, Step};
use kanat_mapping::Effort;
use kanat_script::apart;

use super::{MAX_FAILURES, Run};

impl Run<'_> {
    /// Adds a warning for each remark on the mapping of `program`.
    pub(super) async fn note_mapping(&mut self, program: &Program) {
        let found = self
            .remarks(|input, resources| program.mapping_remarks(input, resources))
            .await;
        for (field, sentence) in found {
            self.note("mapped", &field, "warning", sentence);
        }
    }

    /// Adds a warning for each remark on the params of a step.
    pub(super) async fn note_step(&mut self, step: &Step) {
        let program = self.program;
        let found = self
            .remarks(|input, resources| program.step_remarks(step, input, resources))
            .await;
        for (param, sentence) in found {
            let place = format!("{}.{param}", step.name());
            self.note("step", &place, "warning", sentence);
        }
    }

    /// Adds a warning for each remark on the endpoint and the headers of the target.
    pub(super) async fn note_target(&mut self) {
        let program = self.program;
        let found = self
            .remarks(|input, resources| program.target_remarks(input, resources))
            .await;
        for (place, sentence) in found {
            self.note("delivery", &place, "warning", sentence);
        }
    }

    /// Returns the first remarks that a search finds. The search has a bound of its own, so that it
    /// takes nothing from the evaluation.
    async fn remarks(
        &self,
        search: impl Fn(&Input<'_>, &dyn Resources) -> Vec<(String, String)> + Send + Sync,
    ) -> Vec<(String, String)> {
        let search = |effort: &Effort| search(&self.input(effort), self.samples);
        let mut found = apart::evaluate(&Effort::default(), search).await;
        found.truncate(MAX_FAILURES);
        for (_, sentence) in &mut found {
            *sentence = self.mask.apply(sentence).into_owned();
        }
        found
    }
}
