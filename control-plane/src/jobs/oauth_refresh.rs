//! Renews the tokens of OAuth2 connectors ahead of their end. Every control plane looks; who takes an instance's lease asks.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use crate::app::App;
use crate::app::connector::oauth;

/// How often it is seen to whether any are due.
const LOOK: Duration = Duration::from_secs(1);

/// Runs for ever. A store that fails is asked again at the next look, and complained about once.
pub async fn run(app: Arc<App>) {
    let mut looks = interval(LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        looks.tick().await;
        match oauth::refresh_due(&app).await {
            Ok(_) => failing = false,
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot see whether tokens of connectors are to be renewed");
                }
                failing = true;
            }
        }
    }
}
