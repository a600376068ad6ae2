//! Where push reads from: the store's published resources, opened with the master key.

use std::sync::Arc;

use kanat_auth::Sealer;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, EpochId};
use kanat_plan_stream::Kind;
use kanat_proto::node::v1;
use kanat_store::published::{self, Published, Revision, revision};
use kanat_store::{Changes, Listener, Store, Tx, environment, meta, node};

use super::set::{Change, Entry, Set};

/// The store, as push sees it.
#[derive(Clone)]
pub struct Source {
    store: Store,
    sealer: Arc<Sealer>,
}

/// An environment that nodes may serve.
#[derive(Debug, Clone)]
pub struct Environment {
    pub id: EnvironmentId,
    pub name: String,
    pub account_id: AccountId,
    /// Of what its nodes are to run.
    pub revision: Revision,
}

/// What a read came to.
#[derive(Debug, Default)]
pub struct Read {
    /// The new set; none when nothing changed.
    pub set: Option<Arc<Set>>,
    /// Nodes may run now what they refused before: something other than a flow came or changed,
    /// which a flow may have lacked, or a resource was published again as it was.
    pub refused_may_run: bool,
}

/// Why what is published cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] kanat_store::Error),
    #[error("environment {0} does not exist")]
    NoEnvironment(EnvironmentId),
    #[error("the store has no environment at all, although it never is without one")]
    NoEnvironments,
    #[error(
        "what is published in environment {0} is not what was written there: rows are missing or \
         changed. Nothing is sent to nodes before it is restored"
    )]
    Damaged(EnvironmentId),
    #[error("resource {resource_id:?} cannot be opened: {source}")]
    Sealed {
        resource_id: String,
        source: kanat_auth::Error,
    },
    #[error("resource {0:?} does not have the hash that it was published with")]
    Hash(String),
    #[error("reading was cut off")]
    CutOff,
}

/// What the body of a published resource is sealed for.
pub fn seal_context(environment: &EnvironmentId, resource_id: &str) -> String {
    format!("published/{environment}/{resource_id}")
}

impl Source {
    pub fn new(store: Store, sealer: Arc<Sealer>) -> Self {
        Self { store, sealer }
    }

    /// The database's epoch, and the environments of all accounts. That there are none is a read
    /// that failed: every account has some.
    pub async fn environments(&self) -> Result<(EpochId, Vec<Environment>), Error> {
        let mut tx = self.store.read().await?;
        let epoch = meta::epoch(&mut tx).await?;
        let environments = environment::all(&mut tx).await?;
        let revisions = revision::all(&mut tx).await?;
        let of = |e: environment::Environment| {
            let revision = *revisions.get(&e.id)?;
            Some(Environment {
                id: e.id,
                name: e.name,
                account_id: e.account_id,
                revision,
            })
        };
        let environments: Vec<_> = environments.into_iter().filter_map(of).collect();
        if environments.is_empty() {
            Err(Error::NoEnvironments)
        } else {
            Ok((epoch, environments))
        }
    }

    /// Reads what changed since `current`, or all of it when there is no such set. A set that
    /// cannot be read wholly is not read at all. A store that turns out to have another past than
    /// `current`, because it was restored from a backup, gets another epoch: its generations cannot
    /// be compared with those that were read before.
    pub async fn read(
        &self,
        environment: &EnvironmentId,
        current: Option<&Arc<Set>>,
    ) -> Result<Read, Error> {
        loop {
            let mut tx = self.store.read().await?;
            let epoch = meta::epoch(&mut tx).await?;
            let revision = revision::of(&mut tx, environment).await?;
            let revision = revision.ok_or_else(|| Error::NoEnvironment(environment.clone()))?;
            let Some(current) = current.filter(|set| set.epoch == epoch) else {
                let set = self.whole(environment, tx).await?;
                return Ok(Read {
                    set: Some(set),
                    refused_may_run: true,
                });
            };
            if revision.is(current.generation, current.hash) {
                return Ok(Read::default());
            }
            if current.generation < revision.generation {
                let rows = published::since(&mut tx, environment, current.generation).await?;
                let refused_may_run = rows
                    .iter()
                    .any(|row| is_other(row) || is_again(row, current));
                let changes = self.open(environment, rows).await?;
                let set = current.changed(revision.generation, changes);
                if revision.fits(set.hash) {
                    return Ok(Read {
                        set: Some(Arc::new(set)),
                        refused_may_run,
                    });
                }
            }
            // Rows that were lost are no other past.
            self.whole(environment, tx).await?;
            self.renew_epoch(&epoch).await?;
        }
    }

    /// All that is published, proven to be what was written.
    async fn whole(&self, environment: &EnvironmentId, mut tx: Tx) -> Result<Arc<Set>, Error> {
        let snapshot = published::snapshot(&mut tx, environment).await?;
        drop(tx);
        let snapshot = snapshot.ok_or_else(|| Error::NoEnvironment(environment.clone()))?;
        let opened = self.open(environment, snapshot.resources).await?;
        let entries = opened.into_iter().filter_map(|(id, change)| match change {
            Change::Upsert(entry) => Some((id, entry)),
            Change::Removal => None,
        });
        let set = Set::new(snapshot.epoch, snapshot.revision.generation, entries);
        if snapshot.revision.fits(set.hash) {
            Ok(Arc::new(set))
        } else {
            Err(Error::Damaged(environment.clone()))
        }
    }

    async fn renew_epoch(&self, former: &EpochId) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        let renewed = meta::renew_epoch(&mut tx, former).await?;
        tx.commit().await?;
        if renewed {
            tracing::warn!(
                "the store has another past than what was read of it: it was restored, and gets a \
                 new epoch",
            );
        }
        Ok(())
    }

    /// Whether other control planes may work on the same database.
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// When to look again for what was changed.
    pub fn changes(&self) -> Changes {
        self.store.changes()
    }

    /// What other control planes announce; `None` where there are none.
    pub async fn listen(&self) -> Result<Option<Listener>, Error> {
        Ok(self.store.listen().await?)
    }

    /// Nodes connected to other control planes than `own`, seen after `since`.
    pub async fn nodes_elsewhere(
        &self,
        own: &BootId,
        since: Timestamp,
    ) -> Result<Vec<node::Node>, Error> {
        let mut tx = self.store.read().await?;
        Ok(node::elsewhere(&mut tx, own, since).await?)
    }

    /// Writes down how a node was last seen, and what changed of what it runs; unless another
    /// control plane has seen it later.
    pub async fn save_node(
        &self,
        seen: &node::Node,
        changed: &[&node::Running],
        gone: impl Iterator<Item = &EnvironmentId>,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin().await?;
        if node::upsert(&mut tx, seen).await? {
            for running in changed {
                node::environment::upsert(&mut tx, &seen.id, running).await?;
            }
            for environment in gone {
                node::environment::delete(&mut tx, &seen.id, environment).await?;
            }
        }
        Ok(tx.commit().await?)
    }

    /// Opens bodies off the runtime's threads: there may be very many, and large ones.
    async fn open(
        &self,
        environment: &EnvironmentId,
        rows: Vec<Published>,
    ) -> Result<Vec<(String, Change)>, Error> {
        let sealer = Arc::clone(&self.sealer);
        let environment = environment.clone();
        let open = move || {
            rows.into_iter()
                .map(|row| open(&sealer, &environment, row))
                .collect()
        };
        tokio::task::spawn_blocking(open)
            .await
            .map_err(|_| Error::CutOff)?
    }
}

fn open(
    sealer: &Sealer,
    environment: &EnvironmentId,
    row: Published,
) -> Result<(String, Change), Error> {
    if row.removed {
        return Ok((row.resource_id, Change::Removal));
    }
    let context = seal_context(environment, &row.resource_id);
    let body = sealer.open(&row.sealed, &context);
    let body = body.map_err(|source| Error::Sealed {
        resource_id: row.resource_id.clone(),
        source,
    })?;
    let entry = Entry::new(body.into());
    if *entry.hash.as_bytes() != row.hash {
        return Err(Error::Hash(row.resource_id));
    }
    Ok((row.resource_id, Change::Upsert(entry)))
}

/// Returns whether the row brings something other than a flow.
fn is_other(row: &Published) -> bool {
    !row.removed && !matches!(Kind::parse(&row.resource_id), Some((Kind::Flow, _)))
}

/// Returns whether the row brings what `current` has already.
fn is_again(row: &Published, current: &Set) -> bool {
    !row.removed
        && current
            .get(&row.resource_id)
            .is_some_and(|entry| *entry.hash.as_bytes() == row.hash)
}

impl Environment {
    pub fn into_wire(self) -> v1::Environment {
        v1::Environment {
            id: self.id.into_string(),
            name: self.name,
            account_id: self.account_id.into_string(),
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}
