//! Tells at a start which versions run although they show secrets of connectors.

use std::sync::Arc;

use crate::app::{App, flow};

/// Looks once.
pub async fn tell(app: Arc<App>) {
    if let Err(error) = flow::tell_of_exposed_secrets(&app).await {
        tracing::warn!(%error, "what runs was not looked through for secrets that it shows");
    }
}
