//! Nodes to the wire.

use kanat_model::id::EnvironmentId;
use kanat_model::saturated;
use kanat_proto::v1 as wire;

use crate::carry::carry;
use crate::push::Node;
use crate::push::nodes::Rejection;

/// A node, with what it runs of `environment`.
pub fn node(node: Node, environment: &EnvironmentId) -> wire::Node {
    let running = node.environments.get(environment);
    let applied = running.and_then(|running| running.applied.as_ref());
    let set_hash = running
        .filter(|running| running.applied.is_some())
        .map(|running| running.set_hash.to_string());
    let rejected = running
        .into_iter()
        .flat_map(|running| running.rejected.iter().cloned());
    carry!(
        wire::Node, node { address, in_flight }
        text { id }
        word { status }
        with {
            rejected: rejected.map(rejection).collect(),
            epoch: applied.map_or(String::new(), |applied| applied.epoch.to_string()),
            generation: applied.map_or(0, |applied| saturated(applied.generation)),
            set_hash: set_hash.unwrap_or_default(),
            environments: node
                .environments
                .into_keys()
                .map(EnvironmentId::into_string)
                .collect(),
            version: node.build,
            last_seen_at: node.last_seen.to_string(),
        }
    )
}

fn rejection(rejected: Rejection) -> wire::RejectedResource {
    wire::RejectedResource {
        resource: rejected.resource_id,
        message: rejected.message,
    }
}
