//! Secrets that earlier builds left in flows. Definitions with literal secrets are sealed, once for
//! a store; deployed versions that expose secrets of connectors are logged at each start.

use std::sync::Arc;

use crate::app::{App, flow};

/// Looks once.
pub async fn look(app: Arc<App>) {
    if let Err(error) = flow::seal_definitions(&app).await {
        tracing::warn!(
            %error,
            "definitions of earlier builds cannot be sealed: the next start tries again",
        );
    }
    if let Err(error) = flow::log_exposed_secrets(&app).await {
        tracing::warn!(%error, "what runs was not looked through for secrets that it shows");
    }
}
