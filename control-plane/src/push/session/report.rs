//! What a session tells of its node.

use kanat_model::id::EnvironmentId;
use kanat_proto::node::v1::Load;

use crate::push::nodes::{Node, Rejected, Running, Status};
use crate::push::peer::Peer;
use crate::push::refusals::Withheld;

/// What the node runs of an environment.
pub fn runs(node: &mut Node, environment: &EnvironmentId, peer: Option<&Peer>, withheld: &Withheld<'_>) {
    let Some(peer) = peer else { return };
    let rejected = peer.exceptions().filter_map(|(id, entry)| {
        let message = withheld.message(id, entry)?;
        Some(Rejected { resource_id: id.to_owned(), message })
    });
    let mut rejected: Vec<_> = rejected.collect();
    rejected.sort_unstable_by(|a, b| a.resource_id.cmp(&b.resource_id));
    let running = Running {
        applied: peer.generation().map(|(epoch, generation)| (epoch.clone(), generation)),
        set_hash: peer.set_hash().unwrap_or_default(),
        rejected,
    };
    node.environments.insert(environment.clone(), running);
}

/// How busy the node is.
pub fn loaded(node: &mut Node, load: Option<&Load>) {
    if let Some(load) = load {
        node.in_flight = load.in_flight;
        node.status = if load.draining { Status::Draining } else { Status::Connected };
    }
}
