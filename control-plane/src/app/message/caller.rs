//! The consumer of a published API that called, for the record of a message's arrival.

use std::collections::HashMap;

use kanat_message_log::Tenant;
use kanat_model::Error;
use kanat_model::id::MessageId;
use serde_json::value::RawValue;

use crate::app::App;

/// `{"api": {"id", "version", "consumer"}}` of the API that was called, by whom; `None` when it was
/// none.
pub async fn of(app: &App, tenant: &Tenant, id: &MessageId) -> Result<Option<String>, Error> {
    let content = app.log.content(tenant, id).await?;
    Ok(content.and_then(|content| {
        // The document that expressions see as `trigger`.
        let trigger: HashMap<String, &RawValue> = serde_json::from_slice(&content.request).ok()?;
        Some(format!("{{\"api\":{}}}", trigger.get("api")?))
    }))
}
