//! `kanat control-plane --drain-node`: an operator takes a node out of service from afar. Operators
//! with access to the database may; users of the API, who share nodes with others, may not.

use anyhow::Result;
use kanat_model::id::NodeId;
use kanat_store::announcement::{Announcement, announce};
use kanat_store::{Store, node};

use crate::exit::failure;
use crate::process::database;
use crate::settings::control_plane::Settings;

/// Announces the drain to every control plane; the one that the node is connected to drains it.
pub async fn announce_drain(settings: &Settings, node: &str) -> Result<()> {
    let store = database::shared_store(&settings.process.database).await?;
    let node_id = NodeId::from(node);
    let announced = write(&store, node_id, settings).await;
    store.close().await;
    announced
}

async fn write(store: &Store, node_id: NodeId, settings: &Settings) -> Result<()> {
    let mut tx = store.begin().await?;
    let connected = node::all(&mut tx)
        .await?
        .into_iter()
        .any(|node| node.id == node_id && !node.control_plane.as_str().is_empty());
    if !connected {
        return Err(failure(format!(
            "no node {node_id} is connected; `GET /api/v1/nodes` lists those that are"
        )));
    }
    announce(
        &mut tx,
        &Announcement::Drain {
            node_id,
            within: settings.process.drain,
        },
    )
    .await?;
    Ok(tx.commit().await?)
}
