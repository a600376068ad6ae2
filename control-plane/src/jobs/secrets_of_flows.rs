//! What earlier builds left of secrets in flows: definitions with secrets that are written out are
//! sealed, once for a store, and versions that run although they show secrets of connectors are
//! told of at each start.

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
    if let Err(error) = flow::tell_of_exposed_secrets(&app).await {
        tracing::warn!(%error, "what runs was not looked through for secrets that it shows");
    }
}
