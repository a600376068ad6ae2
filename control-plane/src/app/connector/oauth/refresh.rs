//! Renewal of tokens ahead of their end, by one process at a time: the holder of an instance's
//! lease asks the provider, and writes the outcome only while it still holds the lease.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kanat_auth::random_token;
use kanat_catalog::oauth2::{Grant, TokenError};
use kanat_model::backoff::Backoff;
use kanat_model::health::Observation;
use kanat_model::id::EnvironmentId;
use kanat_model::{Error, Result, Timestamp};
use kanat_store::connector_instance::{self, ConnectorInstance};
use kanat_store::oauth_token::{self, Lease, LeftAlone, OauthToken};
use tokio::sync::Mutex;
use tokio::task::{self, JoinSet};
use tokio::time::sleep;

use super::{client, tokens};
use crate::app::{App, PublishTransaction};

/// Longer than a provider may take to answer, with time to write it.
const LEASE: Duration = Duration::from_secs(60);

/// Waits after attempts that failed.
const RETRY: Backoff = Backoff {
    first: Duration::from_secs(2),
    max: Duration::from_secs(300),
};

/// Concurrent renewals: a provider that does not answer delays no other.
const MAX_RENEWALS: usize = 128;

/// Concurrent renewals of an environment.
const MAX_RENEWALS_OF_ENVIRONMENT: usize = 8;

/// Concurrent renewals of an environment for connectors whose last renewal failed.
const MAX_RENEWALS_OF_FAILING: usize = 4;

/// Poll interval for further due renewals while some wait for others to end.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Renewals of this process.
#[derive(Default)]
pub struct Renewals {
    running: Mutex<Running>,
}

#[derive(Default)]
struct Running {
    tasks: JoinSet<()>,
    kinds: HashMap<task::Id, Kind>,
}

/// Environment and last outcome of a renewal, by which it is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    environment: EnvironmentId,
    /// The last attempt failed.
    failing: bool,
}

impl Running {
    fn begin(&mut self, kind: Kind, renewal: impl Future<Output = ()> + Send + 'static) {
        let id = self.tasks.spawn(renewal).id();
        self.kinds.insert(id, kind);
    }

    /// Waits until one has ended; for ever where there is none.
    async fn end_one(&mut self) {
        let id = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => id,
            Some(Err(error)) => {
                tracing::error!(%error, "a renewal of tokens broke off");
                error.id()
            }
            None => std::future::pending().await,
        };
        self.kinds.remove(&id);
    }

    fn end_those_that_have(&mut self) {
        while self.end_one().now_or_never().is_some() {}
    }

    fn left_alone(&self) -> LeftAlone {
        let mut counts: HashMap<&EnvironmentId, (usize, usize)> = HashMap::new();
        for kind in self.kinds.values() {
            let (all, failing) = counts.entry(&kind.environment).or_default();
            *all += 1;
            *failing += usize::from(kind.failing);
        }
        let mut left_alone = LeftAlone::default();
        for (environment, (all, failing)) in counts {
            if all >= MAX_RENEWALS_OF_ENVIRONMENT {
                left_alone.all.push(environment.clone());
            }
            if failing >= MAX_RENEWALS_OF_FAILING {
                left_alone.failing.push(environment.clone());
            }
        }
        left_alone
    }
}

/// Begins to renew what is due; says when to look again.
pub async fn refresh_due(app: &Arc<App>, renewals: &Renewals) -> Result<Option<Timestamp>> {
    let mut running = renewals.running.lock().await;
    loop {
        running.end_those_that_have();
        let is_full = running.kinds.len() >= MAX_RENEWALS;
        let left_alone = running.left_alone();
        if !is_full {
            let now = Timestamp::now();
            let mut tx = app.store.read().await?;
            let first = oauth_token::first(&mut tx, now, &left_alone).await?;
            drop(tx);
            if first.is_some_and(|first| first <= now) {
                begin_one(app, &mut running, now, &left_alone).await?;
                continue;
            }
            if left_alone.is_empty() {
                return Ok(first);
            }
        }
        tokio::select! {
            () = running.end_one() => {}
            () = sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Takes the lease of the first that is due, and begins to renew it.
async fn begin_one(
    app: &Arc<App>,
    running: &mut Running,
    now: Timestamp,
    left_alone: &LeftAlone,
) -> Result<()> {
    // What is read and written back here is sealed.
    let active = app.master_keys.calls.begin();
    let holder = random_token();
    let mut tx = app.store.begin().await?;
    let lease = Lease {
        holder: &holder,
        until: now.after(LEASE),
    };
    let claimed = oauth_token::claim(&mut tx, lease, now, left_alone).await?;
    tx.commit().await?;
    // Somebody was faster, and has it for now.
    let Some(row) = claimed else { return Ok(()) };
    let kind = Kind {
        environment: row.environment_id.clone(),
        failing: row.failures > 0,
    };
    let app = Arc::clone(app);
    running.begin(kind, async move {
        let _active = active;
        let id = row.instance_id.clone();
        if let Err(error) = refresh(&app, &holder, row).await {
            // The lease ends by itself, and somebody tries again.
            tracing::warn!(
                instance.id = %id,
                error = %error,
                "the tokens of a connector could not be renewed",
            );
        }
    });
    Ok(())
}

async fn refresh(app: &App, holder: &str, row: OauthToken) -> Result<()> {
    let mut tx = app.store.read().await?;
    let instance = connector_instance::get(&mut tx, &row.environment_id, &row.instance_id).await?;
    drop(tx);
    let Some(instance) = instance else {
        return settle(app, holder, done(row)).await;
    };
    match ask(app, &instance, &row).await {
        Ok(renewed) => grant(app, holder, &instance, &row, renewed).await,
        Err(TokenError::Refused(why)) => refuse(app, holder, &instance, row, why).await,
        Err(TokenError::Failed(why)) => postpone(app, holder, &instance, row, &why).await,
    }
}

/// Asks the provider for what follows on `row`.
async fn ask(
    app: &App,
    instance: &ConnectorInstance,
    row: &OauthToken,
) -> Result<OauthToken, TokenError> {
    let ours = |error: Error| TokenError::Failed(error.message);
    let entry = super::super::catalog_entry(&instance.catalog_id).map_err(ours)?;
    let config = super::super::config(app, instance).map_err(ours)?;
    let client = client(entry, &config).map_err(ours)?;
    let former = tokens::open(app, row).map_err(ours)?.refresh;
    let request = match (client.grant(), &former) {
        (Grant::ClientCredentials, _) => client.own(),
        (Grant::AuthorizationCode, Some(former)) => client.refresh(former.expose()),
        (Grant::AuthorizationCode, None) => {
            return Err(TokenError::Refused(
                "it gave no refresh token: connect again".to_owned(),
            ));
        }
    };
    let given = tokens::ask(app, request).await?;
    Ok(tokens::row(app, instance, given, former))
}

/// Keeps the tokens that the provider gave, and has nodes use them.
async fn grant(
    app: &App,
    holder: &str,
    instance: &ConnectorInstance,
    before: &OauthToken,
    renewed: OauthToken,
) -> Result<()> {
    let observed = (before.tokens.is_none() || before.failures > 0).then(|| {
        let reason = "the provider gave new tokens".to_owned();
        (Observation::TokensGranted, reason)
    });
    if !conclude(app, holder, instance, &renewed, observed).await? {
        tracing::info!(
            instance.id = %instance.id,
            "another process has written newer tokens meanwhile",
        );
    }
    Ok(())
}

/// Notes that the provider gives no more tokens: nodes wait for none any more.
async fn refuse(
    app: &App,
    holder: &str,
    instance: &ConnectorInstance,
    row: OauthToken,
    why: String,
) -> Result<()> {
    let row = OauthToken {
        refresh_at: None,
        refused: why,
        ..row
    };
    let reason = format!("the provider gives no new tokens: {}", row.refused);
    let observed = (Observation::TokensRefused, reason);
    if conclude(app, holder, instance, &row, Some(observed)).await? {
        tracing::warn!(instance.id = %instance.id, "the provider gives a connector no new tokens");
    }
    Ok(())
}

/// Ends a renewal with `row`, and publishes the instance with it unless it was deleted meanwhile.
/// Returns `false`, and does nothing, when the lease was lost.
async fn conclude(
    app: &App,
    holder: &str,
    instance: &ConnectorInstance,
    row: &OauthToken,
    observed: Option<(Observation, String)>,
) -> Result<bool> {
    let mut change = PublishTransaction::begin(app, &instance.environment_id).await?;
    if !oauth_token::settle(&mut change, row, Timestamp::now(), holder).await? {
        return Ok(false);
    }
    let found =
        connector_instance::get(&mut change, &instance.environment_id, &instance.id).await?;
    let Some(instance) = found else {
        return Ok(true);
    };
    if let Some((observation, reason)) = observed {
        super::super::health::observe(
            &mut change,
            &instance.id,
            observation,
            &reason,
            Timestamp::now(),
        )
        .await?;
    }
    super::super::republish(&mut change, &instance).await?;
    change.commit(()).await?;
    Ok(true)
}

async fn postpone(
    app: &App,
    holder: &str,
    instance: &ConnectorInstance,
    row: OauthToken,
    why: &str,
) -> Result<()> {
    let now = Timestamp::now();
    let ended = row.expires_at.is_none_or(|end| end <= now);
    let failures = row.failures.saturating_add(1);
    let row = OauthToken {
        refresh_at: Some(now.after(RETRY.delay(failures))),
        failures,
        ..row
    };
    let mut tx = app.store.begin().await?;
    if oauth_token::settle(&mut tx, &row, now, holder).await? && ended {
        let reason = format!("new tokens are late: {why}");
        super::super::health::observe(&mut tx, &instance.id, Observation::TokensLate, &reason, now)
            .await?;
    }
    Ok(tx.commit().await?)
}

/// There is nothing to renew any more.
fn done(row: OauthToken) -> OauthToken {
    OauthToken {
        refresh_at: None,
        ..row
    }
}

async fn settle(app: &App, holder: &str, row: OauthToken) -> Result<()> {
    let mut tx = app.store.begin().await?;
    oauth_token::settle(&mut tx, &row, Timestamp::now(), holder).await?;
    Ok(tx.commit().await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_environment_takes_a_part_of_the_renewals_and_its_failing_ones_half_of_that() {
        let environment = EnvironmentId::generate();
        let kind = |failing: bool| Kind {
            environment: environment.clone(),
            failing,
        };
        let ids = [environment.clone()];
        let mut running = Running::default();
        let others = Kind {
            environment: EnvironmentId::generate(),
            failing: true,
        };
        running.begin(others, std::future::pending());
        for _ in 1..MAX_RENEWALS_OF_FAILING {
            running.begin(kind(true), std::future::pending());
        }
        running.begin(kind(true), std::future::ready(()));
        assert_eq!(running.left_alone().failing, ids);
        for _ in MAX_RENEWALS_OF_FAILING..MAX_RENEWALS_OF_ENVIRONMENT {
            assert!(running.left_alone().all.is_empty());
            running.begin(kind(false), std::future::pending());
        }
        assert_eq!(running.left_alone().all, ids);
        running.end_one().await;
        running.end_those_that_have();
        assert!(running.left_alone().is_empty());
        assert_eq!(running.kinds.len(), MAX_RENEWALS_OF_ENVIRONMENT);
    }

    #[test]
    fn waits_grow_to_a_bound() {
        let waits: Vec<u64> = [1, 2, 3, 8, 9, 4_000_000_000]
            .map(|failures| RETRY.delay(failures).as_secs())
            .into();
        assert_eq!(waits, [2, 4, 8, 256, 300, 300]);
    }
}
