//! Chains the entries of the audit log, and writes the counts of denied calls. Every control plane
//! does; the head of the chain keeps them apart.

use std::sync::Arc;

use kanat_model::{Result, Timestamp};

use crate::app::App;
use crate::app::audit::{chain, denied};
use crate::jobs::due;

/// Runs for ever.
pub async fn run(app: Arc<App>) {
    let complaint = "the audit log cannot be chained";
    due::run(&app.store, complaint, |_| work(&app)).await;
}

async fn work(app: &App) -> Result<Option<Timestamp>> {
    let next = denied::write_counts(app).await;
    chain::chain_all(app).await?;
    Ok(next)
}
