//! Subscription of a node to one environment, and the environments that a node may subscribe to.

use std::sync::Arc;

use kanat_proto::node::v1::EnvironmentState;
use tonic::Status;

use crate::push::environment_sync::EnvironmentSync;
use crate::push::feed::{Feed, State, Urgency};
use crate::push::grant::Grant;
use crate::push::set::PlanSet;
use crate::push::source::Environment;

/// Subscription of a stream to one environment.
pub struct Subscription {
    feed: Arc<Feed>,
    /// State of the environment on the node; none before the first set is known.
    pub sync: Option<EnvironmentSync>,
    /// State that the node claimed to hold in its hello, until `sync` is created.
    claimed_state: Option<EnvironmentState>,
    /// Number of reads of the feed that had begun when the subscription was opened.
    reads_at_open: u64,
}

impl Subscription {
    pub fn open(feed: Arc<Feed>, claimed_state: Option<EnvironmentState>) -> Self {
        let reads_at_open = feed.state().reads_begun;
        // A node that was connected to another control plane may hold more than this one has read.
        feed.request_read(Urgency::Batched);
        Self {
            feed,
            sync: None,
            claimed_state,
            reads_at_open,
        }
    }

    /// Returns whether the set that the node holds is known, so that a delta can start from it.
    pub fn has_held_set(&self) -> bool {
        self.sync
            .as_ref()
            .is_some_and(|sync| sync.version().is_some())
    }

    /// Returns the set that the node is to run, unless the store was not read yet.
    pub fn set(&self) -> Option<Arc<PlanSet>> {
        self.feed.state().set
    }

    /// Creates the state of the environment on the node once the set is known, and returns whether
    /// it did. If the hello names a newer generation than that of the set, a read that begins after
    /// the subscription is awaited first.
    pub fn init_sync(&mut self) -> bool {
        let State {
            set,
            last_successful_read_number,
            ..
        } = self.feed.state();
        let Some(set) = set.filter(|_| self.sync.is_none()) else {
            return false;
        };
        let is_ahead = self
            .claimed_state
            .as_ref()
            .is_some_and(|state| state.generation > set.generation);
        if is_ahead && last_successful_read_number <= self.reads_at_open {
            return false;
        }
        self.sync = Some(EnvironmentSync::new(
            self.claimed_state.take().as_ref(),
            &set,
        ));
        true
    }
}

/// Checks the environments that a node names.
///
/// # Errors
/// One of them does not exist.
pub fn check(named: &[String], all: &[Environment]) -> Result<(), Status> {
    match named.iter().find(|name| {
        !all.iter()
            .any(|environment| has_id_or_name(environment, name))
    }) {
        Some(unknown) => Err(Status::not_found(format!(
            "environment {unknown:?} does not exist"
        ))),
        None => Ok(()),
    }
}

/// Checks the environments that a node asks for.
///
/// # Errors
/// One of them is not open to the node.
pub fn check_grant(named: &[String], grant: &Grant, all: &[Environment]) -> Result<(), Status> {
    if named.is_empty() && !grant.is_unbound() {
        return Err(Status::permission_denied(
            "the node's token or certificate is bound to some environments, and it asks for all: \
             --environments names those that it serves",
        ));
    }
    let mut wanted = all
        .iter()
        .filter(|environment| named.iter().any(|name| has_id_or_name(environment, name)));
    match wanted.find(|environment| !grant.allows(environment.id.as_str(), &environment.name)) {
        Some(Environment { name, .. }) => Err(Status::permission_denied(format!(
            "the node asks for environment {name:?}, which its token or certificate is not bound to"
        ))),
        None => Ok(()),
    }
}

/// Returns the environments that a node serves: those that it names by id or name, or all.
pub fn served(named: &[String], all: Vec<Environment>) -> Vec<Environment> {
    all.into_iter()
        .filter(|e| named.is_empty() || named.iter().any(|name| has_id_or_name(e, name)))
        .collect()
}

/// Returns whether an environment has this id or this name.
fn has_id_or_name(environment: &Environment, name: &str) -> bool {
    environment.id.as_str() == name || environment.name == name
}
