//! Pushes of a session to its node.

use std::pin::pin;
use std::sync::Arc;

use kanat_model::id::EnvironmentId;
use kanat_plan_stream::HEARTBEAT_INTERVAL;
use kanat_proto::node::v1::control_message::Kind as Out;
use kanat_proto::node::v1::{Delta, Heartbeat, SnapshotBegin, SnapshotChunk, SnapshotEnd};
use tokio::time::interval;

use super::{End, Session, node_state};
use crate::push::environment_sync::{EnvironmentSync, Push, PushKind};
use crate::push::nodes::Registration;
use crate::push::set::PlanSet;

impl Session {
    /// Sends the pushes that the node needs, and returns whether there were any.
    pub(super) async fn push(&mut self, registration: &Registration<'_>) -> Result<bool, End> {
        let mut pushes = Vec::new();
        for (environment, subscription) in &mut self.subscriptions {
            // Later changes are sent together, once this push is answered.
            if subscription
                .sync
                .as_ref()
                .is_some_and(EnvironmentSync::has_push_in_flight)
            {
                continue;
            }
            let withheld =
                self.context
                    .refusals
                    .withheld(environment, &self.node.build, self.plan_schemas);
            if subscription.init_sync() {
                registration.update(|node| {
                    node_state::update_environment(
                        node,
                        environment,
                        subscription.sync.as_ref(),
                        &withheld,
                    )
                });
            }
            let Some(set) = subscription.set() else {
                continue;
            };
            let Some(sync) = subscription.sync.as_mut() else {
                continue;
            };
            if let Some(push) = sync.next(&set, &withheld, self.nonce + 1) {
                self.nonce += 1;
                pushes.push((environment.clone(), push));
            }
        }
        let any = !pushes.is_empty();
        for (environment, push) in pushes {
            self.send_push(environment, push).await?;
        }
        Ok(any)
    }

    async fn send_push(&mut self, environment: EnvironmentId, push: Push) -> Result<(), End> {
        let environment_id = environment.into_string();
        let nonce = push.nonce;
        let epoch = push.set.epoch.to_string();
        let generation = push.set.generation;
        let set_hash = push.set_hash.to_vec();
        match push.kind {
            PushKind::Delta {
                from_generation,
                upserts,
                removals,
            } => {
                self.send(Out::Delta(Delta {
                    nonce,
                    environment_id,
                    epoch,
                    from_generation,
                    generation,
                    upserts,
                    removals,
                    set_hash,
                    tables: Vec::new(),
                }))
                .await
            }
            PushKind::Snapshot(sent) => {
                self.encode(&sent).await?;
                let encoded = sent.encoded();
                let begin = SnapshotBegin {
                    nonce,
                    environment_id,
                    epoch,
                    generation,
                    length: encoded.length(),
                    sha256: encoded.sha256().to_vec(),
                    set_hash,
                    // A set that is empty only because all is withheld must not empty the node.
                    allow_empty: push.set.is_empty() && push.set.allows_empty(),
                };
                self.send(Out::SnapshotBegin(begin)).await?;
                for data in encoded.chunks() {
                    self.send(Out::SnapshotChunk(SnapshotChunk { nonce, data }))
                        .await?;
                }
                self.send(Out::SnapshotEnd(SnapshotEnd { nonce })).await
            }
        }
    }

    /// Encodes a snapshot, which may wait long for its turn. Heartbeats meanwhile name no set: the
    /// snapshot is on its way.
    async fn encode(&self, set: &Arc<PlanSet>) -> Result<(), End> {
        let mut encoding = pin!(self.context.encode(Arc::clone(set)));
        let mut heartbeat = interval(HEARTBEAT_INTERVAL);
        loop {
            tokio::select! {
                () = &mut encoding => return Ok(()),
                _ = heartbeat.tick() => self.send(Out::Heartbeat(Heartbeat::default())).await?,
            }
        }
    }
}
