//! Follows the database for what other processes change in it: generations, environments, nodes.
//! They announce what they publish; a look from time to time finds what was announced in vain.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kanat_store::{Announcement, Listener};
use tokio::time::sleep;

use super::hub::Hub;

/// How often the database is looked at, where others may have changed it.
const LOOK: Duration = Duration::from_millis(500);

/// How long after a failure announcements are listened to again.
const LISTEN_AGAIN: Duration = Duration::from_secs(1);

/// Runs until the hub stops.
pub async fn run(hub: Arc<Hub>) {
    tokio::select! {
        never = look_around(&hub) => match never {},
        never = listen(&hub) => match never {},
        () = hub.stop.cancelled() => {}
    }
}

async fn look_around(hub: &Arc<Hub>) -> Infallible {
    let mut changes = hub.source.changes();
    let mut said: Option<String> = None;
    loop {
        let failure = look(hub).await.err().map(|error| error.to_string());
        if let Some(error) = failure
            .as_ref()
            .filter(|failure| said.as_ref() != Some(failure))
        {
            tracing::warn!(
                error,
                "cannot see what other processes change; nodes keep what they have"
            );
        }
        said = failure;
        if said.is_some() {
            sleep(LOOK).await;
        } else {
            // Nodes that serve all environments are waited for until they run one that is new.
            tokio::select! {
                () = changes.next(LOOK) => {}
                () = hub.unknown.notified() => {}
            }
        }
    }
}

/// Wakes the feeds of environments whose present set is another than theirs, and notes environments
/// and nodes.
async fn look(hub: &Arc<Hub>) -> Result<(), super::source::Error> {
    let (epoch, environments) = hub.source.environments().await?;
    for environment in &environments {
        let Some(feed) = hub.existing(&environment.id) else {
            continue;
        };
        let set = feed.state().set.filter(|set| set.epoch == epoch);
        if !set.is_some_and(|set| environment.revision.is(set.generation, set.hash)) {
            feed.wanted(environment.revision.generation);
        }
    }
    hub.environments.send_if_modified(|known| {
        let now: BTreeMap<_, _> = environments
            .into_iter()
            .map(|e| (e.id.clone(), e.name))
            .collect();
        let changed = *known != now;
        *known = now;
        changed
    });
    hub.others.refresh(&hub.source).await
}

async fn listen(hub: &Arc<Hub>) -> Infallible {
    loop {
        match hub.source.listen().await {
            Ok(Some(listener)) => hear(hub, listener).await,
            Ok(None) => std::future::pending().await,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "cannot listen to other control planes: looking at the database",
                )
            }
        }
        sleep(LISTEN_AGAIN).await;
    }
}

/// Until the connection fails.
async fn hear(hub: &Arc<Hub>, mut listener: Listener) {
    loop {
        match listener.next().await {
            Ok(Announcement::Published {
                environment_id,
                generation,
                urgent: true,
            }) => {
                hub.changed_now(&environment_id, generation);
            }
            Ok(Announcement::Published {
                environment_id,
                generation,
                urgent: false,
            }) => {
                hub.changed(&environment_id, generation);
            }
            Ok(Announcement::Drain { node_id, within }) => hub.nodes.drain(&node_id, within),
            // What is missed meanwhile, the next look finds.
            Err(error) => {
                tracing::warn!(
                    %error,
                    "announcements of other control planes are not heard for a while",
                );
                return;
            }
        }
    }
}
