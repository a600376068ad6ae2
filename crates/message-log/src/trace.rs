//! The records of a trace as the tables have them.

use kanat_model::Timestamp;
use kanat_model::trace::TraceRecord;

use crate::Error;

/// Returns the record of the end of a message that needs no delivery; `name` says by whose
/// decision.
pub(crate) fn discarded(at: Timestamp, name: &str, attempt: u32) -> TraceRecord {
    TraceRecord {
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

/// JSON; nothing when there are no records.
pub(crate) fn text(records: &[TraceRecord]) -> Result<Option<String>, Error> {
    if records.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(records);
    text.map(Some)
        .map_err(|error| Error::Other(format!("a trace cannot be written: {error}")))
}
