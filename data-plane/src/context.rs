//! What the requests of a node are answered from.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::admission::Admission;
use crate::limit::Limiter;
use crate::oauth2::Issuers;
use crate::pipeline::Pipeline;
use crate::plans::Plans;
use crate::refused::Refused;

/// What requests are answered from.
pub(crate) struct Shared {
    pub plans: Plans,
    pub pipeline: Arc<Pipeline>,
    pub admission: Admission,
    pub refused: Refused,
    pub limiter: Arc<Limiter>,
    pub issuers: Issuers,
    /// Cancelled when the node serves on, but not for long.
    pub leaving: CancellationToken,
}

impl Shared {
    pub fn is_ready(&self) -> bool {
        !self.leaving.is_cancelled() && self.plans.loaded() && self.pipeline.is_ready()
    }

    /// Whether connections are to be closed with the answer at hand.
    pub fn is_going(&self) -> bool {
        self.leaving.is_cancelled() || self.pipeline.is_draining()
    }
}
