//! Renews the tokens of OAuth2 connectors ahead of their end. Every control plane looks; who takes
//! an instance's lease asks.

use std::sync::Arc;

use super::due;
use crate::app::App;
use crate::app::connector::oauth;

/// Runs for ever.
pub async fn run(app: Arc<App>) {
    let complaint = "cannot see whether tokens of connectors are to be renewed";
    let renewals = oauth::Renewals::default();
    due::run(&app.store, complaint, |_| {
        oauth::refresh_due(&app, &renewals)
    })
    .await;
}
