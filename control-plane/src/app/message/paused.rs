//! Messages of paused flows. One that waits is shown as held, whatever the log has it waiting for:
//! pausing a flow writes nothing about its messages, however many there are, and so does resuming
//! it.

use kanat_message_log::{EnvironmentFilter, Filter, Message};
use kanat_model::Error;
use kanat_model::flow::Status as FlowStatus;
use kanat_model::id::FlowId;
use kanat_model::message::Status;
use kanat_store::flow::{self, Flow};

use crate::app::Call;

/// Paused flows among those whose messages are shown.
#[derive(Debug, Default)]
pub struct PausedFlows(Vec<FlowId>);

impl PausedFlows {
    /// Returns the flow if it is paused.
    pub fn flow(flow: &Flow) -> Self {
        Self(if flow.status == FlowStatus::Paused {
            vec![flow.id.clone()]
        } else {
            Vec::new()
        })
    }

    /// Reads the paused flows of the caller's environment.
    pub async fn of_environment(call: &Call) -> Result<Self, Error> {
        let mut tx = call.read().await?;
        Ok(Self(
            flow::paused(&mut tx, &call.caller.environment_id).await?,
        ))
    }

    /// Returns whether the flow is one of them.
    pub fn contains(&self, flow: &FlowId) -> bool {
        self.0.contains(flow)
    }

    /// Returns the filter in terms of the log's statuses; `None` when it finds nothing.
    pub fn apply(&self, filter: Filter) -> Option<Filter> {
        if !self.0.contains(&filter.flow_id) || filter.statuses.is_empty() {
            return Some(filter);
        }
        let asked = filter.statuses;
        let statuses = Status::ALL
            .iter()
            .filter(|status| asked.contains(&status.while_paused()));
        let filter = Filter {
            statuses: statuses.copied().collect(),
            ..filter
        };
        Some(filter).filter(|filter| !filter.statuses.is_empty())
    }

    /// Returns the filter with these flows as its paused ones.
    pub fn apply_to_environment(&self, filter: EnvironmentFilter) -> EnvironmentFilter {
        EnvironmentFilter {
            paused: self.0.clone(),
            ..filter
        }
    }

    /// Returns the message as it is shown.
    pub fn show(&self, message: Message) -> Message {
        let status = message.status.while_paused();
        match status != message.status && self.0.contains(&message.flow_id) {
            // Its next attempt is due once the flow goes on.
            true => Message {
                status,
                next_attempt_at: None,
                ..message
            },
            false => message,
        }
    }
}

#[cfg(test)]
mod tests {
    use kanat_message_log::Tenant;

    use super::*;

    fn filter(statuses: &[Status]) -> Filter {
        let tenant = Tenant {
            account_id: "acc_1".into(),
            environment_id: "env_1".into(),
        };
        Filter {
            statuses: statuses.to_vec(),
            ..Filter::flow(tenant, FlowId::from("flw_1"))
        }
    }

    #[test]
    fn held_finds_all_that_waits_in_a_paused_flow_and_nothing_else_does() {
        let paused = PausedFlows(vec![FlowId::from("flw_1")]);
        let applied =
            |statuses: &[Status]| paused.apply(filter(statuses)).map(|filter| filter.statuses);
        assert_eq!(applied(&[]), Some(Vec::new()));
        assert_eq!(applied(&[Status::Held]), Some(Status::WAITING.to_vec()));
        assert_eq!(applied(&[Status::Received]), None);
        assert_eq!(applied(&[Status::Retrying]), None);
        assert_eq!(
            applied(&[Status::Retrying, Status::DeadLetter]),
            Some(vec![Status::DeadLetter])
        );
        assert_eq!(
            applied(&[Status::Processing]),
            Some(vec![Status::Processing])
        );
    }

    #[test]
    fn a_flow_that_runs_is_filtered_as_the_log_has_it() {
        let applied = PausedFlows::default()
            .apply(filter(&[Status::Held]))
            .map(|filter| filter.statuses);
        assert_eq!(applied, Some(vec![Status::Held]));
    }
}
