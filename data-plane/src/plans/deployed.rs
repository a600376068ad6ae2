//! A deployed flow as a node holds it: its encoded plan, and little beside. The flow is compiled
//! when a message needs it, and the compiled form is dropped when the flow is idle.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use kanat_auth::Sealer;
use kanat_engine::{CompileError, Program};
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, FlowId};
use kanat_plan_stream::{Hash, saved};
use kanat_proto::plan::v1::trigger::Kind as Trigger;
use kanat_proto::plan::v1::{FlowPlan, WebhookToken};
use kanat_telemetry::metrics;
use prost::{DecodeError, Message};
use tokio_util::sync::CancellationToken;

use super::versions;
use crate::backlog::{Backlog, Share};

/// A deployed version of a flow.
pub struct DeployedFlow {
    pub id: FlowId,
    pub environment_id: EnvironmentId,
    pub version: u32,
    /// True if messages are held after they were accepted.
    pub paused: bool,
    /// True if the flow polls its source.
    pub polls: bool,
    webhook_token_hashes: Box<[WebhookTokenHash]>,
    /// The encoded plan.
    body: Bytes,
    /// Hash of the plan's form in the message log.
    saved_hash: Hash,
    counts: Arc<metrics::Flow>,
    compiled_cache: ArcSwapOption<CompiledFlow>,
    /// True if the flow was used since the last call of `evict_if_idle`.
    used: AtomicBool,
    /// Cancelled when the flow is taken out of service; shared with every other version.
    pub removed: CancellationToken,
}

/// Hash of a token of a webhook, and the end of the token.
#[derive(Debug, Clone, Copy)]
pub(super) struct WebhookTokenHash {
    pub token_sha256: [u8; 32],
    /// Not accepted from this instant on.
    pub expires_at: Option<Timestamp>,
}

/// A version of a flow that is ready to run.
pub struct CompiledFlow {
    pub id: FlowId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub version: u32,
    /// True if messages are held after they were accepted.
    pub paused: bool,
    pub program: Program,
    /// Counters of the flow; every other version has the same ones.
    pub counts: Arc<metrics::Flow>,
    /// The flow's share of the backlog; every other version has the same one.
    backlog: OnceLock<Arc<Share>>,
}

impl DeployedFlow {
    /// Creates a flow of a plan whose encoding is `body`. The plan is compiled as a check, and the
    /// compiled form is dropped.
    ///
    /// # Errors
    /// The plan is in a language that this build does not speak.
    pub fn new(plan: FlowPlan, body: Bytes) -> Result<Self, CompileError> {
        let saved_hash = Hash::of(&saved::encode_unsealed(&plan));
        let webhook_token_hashes = webhook_token_hashes(&plan);
        let polls = polls(&plan);
        let CompiledFlow {
            id,
            environment_id,
            version,
            paused,
            counts,
            ..
        } = CompiledFlow::compile(plan)?;
        Ok(Self {
            id,
            environment_id,
            version,
            paused,
            polls,
            webhook_token_hashes,
            body,
            saved_hash,
            counts,
            compiled_cache: ArcSwapOption::empty(),
            used: AtomicBool::new(false),
            removed: CancellationToken::new(),
        })
    }

    /// Returns the compiled form of the flow.
    ///
    /// # Errors
    /// The plan cannot be compiled. [`DeployedFlow::new`] has compiled it before, so this does not
    /// happen.
    pub fn compiled(&self) -> Result<Arc<CompiledFlow>, versions::Error> {
        // All cores read the flag: a message writes it only when it changes.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
        if let Some(flow) = self.compiled_cache.load_full() {
            return Ok(flow);
        }
        let plan = self.plan().map_err(|source| self.decode_error(source))?;
        let flow = CompiledFlow::compile_with_counters(plan, Arc::clone(&self.counts)).map_err(
            |source| {
                let flow_id = self.id.clone();
                let version = self.version;
                versions::Error::Compile {
                    flow_id,
                    version,
                    source,
                }
            },
        )?;
        let flow = Arc::new(flow);
        self.compiled_cache.store(Some(Arc::clone(&flow)));
        Ok(flow)
    }

    /// Shares the removal token of a former version of the flow.
    pub(super) fn share_removal_token(&mut self, former: &Self) {
        self.removed = former.removed.clone();
    }

    /// Drops the compiled form, unless the flow was used since the last call.
    pub fn evict_if_idle(&self) {
        if !self.used.swap(false, Relaxed) {
            self.compiled_cache.store(None);
        }
    }

    pub(super) fn plan(&self) -> Result<FlowPlan, DecodeError> {
        FlowPlan::decode(self.body.as_ref())
    }

    /// Returns the plan's form in the message log.
    pub(super) fn to_saved(&self, sealer: Option<&Sealer>) -> Result<Bytes, versions::Error> {
        self.plan()
            .map(|plan| saved::encode(&plan, sealer))
            .map_err(|source| self.decode_error(source))
    }

    /// Returns whether both have the same form in the message log.
    pub(super) fn has_same_saved_form(&self, other: &Self) -> bool {
        (self.version, self.saved_hash) == (other.version, other.saved_hash)
    }

    /// Returns the hashes of the tokens of the flow's webhook; none for another trigger.
    pub(super) fn webhook_token_hashes(&self) -> &[WebhookTokenHash] {
        &self.webhook_token_hashes
    }

    fn decode_error(&self, source: DecodeError) -> versions::Error {
        versions::Error::Encoding {
            flow_id: self.id.clone(),
            version: self.version,
            source,
        }
    }
}

fn webhook_token_hashes(plan: &FlowPlan) -> Box<[WebhookTokenHash]> {
    let tokens: &[WebhookToken] = match plan
        .trigger
        .as_ref()
        .and_then(|trigger| trigger.kind.as_ref())
    {
        Some(Trigger::Webhook(webhook)) => &webhook.tokens,
        Some(Trigger::Manual(_) | Trigger::Schedule(_) | Trigger::Poll(_) | Trigger::Api(_))
        | None => &[],
    };
    let hash = |token: &WebhookToken| {
        let expires_at = (token.expires_at != 0).then(|| Timestamp::from_millis(token.expires_at));
        Some(WebhookTokenHash {
            token_sha256: token.sha256.as_slice().try_into().ok()?,
            expires_at,
        })
    };
    tokens.iter().filter_map(hash).collect()
}

fn polls(plan: &FlowPlan) -> bool {
    matches!(
        plan.trigger
            .as_ref()
            .and_then(|trigger| trigger.kind.as_ref()),
        Some(Trigger::Poll(_))
    )
}

impl CompiledFlow {
    /// Compiles a plan.
    ///
    /// # Errors
    /// The plan is in a language that this build does not speak.
    pub fn compile(plan: FlowPlan) -> Result<Self, CompileError> {
        let counts = metrics().flows.flow(&plan.flow_id, &plan.flow_name);
        if polls(&plan) {
            counts.expose_poll_counters();
        }
        Self::compile_with_counters(plan, counts)
    }

    fn compile_with_counters(
        plan: FlowPlan,
        counts: Arc<metrics::Flow>,
    ) -> Result<Self, CompileError> {
        Ok(Self {
            id: FlowId::from(plan.flow_id.as_str()),
            account_id: AccountId::from(plan.account_id.as_str()),
            environment_id: EnvironmentId::from(plan.environment_id.as_str()),
            version: plan.version,
            paused: plan.paused,
            counts,
            backlog: OnceLock::new(),
            program: Program::compile(plan)?,
        })
    }

    pub fn plan(&self) -> &FlowPlan {
        self.program.plan()
    }

    /// Returns the flow's part in the backlog of its node.
    pub(crate) fn backlog(&self, backlog: &Backlog) -> &Arc<Share> {
        self.backlog.get_or_init(|| backlog.share(&self.id))
    }

    /// Returns the flow's own bound on the age of its backlog.
    pub(crate) fn backlog_age(&self) -> Option<Duration> {
        let millis = self.plan().backlog_age_ms;
        (millis > 0).then(|| Duration::from_millis(millis))
    }
}

/// Plans hold secrets of senders and stay out of logs.
impl std::fmt::Debug for DeployedFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeployedFlow")
            .field("id", &self.id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CompiledFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompiledFlow")
            .field("id", &self.id)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use kanat_proto::plan::v1::{Poll, Trigger as Wrapper, Webhook};

    use super::*;

    fn plan(kind: Trigger) -> FlowPlan {
        let trigger = Some(Wrapper { kind: Some(kind) });
        FlowPlan {
            flow_id: "flw_1".to_owned(),
            version: 3,
            when: "source.n > 1".to_owned(),
            trigger,
            ..FlowPlan::default()
        }
    }

    fn deployed(plan: &FlowPlan) -> DeployedFlow {
        DeployedFlow::new(plan.clone(), plan.encode_to_vec().into()).unwrap()
    }

    #[test]
    fn what_runs_a_flow_is_made_when_it_is_needed_and_stays_while_it_is_used() {
        let plan = plan(Trigger::Webhook(Webhook::default()));
        let flow = deployed(&plan);
        assert!(flow.compiled_cache.load().is_none());
        let first = flow.compiled().unwrap();
        assert_eq!(first.plan(), &plan);
        assert_eq!(first.version, 3);
        flow.evict_if_idle();
        assert!(
            Arc::ptr_eq(&first, &flow.compiled().unwrap()),
            "it was used since it was last looked"
        );
        flow.evict_if_idle();
        flow.evict_if_idle();
        assert!(flow.compiled_cache.load().is_none());
        assert_eq!(flow.compiled().unwrap().plan(), &plan);
    }

    #[test]
    fn a_plan_that_cannot_run_is_refused_when_it_comes() {
        let plan = FlowPlan {
            when: "source.".to_owned(),
            ..FlowPlan::default()
        };
        let refused = DeployedFlow::new(plan.clone(), plan.encode_to_vec().into()).unwrap_err();
        assert!(refused.to_string().starts_with("when: "), "{refused}");
    }

    #[test]
    fn what_the_node_asks_of_every_flow_needs_no_compiled_plan() {
        let token = |sha256: Vec<u8>, expires_at| WebhookToken { sha256, expires_at };
        let tokens = vec![
            token(vec![7; 32], 0),
            token(vec![8; 32], 5_000),
            token(vec![9; 3], 0),
        ];
        let webhook = deployed(&plan(Trigger::Webhook(Webhook {
            tokens,
            verify: None,
        })));
        let hashes: Vec<_> = webhook
            .webhook_token_hashes()
            .iter()
            .map(|hash| (hash.token_sha256[0], hash.expires_at))
            .collect();
        assert_eq!(
            hashes,
            [(7, None), (8, Some(Timestamp::from_millis(5_000)))]
        );
        assert!(!webhook.polls);
        assert!(deployed(&plan(Trigger::Poll(Poll::default()))).polls);
        assert!(webhook.compiled_cache.load().is_none());
    }

    #[test]
    fn pausing_changes_nothing_that_the_message_log_keeps() {
        let running = plan(Trigger::Webhook(Webhook::default()));
        let paused = FlowPlan {
            paused: true,
            ..running.clone()
        };
        let changed = FlowPlan {
            when: "true".to_owned(),
            ..running.clone()
        };
        assert!(deployed(&running).has_same_saved_form(&deployed(&paused)));
        assert!(!deployed(&running).has_same_saved_form(&deployed(&changed)));
    }
}
