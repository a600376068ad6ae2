//! Messages of a node to its session.

use kanat_model::id::EnvironmentId;
use kanat_proto::node::v1::NodeMessage;
use kanat_proto::node::v1::node_message::Kind as In;
use tonic::Status;

use super::subscription::Subscription;
use super::{End, Session, node_state};
use crate::push::environment_sync::{EnvironmentSync, SyncOutcome};
use crate::push::nodes::Registration;
use crate::push::observations::Observation;

impl Session {
    /// Handles a message of the node.
    pub(super) fn handle_message(
        &mut self,
        message: NodeMessage,
        registration: &Registration<'_>,
    ) -> Result<(), End> {
        match message.kind {
            Some(In::Ack(ack)) => self.handle_answer(&ack.environment_id, registration, |sync| {
                sync.handle_ack(&ack)
            }),
            Some(In::Nack(nack)) => {
                self.handle_answer(&nack.environment_id, registration, |sync| {
                    sync.handle_nack(&nack)
                })
            }
            Some(In::Heartbeat(heartbeat)) => {
                registration.message_received(|node| {
                    node_state::update_load(node, heartbeat.load.as_ref())
                });
                for state in &heartbeat.states {
                    let subscription = self
                        .subscriptions
                        .get_mut(&EnvironmentId::from(state.environment_id.as_str()));
                    let ended = subscription
                        .and_then(|subscription| subscription.sync.as_mut())
                        .map(|sync| sync.handle_heartbeat(state));
                    if ended == Some(SyncOutcome::Mismatch) {
                        let environment = &state.environment_id;
                        tracing::warn!(
                            node.id = %self.node.id,
                            environment.id = environment,
                            "the node runs another set than the one it was sent",
                        );
                    }
                }
                Ok(())
            }
            Some(In::SnapshotRequest(request)) => {
                let environment = request.environment_id;
                let reason = request.reason;
                tracing::warn!(
                    node.id = %self.node.id,
                    environment.id = environment,
                    reason,
                    "node asks for a snapshot",
                );
                if let Some(Subscription {
                    sync: Some(sync), ..
                }) = self.subscriptions.get_mut(&EnvironmentId::new(environment))
                {
                    sync.require_snapshot();
                }
                Ok(())
            }
            Some(In::Observed(observed)) => {
                // A node reports on the environments that it serves alone.
                let served = |id: &str| self.subscriptions.contains_key(&EnvironmentId::from(id));
                let connectors = observed
                    .connectors
                    .into_iter()
                    .filter(|seen| served(&seen.environment_id));
                connectors.for_each(|seen| {
                    self.context
                        .observations
                        .report(Observation::Connector(seen))
                });
                if observed.nonce > 0 {
                    self.context.observations.report(Observation::Answered {
                        node: self.node.id.clone(),
                        nonce: observed.nonce,
                    });
                }
                Ok(())
            }
            // The node has finished its messages.
            Some(In::Drained(_)) => Err(End::Closed),
            Some(In::Hello(_)) => Err(End::Failed(Status::invalid_argument(
                "a hello is the first message of a stream, and no other",
            ))),
            // A newer build may send messages that this one does not know.
            None => Ok(()),
        }
    }

    /// Handles an ack or a nack, as `answer` does on the environment's state.
    fn handle_answer(
        &mut self,
        environment: &str,
        registration: &Registration<'_>,
        answer: impl FnOnce(&mut EnvironmentSync) -> SyncOutcome,
    ) -> Result<(), End> {
        let environment = EnvironmentId::from(environment);
        let Some(subscription) = self.subscriptions.get_mut(&environment) else {
            return Ok(());
        };
        let Some(sync) = &mut subscription.sync else {
            return Ok(());
        };
        let build = &self.node.build;
        let node = &self.node.id;
        match answer(sync) {
            SyncOutcome::Applied {
                generation,
                refused,
            } => {
                tracing::debug!(
                    node.id = %node,
                    environment.id = %environment,
                    generation,
                    "node applied plans",
                );
                for (resource, refusal) in refused {
                    tracing::warn!(
                        node.id = %node,
                        resource.id = resource,
                        reason = refusal.message,
                        "node refused a resource",
                    );
                    self.context.refusals.note(
                        (&environment, generation),
                        build,
                        &resource,
                        refusal,
                    );
                }
            }
            SyncOutcome::Refused(reason) => {
                tracing::error!(
                    node.id = %node,
                    environment.id = %environment,
                    reason,
                    "node refused a whole set",
                );
            }
            SyncOutcome::NoEffect => {}
            SyncOutcome::Mismatch => {
                tracing::warn!(
                    node.id = %node,
                    environment.id = %environment,
                    "the node runs another set than the one it was sent",
                );
            }
            SyncOutcome::Broken => {
                return Err(End::Failed(Status::aborted(
                    "after a second snapshot the node still reports another set than the one that \
                     was sent",
                )));
            }
        }
        let withheld = self
            .context
            .refusals
            .withheld(&environment, build, self.plan_schemas);
        registration.message_received(|node| {
            node_state::update_environment(
                node,
                &environment,
                subscription.sync.as_ref(),
                &withheld,
            )
        });
        self.answered.notify_one();
        Ok(())
    }
}
