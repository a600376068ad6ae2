//! What happened to a message, step by step, for a person to read.

use kanat_model::Timestamp;

use crate::Error;

/// One thing that happened. Secrets are masked and bodies cut by who writes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct TraceRecord {
    pub at: Timestamp,
    /// `received`, `validated`, `adapted`, `mapped`, `step`, `delivery`, `retry_scheduled`, `dead_lettered`, ...
    pub stage: String,
    pub name: String,
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
    pub attempt: u32,
}

impl TraceRecord {
    /// The end of a message that needs no delivery; `name` says by whose decision.
    pub(crate) fn discarded(at: Timestamp, name: &str, attempt: u32) -> Self {
        Self {
            at,
            stage: "discarded".to_owned(),
            name: name.to_owned(),
            status: "ok".to_owned(),
            duration_ms: 0,
            request: None,
            response: None,
            error: None,
            attempt,
        }
    }
}

/// Records as the tables have them: JSON, and nothing when there are none.
pub(crate) fn text(records: &[TraceRecord]) -> Result<Option<String>, Error> {
    if records.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(records);
    text.map(Some).map_err(|error| Error::Other(format!("a trace cannot be written: {error}")))
}
