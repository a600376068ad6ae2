//! Trace of a message, step by step, for a person to read.

use crate::Timestamp;

/// One event. The writer masks its secrets and cuts its bodies.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TraceRecord {
    pub at: Timestamp,
    /// `received`, `validated`, `adapted`, `mapped`, `step`, `delivery`, `retry_scheduled`,
    /// `dead_lettered`, ...
    pub stage: String,
    /// A step's name, a field, a target.
    pub name: String,
    /// `ok`, `failed`, `skipped`, `filtered`, `warning`, or `kept`: a step that an earlier attempt
    /// has called.
    pub status: String,
    pub duration_ms: u32,
    /// JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// From 1.
    pub attempt: u32,
}
