//! State of the node of a session: writes it into [`Node`], and returns the target for a heartbeat.

use kanat_model::id::EnvironmentId;
use kanat_plan_stream::Kind;
use kanat_proto::node::v1::{EnvironmentState, Load};

use crate::push::environment_sync::EnvironmentSync;
use crate::push::nodes::{EnvironmentStatus, Node, Rejection, Status};
use crate::push::refusals::Withheld;

/// Updates the state of an environment on the node.
pub fn update_environment(
    node: &mut Node,
    environment: &EnvironmentId,
    sync: Option<&EnvironmentSync>,
    withheld: &Withheld<'_>,
) {
    let Some(sync) = sync else { return };
    let rejected = sync.deviations().filter_map(|(id, entry)| {
        let message = withheld.message(id, entry)?;
        Some(Rejection {
            resource_id: id.to_owned(),
            message,
        })
    });
    let mut rejected: Vec<_> = rejected.collect();
    if let Some(reason) = sync.refusal() {
        let message = format!("the whole set was refused, and the one before it runs: {reason}");
        rejected.push(Rejection {
            resource_id: Kind::Environment.resource_id(environment.as_str()),
            message,
        });
    }
    rejected.sort_unstable_by(|a, b| a.resource_id.cmp(&b.resource_id));
    let running = EnvironmentStatus {
        applied: sync.version(),
        set_hash: sync.set_hash().unwrap_or_default(),
        rejected,
    };
    node.environments.insert(environment.clone(), running);
}

/// Updates the load of the node.
pub fn update_load(node: &mut Node, load: Option<&Load>) {
    if let Some(load) = load {
        node.in_flight = load.in_flight;
        node.status = if load.draining {
            Status::Draining
        } else {
            Status::Connected
        };
    }
}

/// Returns the set of an environment that the node should run, for a heartbeat.
pub fn target(environment: &EnvironmentId, sync: &EnvironmentSync) -> Option<EnvironmentState> {
    let (epoch, generation, set_hash) = sync.target()?;
    Some(EnvironmentState {
        environment_id: environment.to_string(),
        epoch: epoch.to_string(),
        generation,
        set_hash: set_hash.to_vec(),
        resources: Vec::new(),
    })
}
