//! One environment of a stream, and which environments a stream has.

use std::sync::Arc;

use kanat_plan_stream::{Schemas, parts};
use kanat_proto::node::v1::EnvironmentState;
use tonic::Status;

use crate::push::feed::Feed;
use crate::push::hub::Hub;
use crate::push::older::{Older, Target};
use crate::push::peer::{Peer, Tables};
use crate::push::remote::Grant;
use crate::push::source::Environment;

/// One environment of a stream.
pub struct Line {
    feed: Arc<Feed>,
    /// For a build that does not take what is published as it is.
    older: Option<Arc<Older>>,
    /// What the node holds; none until it has begun.
    pub peer: Option<Peer>,
    /// What the node said that it holds, until then.
    hello: Option<EnvironmentState>,
    reads_at_hello: u64,
}

impl Line {
    pub fn open(feed: Arc<Feed>, schemas: Schemas, hello: Option<EnvironmentState>) -> Self {
        let reads_at_hello = feed.state().reads;
        // A node that was served by another control plane may know more than this one has read.
        feed.wanted(hello.as_ref().map_or(0, |state| state.generation));
        let older = (schemas.max < parts::SCHEMA).then(|| feed.older());
        Self {
            feed,
            older,
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

    /// What the node is to run, as far as that is known by now.
    pub fn target(&self, hub: &Arc<Hub>) -> Option<Target> {
        match &self.older {
            Some(older) => older.latest(hub, &self.feed),
            None => {
                let state = self.feed.state();
                Some(Target {
                    set: state.set?,
                    reads: Some(state.reads),
                })
            }
        }
    }

    /// Begins, if it has not; gives whether it did. A node that claims to be ahead is taken for it
    /// only after a read that came later than its hello.
    pub fn begin(&mut self, target: &Target, tables: Tables) -> bool {
        let is_ahead = self
            .hello
            .as_ref()
            .is_some_and(|hello| hello.generation > target.set.generation);
        if self.peer.is_some()
            || (is_ahead
                && target
                    .reads
                    .is_none_or(|reads| reads <= self.reads_at_hello))
        {
            return false;
        }
        self.peer = Some(Peer::new(self.hello.take().as_ref(), &target.set).with_tables(tables));
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
