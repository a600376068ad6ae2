//! All plans that this node runs at one moment, found by flow and by webhook token.

use std::collections::BTreeMap;
use std::sync::Arc;

use kanat_model::Timestamp;
use kanat_model::id::{EnvironmentId, FlowId};
use kanat_plan_stream::ShardedMap;

use super::deployed::{DeployedFlow, WebhookTokenHash};
use super::environment::Environment;
use super::published::{Coverage, Hosts};
use super::{Runnable, versions};

/// The plans of all environments. A snapshot is never changed: `Snapshot::with` makes the next one.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    environments: BTreeMap<EnvironmentId, Arc<Environment>>,
    flows: ShardedMap<FlowId, Arc<DeployedFlow>>,
    webhooks: ShardedMap<[u8; 32], Webhook>,
    /// Environments by the hosts of requests to their published APIs.
    hosts: Arc<Hosts>,
    /// The environments that the node is to serve; not known before the first contact with a
    /// control plane.
    served: Option<Vec<EnvironmentId>>,
    /// True if the node has once had every environment that it was to serve.
    was_complete: bool,
}

#[derive(Debug, Clone)]
struct Webhook {
    flow: Arc<DeployedFlow>,
    /// Not accepted from this instant on.
    expires_at: Option<Timestamp>,
}

/// Change of one flow from one snapshot to the next.
#[derive(Debug)]
pub struct FlowChange {
    pub before: Option<Arc<DeployedFlow>>,
    pub after: Option<Arc<DeployedFlow>>,
}

impl Snapshot {
    /// Returns the flow that a webhook token opens at `now`, by the token's SHA-256.
    pub fn webhook(&self, token_sha256: &[u8; 32], now: Timestamp) -> Option<&Arc<DeployedFlow>> {
        let webhook = self.webhooks.get(token_sha256)?;
        webhook
            .expires_at
            .is_none_or(|expires_at| now < expires_at)
            .then_some(&webhook.flow)
    }

    pub fn flow(&self, id: &FlowId) -> Option<&Arc<DeployedFlow>> {
        self.flows.get(id)
    }

    pub fn environment(&self, id: &EnvironmentId) -> Option<&Arc<Environment>> {
        self.environments.get(id)
    }

    /// Returns a deployed flow with the resources of its environment; `None` when the node does not
    /// serve the environment.
    ///
    /// # Errors
    /// The flow cannot be compiled, see [`DeployedFlow::compiled`].
    pub fn runnable(&self, flow: &DeployedFlow) -> Result<Option<Runnable>, versions::Error> {
        let Some(environment) = self.environment(&flow.environment_id) else {
            return Ok(None);
        };
        let environment = Arc::clone(environment);
        Ok(Some(Runnable {
            flow: flow.compiled()?,
            environment,
            removed: flow.removed.clone(),
        }))
    }

    /// Returns the environment whose published APIs a request to this host is for.
    pub(crate) fn of_host(&self, host: &str) -> Option<&Arc<Environment>> {
        self.environment(self.hosts.find(host)?)
    }

    /// Returns every environment that the node holds.
    pub fn environments(&self) -> impl Iterator<Item = &Arc<Environment>> {
        self.environments.values()
    }

    /// Returns every deployed flow, in no order.
    pub fn flows(&self) -> impl Iterator<Item = &Arc<DeployedFlow>> {
        self.flows.iter().map(|(_, flow)| flow)
    }

    /// Returns whether the node has every environment that it is to serve. A node that is to serve
    /// none is not complete: there is always a default environment, so its list is wrong.
    pub fn is_complete(&self) -> bool {
        self.served.as_ref().is_some_and(|served| {
            !served.is_empty() && served.iter().all(|id| self.environments.contains_key(id))
        })
    }

    pub(super) fn served(&self) -> Option<&[EnvironmentId]> {
        self.served.as_deref()
    }

    /// Returns the snapshot with these environments as those that the node is to serve.
    #[must_use]
    pub(super) fn with_served(&self, environments: Vec<EnvironmentId>) -> Self {
        let mut next = Self {
            served: Some(environments),
            ..self.clone()
        };
        next.note_complete();
        next
    }

    /// Returns the snapshot with `environment` in the place of its former generation, of which
    /// these flows changed.
    #[must_use]
    pub(super) fn with(&self, environment: Environment, changes: &[FlowChange]) -> Self {
        let mut next = self.clone();
        let settings = environment.settings.clone();
        let former = next
            .environments
            .insert(environment.id.clone(), Arc::new(environment));
        // Settings that have not changed are the same object.
        let is_same = |former: Arc<Environment>| match (&former.settings, &settings) {
            (Some(former), Some(settings)) => Arc::ptr_eq(former, settings),
            (former, settings) => former.is_none() && settings.is_none(),
        };
        if !former.is_some_and(is_same) {
            next.rebuild_hosts();
        }
        next.note_complete();
        next.index_flows(changes);
        next
    }

    /// Returns the snapshot without an environment that this node no longer serves.
    #[must_use]
    pub(super) fn without(&self, id: &EnvironmentId) -> Self {
        let mut next = self.clone();
        next.environments.remove(id);
        next.rebuild_hosts();
        next.note_complete();
        let gone = self.flows().filter(|flow| flow.environment_id == *id);
        let gone: Vec<_> = gone
            .map(|flow| FlowChange {
                before: Some(Arc::clone(flow)),
                after: None,
            })
            .collect();
        next.index_flows(&gone);
        next
    }

    /// Sets `was_complete` once the node has every environment. It is never reset, so that a new
    /// environment does not make the node refuse calls.
    fn note_complete(&mut self) {
        if !self.was_complete && self.is_complete() {
            self.was_complete = true;
            self.rebuild_hosts();
        }
    }

    /// Rebuilds the index of hosts.
    fn rebuild_hosts(&mut self) {
        let hosts = self
            .environments
            .values()
            .map(|environment| (&environment.id, environment.settings.as_deref()));
        let coverage = match self.was_complete {
            true => Coverage::Whole,
            false => Coverage::Partial,
        };
        self.hosts = Arc::new(Hosts::new(hosts, coverage));
    }

    /// Updates the indexes of flows and of webhook tokens.
    fn index_flows(&mut self, changes: &[FlowChange]) {
        for flow in changes.iter().filter_map(|change| change.before.as_ref()) {
            self.flows.remove(&flow.id);
            for hash in flow.webhook_token_hashes() {
                self.webhooks.remove(&hash.token_sha256);
            }
        }
        for flow in changes.iter().filter_map(|change| change.after.as_ref()) {
            self.flows.insert(flow.id.clone(), Arc::clone(flow));
            for &WebhookTokenHash {
                token_sha256,
                expires_at,
            } in flow.webhook_token_hashes()
            {
                self.webhooks.insert(
                    token_sha256,
                    Webhook {
                        flow: Arc::clone(flow),
                        expires_at,
                    },
                );
            }
        }
    }
}
