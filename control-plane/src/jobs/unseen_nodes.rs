//! Forgets nodes that went away and did not come back: those that took the place of others would
//! else be listed beside them for ever.

use kanat_model::Timestamp;
use kanat_store::{Store, node};

use super::hourly;
use crate::push::nodes::LISTED;

/// Runs for ever. A failure waits for the next hour.
pub async fn run(store: Store) {
    hourly::run(&store, "unseen_nodes", || forget_unseen(&store)).await;
}

async fn forget_unseen(store: &Store) {
    match forget(store, Timestamp::now().before(LISTED)).await {
        Ok(0) => {}
        Ok(nodes) => tracing::info!(nodes, "nodes that were not seen for a week are forgotten"),
        Err(error) => {
            tracing::warn!(%error, "nodes that were not seen for long cannot be forgotten")
        }
    }
}

async fn forget(store: &Store, before: Timestamp) -> Result<u64, kanat_store::Error> {
    let mut tx = store.begin().await?;
    let nodes = node::delete_unseen(&mut tx, before).await?;
    tx.commit().await?;
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kanat_model::id::{BootId, EnvironmentId, NodeId};
    use kanat_store::node::{Node, Running, environment};

    use super::*;

    async fn seen(store: &Store, id: &str, last_seen_at: Timestamp) {
        let node = Node {
            id: NodeId::from(id),
            boot_id: BootId::from("boot_1"),
            address: String::new(),
            build: "1.0.0".to_owned(),
            control_plane: BootId::from(""),
            status: "disconnected".to_owned(),
            in_flight: 0,
            environments: Vec::new(),
            serves_all: false,
            last_seen_at,
        };
        let running = Running {
            environment_id: EnvironmentId::from("env_1"),
            epoch: "epoch_1".to_owned(),
            generation: 7,
            set_hash: String::new(),
            rejected: Vec::new(),
        };
        let mut tx = store.begin().await.unwrap();
        assert!(node::upsert(&mut tx, &node).await.unwrap());
        environment::upsert(&mut tx, &node.id, &running)
            .await
            .unwrap();
        tx.commit().await.unwrap();
    }

    #[tokio::test]
    async fn a_node_that_was_not_seen_for_a_week_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open_file(&folder.path().join("kanat.db"))
            .await
            .unwrap();
        let now = Timestamp::now();
        seen(
            &store,
            "node_gone",
            now.before(LISTED + Duration::from_secs(60)),
        )
        .await;
        seen(
            &store,
            "node_away",
            now.before(LISTED - Duration::from_secs(3_600)),
        )
        .await;
        seen(&store, "node_here", now).await;
        let mut looking = tokio::task::JoinSet::new();
        looking.spawn(run(store.clone()));
        let left = loop {
            let nodes = node::all(&mut store.read().await.unwrap()).await.unwrap();
            if nodes.len() < 3 {
                break nodes;
            }
            tokio::task::yield_now().await;
        };
        looking.shutdown().await;
        let left: Vec<_> = left
            .iter()
            .map(|node| (node.id.as_str(), node.environments.len()))
            .collect();
        assert_eq!(left, [("node_here", 1), ("node_away", 1)]);
    }
}
