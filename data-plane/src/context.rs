//! Shared state of the request handlers of a node.

use std::sync::Arc;

use kanat_net::jwks::TokenVerifier;
use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::limit::Limiter;
use crate::pipeline::Pipeline;
use crate::plans::Plans;
use crate::refusal_log::RefusalLog;

/// State that request handlers share.
pub(crate) struct NodeContext {
    pub plans: Plans,
    pub pipeline: Arc<Pipeline>,
    pub admission: Admission,
    pub refusals: RefusalLog,
    pub limiter: Arc<Limiter>,
    pub tokens: TokenVerifier,
    /// Cancelled when the node is about to stop; it still serves.
    pub leaving: CancellationToken,
}

impl NodeContext {
    pub fn is_ready(&self) -> bool {
        !self.leaving.is_cancelled() && self.plans.is_complete() && self.pipeline.is_ready()
    }

    /// Returns whether connections are to be closed with the current response.
    pub fn is_going(&self) -> bool {
        self.leaving.is_cancelled() || self.pipeline.is_draining()
    }
}
