//! Follows the database for changes of other processes: generations, environments, nodes. They
//! announce what they publish; a poll finds changes whose announcement was lost.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use kanat_store::{Announcement, Listener};
use tokio::time::sleep;

use super::context::Context;
use super::feed::Urgency;
use super::source::Error;

/// Interval of reading the database, which other processes may have changed.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Delay before announcements are listened to again after a failure.
const LISTEN_DELAY: Duration = Duration::from_secs(1);

/// Runs for ever.
pub async fn run(context: Arc<Context>) {
    tokio::select! {
        never = poll(&context) => match never {},
        never = listen(&context) => match never {},
    }
}

async fn poll(context: &Context) -> Infallible {
    let mut changes = context.source.changes();
    let mut logged: Option<String> = None;
    loop {
        let failure = read(context).await.err().map(|error| error.to_string());
        if let Some(error) = failure.as_ref().filter(|_| logged != failure) {
            tracing::warn!(
                error,
                "cannot see what other processes change; nodes keep what they have"
            );
        }
        logged = failure;
        if logged.is_some() {
            sleep(POLL_INTERVAL).await;
        } else {
            // A deploy into a new environment waits for the nodes that serve all, so the interval
            // is cut short when an environment is not known.
            tokio::select! {
                () = changes.next(POLL_INTERVAL) => {}
                () = context.unknown_environment.notified() => {}
            }
        }
    }
}

/// Requests a read from each feed whose set is not current, and notes environments and nodes.
pub(super) async fn read(context: &Context) -> Result<(), Error> {
    let (epoch, environments) = context.source.environments().await?;
    for environment in &environments {
        let Some(feed) = context.started_feed(&environment.id) else {
            continue;
        };
        let set = feed.state().set.filter(|set| set.epoch == epoch);
        if !set.is_some_and(|set| environment.set_identity.matches(set.generation, set.hash)) {
            feed.request_read(Urgency::Batched);
        }
    }
    let ids: HashSet<_> = environments
        .iter()
        .map(|environment| &environment.id)
        .collect();
    context.end_unused_feeds(|id| ids.contains(id));
    context.environments.send_if_modified(|known| {
        let now: BTreeMap<_, _> = environments
            .into_iter()
            .map(|e| (e.id.clone(), e.name))
            .collect();
        let changed = *known != now;
        *known = now;
        changed
    });
    context.refresh_peer_nodes().await
}

async fn listen(context: &Context) -> Infallible {
    loop {
        match context.source.listen().await {
            Ok(Some(listener)) => {
                let error = follow_announcements(context, listener).await;
                // The next read finds what is missed meanwhile.
                tracing::warn!(
                    %error,
                    "announcements of other control planes are not heard for a while",
                );
            }
            Ok(None) => std::future::pending().await,
            Err(error) => {
                tracing::warn!(
                    %error,
                    "cannot listen to other control planes: polling the database",
                )
            }
        }
        sleep(LISTEN_DELAY).await;
    }
}

/// Takes in announcements until the connection fails, and returns why it did.
async fn follow_announcements(context: &Context, mut listener: Listener) -> kanat_store::Error {
    loop {
        match listener.next().await {
            Ok(Announcement::Published {
                environment_id,
                urgent,
                ..
            }) => {
                let urgency = if urgent {
                    Urgency::Immediate
                } else {
                    Urgency::Batched
                };
                context.notify_changed(&environment_id, urgency);
            }
            Ok(Announcement::Drain { node_id, within }) => context.nodes.drain(&node_id, within),
            Err(error) => return error,
        }
    }
}
