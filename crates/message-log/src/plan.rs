//! Compiled flows kept beside the messages that were accepted under them.

use bytes::Bytes;
use kanat_model::id::FlowId;

/// One version of a flow, as the node compiled it from; the log does not look into it.
#[derive(Debug, Clone)]
pub struct SavedPlan {
    pub flow_id: FlowId,
    pub version: u32,
    pub body: Bytes,
}

impl SavedPlan {
    /// The version under which the end of a flow is saved. It is greater than that of any plan.
    pub const END: u32 = u32::MAX;

    /// The mark of a flow that is deleted: its messages are not to be run under any plan.
    /// `deletion` says by which change.
    pub fn end(flow_id: FlowId, deletion: Bytes) -> Self {
        Self {
            flow_id,
            version: Self::END,
            body: deletion,
        }
    }
}

/// How far the messages of a deleted flow have come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowEnd {
    /// Every message has ended.
    Complete,
    /// More of them wait: the call has ended as many as one transaction takes.
    Partial,
    /// Those that are left are held by nodes.
    Held,
}

/// Messages that one transaction ends.
pub(crate) const END_BATCH: usize = 500;
