//! One environment of a stream, and which environments a stream has.

use std::sync::Arc;

use kanat_proto::node::v1::EnvironmentState;
use tonic::Status;

use crate::push::feed::{Feed, State};
use crate::push::peer::Peer;
use crate::push::remote::Grant;
use crate::push::set::Set;
use crate::push::source::Environment;

/// One environment of a stream.
pub struct Line {
    feed: Arc<Feed>,
    /// What the node holds; none until it has begun.
    pub peer: Option<Peer>,
    /// What the node said that it holds, until then.
    hello: Option<EnvironmentState>,
    reads_at_hello: u64,
}

impl Line {
    pub fn open(feed: Arc<Feed>, hello: Option<EnvironmentState>) -> Self {
        let reads_at_hello = feed.state().reads;
        // A node that was served by another control plane may know more than this one has read.
        feed.wanted(hello.as_ref().map_or(0, |state| state.generation));
        Self {
            feed,
            peer: None,
            hello,
            reads_at_hello,
        }
    }

    /// Whether it is known what the node holds of it.
    pub fn is_held(&self) -> bool {
        self.peer
            .as_ref()
            .is_some_and(|peer| peer.generation().is_some())
    }

    /// Returns the set that the node is to run, unless the store was not read yet.
    pub fn set(&self) -> Option<Arc<Set>> {
        self.feed.state().set
    }

    /// Begins, if it has not, and returns whether it did. That a node is ahead of the store is
    /// believed only after a read that came later than its hello.
    pub fn begin(&mut self) -> bool {
        let State { set, reads } = self.feed.state();
        let Some(set) = set.filter(|_| self.peer.is_none()) else {
            return false;
        };
        let is_ahead = self
            .hello
            .as_ref()
            .is_some_and(|hello| hello.generation > set.generation);
        if is_ahead && reads <= self.reads_at_hello {
            return false;
        }
        self.peer = Some(Peer::new(self.hello.take().as_ref(), &set));
        true
    }
}

/// Errors when a node names an environment that does not exist.
pub fn check(named: &[String], all: &[Environment]) -> Result<(), Status> {
    match named
        .iter()
        .find(|name| !all.iter().any(|environment| is(environment, name)))
    {
        Some(unknown) => Err(Status::not_found(format!(
            "environment {unknown:?} does not exist"
        ))),
        None => Ok(()),
    }
}

/// Errors when a node asks for an environment that is not open to it.
pub fn check_grant(named: &[String], grant: &Grant, all: &[Environment]) -> Result<(), Status> {
    if named.is_empty() && !grant.is_unbound() {
        return Err(Status::permission_denied(
            "the node's token or certificate is bound to some environments, and it asks for all: \
             --environments names those that it serves",
        ));
    }
    let mut wanted = all
        .iter()
        .filter(|environment| named.iter().any(|name| is(environment, name)));
    match wanted.find(|environment| !grant.allows(environment.id.as_str(), &environment.name)) {
        Some(Environment { name, .. }) => Err(Status::permission_denied(format!(
            "the node asks for environment {name:?}, which its token or certificate is not bound to"
        ))),
        None => Ok(()),
    }
}

/// The environments that a node serves: those that it names by id or name, or all.
pub fn served(named: &[String], all: Vec<Environment>) -> Vec<Environment> {
    all.into_iter()
        .filter(|e| named.is_empty() || named.iter().any(|name| is(e, name)))
        .collect()
}

fn is(environment: &Environment, name: &str) -> bool {
    environment.id.as_str() == name || environment.name == name
}
