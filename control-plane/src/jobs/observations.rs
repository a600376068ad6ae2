//! Takes up what nodes have seen connectors do: their health follows, and the schemas of what their
//! endpoints answer.

use std::sync::Arc;

use kanat_catalog::shape::Shape;
use kanat_model::health::Observation;
use kanat_model::id::{EnvironmentId, InstanceId};
use kanat_model::{Error, Timestamp};
use kanat_proto::node::v1::ObservedConnector;
use kanat_store::connector_instance;
use tokio::sync::mpsc;

use crate::app::App;
use crate::app::connector::{health, oauth, schemas};
use crate::push::Observation as NodeObservation;

/// Runs for ever. What cannot be written is gone: nodes will see it again.
pub async fn run(app: Arc<App>, mut observed: mpsc::Receiver<NodeObservation>) {
    while let Some(told) = observed.recv().await {
        let connector = match told {
            NodeObservation::Connector(connector) => connector,
            NodeObservation::Answered { node, nonce } => {
                app.hub.observations_processed(node, nonce);
                continue;
            }
        };
        let id = connector.instance_id.clone();
        if let Err(error) = take_up(&app, connector).await {
            tracing::warn!(
                instance.id = id,
                %error,
                "what was seen of a connector cannot be written down",
            );
        }
    }
}

async fn take_up(app: &App, seen: ObservedConnector) -> Result<(), Error> {
    let environment = EnvironmentId::from(seen.environment_id);
    let id = InstanceId::from(seen.instance_id);
    let mut tx = app.store.begin().await?;
    // It may have been deleted since.
    let Some(instance) = connector_instance::get(&mut tx, &environment, &id).await? else {
        return Ok(());
    };
    // Calls with a former config say nothing about the present one.
    let is_of_this_config = instant(seen.first_call_at).is_none_or(|at| at >= instance.updated_at);
    if seen.calls > 0 && is_of_this_config {
        let failures = seen.failures.min(seen.calls);
        let calls = seen.calls;
        let last = match seen.failure.as_str() {
            failure if failures > 0 && !failure.is_empty() => format!(", the last: {failure}"),
            _ => String::new(),
        };
        let failed = health::CALLS_FAILED;
        let mut reason = format!("{failures} of {calls} {failed} since the report before{last}");
        let mut observation = Observation::Traffic { calls, failures };
        if let Some(until) = instant(seen.paused_until) {
            reason.push_str(&format!("; calls pause until {until}, and messages wait"));
            observation = Observation::Failed;
        }
        let at = instant(seen.last_failure_at).unwrap_or_else(Timestamp::now);
        health::observe(&mut tx, &id, observation, &reason, at).await?;
    }
    for poll in seen.polls {
        health::polled(
            &mut tx,
            &id,
            &poll.flow_name,
            Some(poll.failure).filter(|failure| !failure.is_empty()),
        )
        .await?;
    }
    if !seen.refused_token.is_empty() {
        oauth::refused(app, &mut tx, &id, &seen.refused_token).await?;
    }
    for endpoint in seen.endpoints {
        // A newer build may tell shapes that this one cannot read.
        if let Ok(shape) = serde_json::from_str::<Shape>(&endpoint.shape) {
            schemas::take_up(&mut tx, &id, &endpoint.endpoint, shape).await?;
        }
    }
    Ok(tx.commit().await?)
}

/// Returns the instant of a number of milliseconds; `None` for 0.
fn instant(millis: u64) -> Option<Timestamp> {
    let millis = i64::try_from(millis).ok().filter(|millis| *millis > 0);
    millis.map(Timestamp::from_millis)
}
