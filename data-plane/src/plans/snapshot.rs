//! Everything that this node runs at one moment, found by flow and by webhook token.

use std::collections::BTreeMap;
use std::sync::Arc;

use kanat_engine::{CompileError, Program};
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId};
use kanat_plan_stream::Sharded;
use kanat_proto::plan::v1::trigger::Kind as Trigger;
use kanat_proto::plan::v1::{FlowPlan, WebhookToken};
use kanat_telemetry::metrics;

use super::environment::Environment;
use crate::published::Hosts;

/// A deployed version of a flow.
pub struct Flow {
    pub id: FlowId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub version: u32,
    /// Messages are accepted and held.
    pub paused: bool,
    pub program: Program,
    /// Shared with every other version.
    pub counts: Arc<metrics::Flow>,
}

/// The plans of all environments. Never changed; `Snapshot::with` makes the next one.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    environments: BTreeMap<EnvironmentId, Arc<Environment>>,
    flows: Sharded<FlowId, Arc<Flow>>,
    webhooks: Sharded<[u8; 32], Webhook>,
    /// Whose published APIs a request is for.
    hosts: Arc<Hosts>,
    /// The environments that the node is to serve; nothing is known of them before the first contact.
    expected: Option<Vec<EnvironmentId>>,
}

#[derive(Debug, Clone)]
struct Webhook {
    flow: Arc<Flow>,
    /// Not accepted from this instant on.
    expires_at: Option<Timestamp>,
}

/// What became of one flow from one snapshot to the next.
#[derive(Debug)]
pub struct FlowChange {
    pub before: Option<Arc<Flow>>,
    pub after: Option<Arc<Flow>>,
}

impl Flow {
    /// Compiles a plan.
    ///
    /// # Errors
    /// The plan is in a language that this build does not speak.
    pub fn compile(plan: FlowPlan) -> Result<Self, CompileError> {
        Ok(Self {
            id: FlowId::from(plan.flow_id.as_str()),
            account_id: AccountId::from(plan.account_id.as_str()),
            environment_id: EnvironmentId::from(plan.environment_id.as_str()),
            version: plan.version,
            paused: plan.paused,
            counts: metrics().flows.flow(&plan.flow_id, &plan.flow_name),
            program: Program::compile(plan)?,
        })
    }

    pub fn plan(&self) -> &FlowPlan {
        self.program.plan()
    }

    fn tokens(&self) -> impl Iterator<Item = ([u8; 32], Option<Timestamp>)> {
        let tokens: &[WebhookToken] = match self.plan().trigger.as_ref().and_then(|trigger| trigger.kind.as_ref()) {
            Some(Trigger::Webhook(webhook)) => &webhook.tokens,
            Some(Trigger::Manual(_) | Trigger::Schedule(_) | Trigger::Poll(_) | Trigger::Api(_)) | None => &[],
        };
        tokens.iter().filter_map(|token| {
            let expires_at = (token.expires_at != 0).then(|| Timestamp::from_millis(token.expires_at));
            Some((token.sha256.as_slice().try_into().ok()?, expires_at))
        })
    }
}

/// Plans hold secrets of senders and stay out of logs.
impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("id", &self.id).field("version", &self.version).finish_non_exhaustive()
    }
}

impl Snapshot {
    /// The flow that a webhook token opens at `now`, by the token's SHA-256.
    pub fn webhook(&self, token_sha256: &[u8; 32], now: Timestamp) -> Option<&Arc<Flow>> {
        let webhook = self.webhooks.get(token_sha256)?;
        webhook.expires_at.is_none_or(|expires_at| now < expires_at).then_some(&webhook.flow)
    }

    pub fn flow(&self, id: &FlowId) -> Option<&Arc<Flow>> {
        self.flows.get(id)
    }

    pub fn environment(&self, id: &EnvironmentId) -> Option<&Arc<Environment>> {
        self.environments.get(id)
    }

    /// The environment whose published APIs a request to this host, as it names it, is for.
    pub(crate) fn of_host(&self, host: &str) -> Option<&Arc<Environment>> {
        self.environment(self.hosts.find(host)?)
    }

    /// Every environment of which something is held.
    pub fn environments(&self) -> impl Iterator<Item = &Arc<Environment>> {
        self.environments.values()
    }

    /// Every deployed flow, in no order.
    pub fn flows(&self) -> impl Iterator<Item = &Arc<Flow>> {
        self.flows.iter().map(|(_, flow)| flow)
    }

    /// Whether every environment that is to be served is here.
    pub fn is_complete(&self) -> bool {
        let expected = self.expected.as_ref();
        expected.is_some_and(|expected| expected.iter().all(|id| self.environments.contains_key(id)))
    }

    pub(super) fn expected(&self) -> Option<&[EnvironmentId]> {
        self.expected.as_deref()
    }

    /// The snapshot for a node that is to serve these environments.
    #[must_use]
    pub(super) fn expecting(&self, environments: Vec<EnvironmentId>) -> Self {
        Self { expected: Some(environments), ..self.clone() }
    }

    /// The snapshot with `environment` in the place of its former self, of which these flows changed.
    #[must_use]
    pub(super) fn with(&self, environment: Environment, changes: &[FlowChange]) -> Self {
        let mut next = self.clone();
        let host = environment.host.clone();
        let former = next.environments.insert(environment.id.clone(), Arc::new(environment));
        if former.is_none_or(|former| former.host != host) {
            next.find_hosts();
        }
        next.change(changes);
        next
    }

    /// The snapshot without an environment that this node no longer serves.
    #[must_use]
    pub(super) fn without(&self, id: &EnvironmentId) -> Self {
        let mut next = self.clone();
        next.environments.remove(id);
        next.find_hosts();
        let gone = self.flows().filter(|flow| flow.environment_id == *id);
        let gone: Vec<_> = gone.map(|flow| FlowChange { before: Some(Arc::clone(flow)), after: None }).collect();
        next.change(&gone);
        next
    }

    fn find_hosts(&mut self) {
        let hosts = self.environments.values().map(|environment| (&environment.id, environment.host.as_deref()));
        self.hosts = Arc::new(Hosts::new(hosts));
    }

    fn change(&mut self, changes: &[FlowChange]) {
        for flow in changes.iter().filter_map(|change| change.before.as_ref()) {
            self.flows.remove(&flow.id);
            for (token, _) in flow.tokens() {
                self.webhooks.remove(&token);
            }
        }
        for flow in changes.iter().filter_map(|change| change.after.as_ref()) {
            self.flows.insert(flow.id.clone(), Arc::clone(flow));
            for (token, expires_at) in flow.tokens() {
                self.webhooks.insert(token, Webhook { flow: Arc::clone(flow), expires_at });
            }
        }
    }
}
