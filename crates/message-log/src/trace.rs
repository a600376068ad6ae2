//! Trace records in the form of the tables.

use kanat_model::Timestamp;
use kanat_model::trace::TraceRecord;

use crate::Error;

/// Returns a record that the log itself writes, of a stage that took no time.
pub(crate) fn record(at: Timestamp, stage: &str, name: &str, attempt: u32) -> TraceRecord {
    TraceRecord {
        at,
        stage: stage.to_owned(),
        name: name.to_owned(),
        status: "ok".to_owned(),
        duration_ms: 0,
        request: None,
        response: None,
        error: None,
        attempt,
    }
}

/// Returns the records as JSON; `None` when there are none.
pub(crate) fn text(records: &[TraceRecord]) -> Result<Option<String>, Error> {
    if records.is_empty() {
        return Ok(None);
    }
    let text = serde_json::to_string(records);
    text.map(Some)
        .map_err(|error| Error::Other(format!("a trace cannot be written: {error}")))
}
