//! Fires schedules when they are due. Every control plane does; each due time becomes one message
//! all the same.

use std::sync::Arc;

use super::due;
use crate::app::{App, schedule};

/// Runs for ever.
pub async fn run(app: Arc<App>) {
    due::run(&app.store, "cannot see which schedules are due", |now| {
        schedule::fire_due(&app, now)
    })
    .await;
}
