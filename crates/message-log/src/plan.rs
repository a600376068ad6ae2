//! Compiled flows kept beside the messages that were accepted under them.

use bytes::Bytes;
use kanat_model::id::FlowId;

use crate::Result;

/// Plans of flows, kept as long as messages need them.
#[async_trait::async_trait]
pub trait PlanStore: Send + Sync {
    /// Saves plans. A plan of the same flow and version is replaced.
    async fn save_plans(&self, plans: Vec<SavedPlan>) -> Result<()>;

    /// Saves the plans of which the log has none of the same flow and version. A plan that exists
    /// stays.
    async fn save_missing_plans(&self, plans: Vec<SavedPlan>) -> Result<()>;

    /// Returns the plan of one version of a flow as it was saved.
    async fn plan(&self, flow_id: &FlowId, version: u32) -> Result<Option<Bytes>>;
}

/// The plan of one version of a flow, opaque to the log.
#[derive(Debug, Clone)]
pub struct SavedPlan {
    pub flow_id: FlowId,
    pub version: u32,
    pub body: Bytes,
}

impl SavedPlan {
    /// Version under which the tombstone of a deleted flow is saved. It is greater than that of any
    /// plan.
    pub const TOMBSTONE_VERSION: u32 = u32::MAX;

    /// Returns the tombstone of a deleted flow, whose messages run under no plan. `deletion` names
    /// the change that deleted it.
    pub fn tombstone(flow_id: FlowId, deletion: Bytes) -> Self {
        Self {
            flow_id,
            version: Self::TOMBSTONE_VERSION,
            body: deletion,
        }
    }
}

/// Progress in ending the messages of a deleted flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    /// Every message has ended.
    Complete,
    /// More messages wait: the call has ended as many as one transaction takes.
    Partial,
    /// The messages that are left are held by nodes.
    Held,
}

/// Most messages that one transaction ends.
pub(crate) const END_BATCH: usize = 500;
