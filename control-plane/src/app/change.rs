//! A change of what the nodes of an environment run: the rows and what is published of them go into
//! one transaction, and the answer waits until the change is live.

use std::fmt::Display;
use std::ops::{Deref, DerefMut};

use kanat_auth::Sealer;
use kanat_model::id::EnvironmentId;
use kanat_model::{Error, Result};
use kanat_plan_stream::{Hash, Kind};
use kanat_store::announcement::announce;
use kanat_store::published::{Resource, ResourceChange, set_identity};
use kanat_store::{Announcement, Db, Tx, environment, meta, published};
use prost::Message;

use crate::app::App;
use crate::push::source::seal_context;
use crate::push::{Rollout, SetVersion};

/// Result of a change, and whether every node runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeResult<T> {
    pub value: T,
    pub applied: Rollout,
}

impl<T> ChangeResult<T> {
    /// Converts the value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> ChangeResult<U> {
        ChangeResult {
            value: convert(self.value),
            applied: self.applied,
        }
    }

    /// Converts the value, which may be unreadable.
    pub fn try_map<U>(self, convert: impl FnOnce(T) -> Result<U>) -> Result<ChangeResult<U>> {
        Ok(ChangeResult {
            value: convert(self.value)?,
            applied: self.applied,
        })
    }
}

/// A transaction that changes and publishes what the nodes of one environment run. Others that
/// change the environment wait for its end, so that what was read in it still holds when it is
/// committed. It is rolled back when it is dropped.
pub struct PublishTransaction<'a> {
    pub(super) app: &'a App,
    environment: EnvironmentId,
    tx: Tx,
    generation: Option<u64>,
    urgent: bool,
}

impl<'a> PublishTransaction<'a> {
    /// Begins a change of an environment.
    ///
    /// # Errors
    /// The environment was deleted.
    pub async fn begin(app: &'a App, environment: &EnvironmentId) -> Result<Self> {
        let mut change = Self::begin_unlocked(app, environment).await?;
        lock(&mut change, environment).await?;
        Ok(change)
    }

    /// Begins a change without the lock of the environment, which the change may create.
    pub async fn begin_unlocked(app: &'a App, environment: &EnvironmentId) -> Result<Self> {
        let tx = app.store.begin().await?;
        Ok(Self {
            app,
            environment: environment.clone(),
            tx,
            generation: None,
            urgent: false,
        })
    }

    /// Marks the change as urgent: nodes get it at once, without a wait for other changes. A pause
    /// or a revoked token is urgent.
    pub fn mark_urgent(&mut self) {
        self.urgent = true;
    }

    /// Returns the resource that is published under `kind` and `id`.
    pub async fn published<M: Message + Default>(
        &mut self,
        kind: Kind,
        id: impl Display,
    ) -> Result<Option<M>> {
        published(&mut self.tx, &self.app.sealer, &self.environment, kind, id).await
    }

    /// Publishes a resource: nodes run `body` from now on.
    pub async fn put(&mut self, kind: Kind, id: impl Display, body: &impl Message) -> Result<()> {
        self.put_body(kind, id, &body.encode_to_vec()).await
    }

    /// Publishes a resource by its encoded body.
    pub async fn put_body(&mut self, kind: Kind, id: impl Display, body: &[u8]) -> Result<()> {
        let resource_id = kind.resource_id(id);
        let generation = put(
            &mut self.tx,
            &self.app.sealer,
            &self.environment,
            &resource_id,
            body,
        )
        .await?;
        self.generation = Some(generation);
        Ok(())
    }

    /// Publishes resources that are sealed already, each once, as one change of the environment.
    pub async fn put_all(&mut self, first: &Resource, others: &[&Resource]) -> Result<()> {
        self.generation =
            Some(published::put_all(&mut self.tx, &self.environment, first, others).await?);
        Ok(())
    }

    /// Publishes these bodies and takes these resources out of service, by their resource ids, each
    /// once, as one change of the environment.
    pub async fn put_and_remove(
        &mut self,
        bodies: &[(String, Vec<u8>)],
        removals: &[String],
    ) -> Result<()> {
        let sealer = &self.app.sealer;
        let environment = &self.environment;
        let puts: Vec<_> = bodies
            .iter()
            .map(|(id, body)| sealed(sealer, environment, id, body))
            .collect();
        let changes = puts
            .iter()
            .map(ResourceChange::Put)
            .chain(removals.iter().map(|id| ResourceChange::Remove(id)));
        if let Some((first, others)) = changes.collect::<Vec<_>>().split_first() {
            self.generation =
                Some(published::apply_all(&mut self.tx, environment, *first, others).await?);
        }
        Ok(())
    }

    /// Takes a resource out of service.
    pub async fn remove(&mut self, kind: Kind, id: impl Display) -> Result<()> {
        let resource_id = kind.resource_id(id);
        let generation = published::remove(&mut self.tx, &self.environment, &resource_id).await?;
        self.generation = Some(generation);
        Ok(())
    }

    /// Commits, notifies the nodes, and waits until each runs it or the time to wait is over.
    pub async fn commit<T>(self, value: T) -> Result<ChangeResult<T>> {
        let app = self.app;
        let environment = self.environment.clone();
        let version = self.publish().await?;
        let applied = wait_for_nodes(app, &environment, version.as_ref()).await;
        Ok(ChangeResult { value, applied })
    }

    /// Answers the repeat of a change, which was made before a crash kept it from being answered.
    /// Changes nothing, and waits until each node runs what is published now, which has that
    /// change, or the time to wait is over.
    pub async fn answer_repeat<T>(mut self, value: T) -> Result<ChangeResult<T>> {
        let current = current_version(&mut self.tx, &self.environment).await?;
        drop(self.tx);
        let applied = wait_for_nodes(self.app, &self.environment, current.as_ref()).await;
        Ok(ChangeResult { value, applied })
    }

    /// Commits and notifies the nodes. Returns the version of the change; `None` if nothing was
    /// published.
    pub async fn publish(mut self) -> Result<Option<SetVersion>> {
        let version = self.version().await?;
        if let Some(SetVersion { generation, .. }) = version {
            let environment_id = self.environment.clone();
            let urgent = self.urgent;
            announce(
                &mut self.tx,
                &Announcement::Published {
                    environment_id,
                    generation,
                    urgent,
                },
            )
            .await?;
        }
        self.tx.commit().await?;
        if version.is_some() {
            if self.urgent {
                self.app.hub.notify_changed_now(&self.environment);
            } else {
                self.app.hub.notify_changed(&self.environment);
            }
        }
        Ok(version)
    }

    /// Returns the version of the change; `None` if nothing was published so far. No other change
    /// gets this version while the transaction lasts; the next one does if it is rolled back.
    /// After a restore of the store, nodes may run a set of this generation already. The epoch is
    /// replaced then, so that no node seems to run this change.
    pub async fn version(&mut self) -> Result<Option<SetVersion>> {
        let Some(generation) = self.generation else {
            return Ok(None);
        };
        let mut version = SetVersion {
            epoch: meta::epoch(&mut self.tx).await?,
            generation,
        };
        if self.app.hub.is_ahead_of(&self.environment, &version) {
            meta::renew_epoch(&mut self.tx, &version.epoch).await?;
            version.epoch = meta::epoch(&mut self.tx).await?;
        }
        Ok(Some(version))
    }
}

impl Deref for PublishTransaction<'_> {
    type Target = Db;

    fn deref(&self) -> &Db {
        &self.tx
    }
}

impl DerefMut for PublishTransaction<'_> {
    fn deref_mut(&mut self) -> &mut Db {
        &mut self.tx
    }
}

/// Waits until each node runs the change, or the time to wait is over. Without a version nothing
/// was published, and there is nothing to wait for.
pub async fn wait_for_nodes(
    app: &App,
    environment: &EnvironmentId,
    version: Option<&SetVersion>,
) -> Rollout {
    match version {
        Some(version) => app.hub.wait_until_applied(environment, version).await,
        None => Rollout::Everywhere,
    }
}

/// Returns the version of what is published in an environment; `None` if it does not exist.
pub async fn current_version(
    db: &mut Db,
    environment: &EnvironmentId,
) -> Result<Option<SetVersion>> {
    let Some(identity) = set_identity::of(db, environment).await? else {
        return Ok(None);
    };
    Ok(Some(SetVersion {
        epoch: meta::epoch(db).await?,
        generation: identity.generation,
    }))
}

/// Makes other changes of the environment, and its end, wait for the end of this transaction.
///
/// # Errors
/// The environment was deleted.
pub async fn lock(db: &mut Db, environment: &EnvironmentId) -> Result<()> {
    if environment::lock(db, environment).await? {
        return Ok(());
    }
    Err(Error::not_found("environment", environment.as_str()))
}

/// Publishes a resource, and returns the environment's next generation. Sends no notification.
pub async fn put(
    db: &mut Db,
    sealer: &Sealer,
    environment: &EnvironmentId,
    resource_id: &str,
    body: &[u8],
) -> Result<u64> {
    let Resource { id, hash, sealed } = sealed(sealer, environment, resource_id, body);
    Ok(published::put(db, environment, &id, hash, sealed).await?)
}

/// A resource as the store keeps it.
pub fn sealed(
    sealer: &Sealer,
    environment: &EnvironmentId,
    resource_id: &str,
    body: &[u8],
) -> Resource {
    Resource {
        id: resource_id.to_owned(),
        hash: *Hash::of(body).as_bytes(),
        sealed: sealer.seal(body, &seal_context(environment, resource_id)),
    }
}

/// Returns the resource that is published under `kind` and `id`, as nodes get it.
pub async fn published<M: Message + Default>(
    db: &mut Db,
    sealer: &Sealer,
    environment: &EnvironmentId,
    kind: Kind,
    id: impl Display,
) -> Result<Option<M>> {
    let resource_id = kind.resource_id(id);
    let Some(row) = published::get(db, environment, &resource_id).await? else {
        return Ok(None);
    };
    let body = sealer
        .open(&row.sealed, &seal_context(environment, &resource_id))
        .map_err(|error| unreadable(&resource_id, &error))?;
    M::decode(body.as_slice())
        .map(Some)
        .map_err(|error| unreadable(&resource_id, &error))
}

fn unreadable(resource_id: &str, error: &dyn std::fmt::Display) -> Error {
    tracing::error!(resource.id = %resource_id, error = %error, "what is published cannot be read");
    Error::internal()
}

#[cfg(test)]
mod tests {
    use kanat_auth::Role;

    use crate::app::{flow, testing};
    use crate::push::Rollout;

    /// The node of the process has not connected, as it is after a restart.
    #[tokio::test]
    async fn the_repeat_of_a_change_waits_until_nodes_run_it() {
        let folder = tempfile::tempdir().unwrap();
        let app = testing::in_folder(folder.path()).await;
        app.hub.expect_own_node();
        let orders = testing::flow(&app, "orders").await;
        let mut call = testing::call(&app, Role::Editor).await;
        call.caller.idempotency_id = Some("a-key".to_owned());
        let mut tx = app.store.begin().await.unwrap();
        let caller = &call.caller;
        caller
            .record_idempotent_result(&mut tx, &orders.id)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        let (paused, deployed) = tokio::join!(
            flow::pause(&call, &orders.id),
            flow::deploy(&call, &orders.id, flow::Deploy::default()),
        );
        assert_eq!(paused.unwrap().applied, Rollout::Pending);
        assert_eq!(deployed.unwrap().applied, Rollout::Pending);
    }
}
