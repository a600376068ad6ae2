//! Fires schedules when they are due. Every control plane does; each due time becomes one message all the same.

use std::sync::Arc;
use std::time::Duration;

use kanat_model::Timestamp;
use tokio::time::sleep;

use crate::app::{App, schedule};

/// The longest wait between looks: another control plane may have changed a schedule, or died with what it claimed.
const LOOK: Duration = Duration::from_secs(1);

/// Runs for ever. A store that fails is asked again at the next look, and complained about once.
pub async fn run(app: Arc<App>) {
    let mut failing = false;
    loop {
        let wait = match schedule::fire_due(&app, Timestamp::now()).await {
            Ok(next) => {
                failing = false;
                next.map_or(LOOK, |next| next.since(Timestamp::now()).min(LOOK))
            }
            Err(error) => {
                if !failing {
                    tracing::warn!(%error, "cannot see which schedules are due");
                }
                failing = true;
                LOOK
            }
        };
        sleep(wait).await;
    }
}
