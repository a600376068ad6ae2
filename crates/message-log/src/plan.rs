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
