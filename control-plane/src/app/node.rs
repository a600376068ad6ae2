//! Use-cases of nodes.

use std::collections::{BTreeSet, HashSet};

use kanat_model::Error;
use kanat_model::id::EnvironmentId;
use kanat_model::page::Page;
use kanat_store::{environment, node};

use crate::app::{Call, Caller};
use crate::push::Node;
use crate::push::nodes::Status;

/// The nodes that serve an environment of the caller's account, connected ones first. Of what they
/// serve and refuse, only what is the caller's shows.
pub async fn list(call: &Call) -> Result<Vec<Node>, Error> {
    let mut tx = call.read().await?;
    let everything = Page {
        limit: u32::MAX,
        offset: 0,
    };
    let own = environment::list(&mut tx, &call.caller.account_id, "", everything)
        .await?
        .items;
    let saved = node::all(&mut tx).await?;
    drop(tx);

    let own: BTreeSet<_> = own
        .into_iter()
        .map(|environment| environment.id)
        .filter(|id| reaches(&call.caller, id))
        .collect();
    let mut nodes = call.app.hub.nodes();
    let known: HashSet<_> = nodes.iter().map(|node| node.id.clone()).collect();
    nodes.extend(
        saved
            .into_iter()
            .filter(|node| !known.contains(&node.id))
            .map(Node::from_record),
    );
    for node in &mut nodes {
        node.environments.retain(|id, _| own.contains(id));
    }
    nodes.retain(|node| !node.environments.is_empty());
    nodes.sort_by_key(|node| node.status == Status::Disconnected);
    Ok(nodes)
}

fn reaches(caller: &Caller, environment: &EnvironmentId) -> bool {
    caller
        .bound_to
        .as_ref()
        .is_none_or(|bound| bound == environment)
}
