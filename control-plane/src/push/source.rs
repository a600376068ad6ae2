//! Source of push: the published resources of the store, opened with the master key.

use std::sync::Arc;
use std::time::Duration;

use kanat_auth::Sealer;
use kanat_model::Timestamp;
use kanat_model::id::{AccountId, BootId, EnvironmentId, EpochId};
use kanat_proto::node::v1;
use kanat_store::published::{self, PublishedResource, SetIdentity, set_identity};
use kanat_store::{Changes, Db, Listener, Store, Tx, control_plane, environment, meta, node};

use super::refusals;
use super::set::{PlanSet, ResourceChange, ResourceEntry};

/// The store, as push sees it.
#[derive(Clone)]
pub struct Source {
    store: Store,
    sealer: Arc<Sealer>,
}

/// Clock of the database's server, by which control planes on several machines compare times.
struct ServerClock {
    /// Milliseconds that it is ahead of the clock of this process; negative where it is behind.
    ahead: i64,
}

impl ServerClock {
    fn to_server(&self, own: Timestamp) -> Timestamp {
        Timestamp::from_millis(own.as_millis().saturating_add(self.ahead))
    }

    fn to_own(&self, server: Timestamp) -> Timestamp {
        Timestamp::from_millis(server.as_millis().saturating_sub(self.ahead))
    }
}

/// An environment that nodes may serve.
#[derive(Debug, Clone)]
pub struct Environment {
    pub id: EnvironmentId,
    pub name: String,
    pub account_id: AccountId,
    /// Identity of the set that its nodes are to run.
    pub set_identity: SetIdentity,
}

/// States of a node in its environments that [`Source::save_node`] writes.
#[derive(Debug)]
pub enum NodeStates<'s> {
    /// All that there are. The store then has no others of the node.
    All(&'s [node::EnvironmentStatus]),
    /// Only these.
    Changed(Vec<&'s node::EnvironmentStatus>),
}

/// Outcome of a read.
#[derive(Debug, Default)]
pub struct ReadOutcome {
    /// The new set; none when nothing changed.
    pub set: Option<Arc<PlanSet>>,
    /// True if nodes may now run resources that they refused before.
    pub clears_refusals: bool,
}

/// Reason why the published resources cannot be read.
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
    #[error("reading was cancelled")]
    Cancelled,
}

/// Returns the context that the body of a published resource is sealed for.
pub fn seal_context(environment: &EnvironmentId, resource_id: &str) -> String {
    format!("published/{environment}/{resource_id}")
}

impl Source {
    pub fn new(store: Store, sealer: Arc<Sealer>) -> Self {
        Self { store, sealer }
    }

    /// Reads the database's epoch, and the environments of all accounts.
    ///
    /// # Errors
    /// The store cannot be read, or has no environment: every account has some.
    pub async fn environments(&self) -> Result<(EpochId, Vec<Environment>), Error> {
        let mut tx = self.store.read().await?;
        let epoch = meta::epoch(&mut tx).await?;
        let environments = environment::all(&mut tx).await?;
        let identities = set_identity::all(&mut tx).await?;
        let of = |e: environment::Environment| {
            let set_identity = *identities.get(&e.id)?;
            Some(Environment {
                id: e.id,
                name: e.name,
                account_id: e.account_id,
                set_identity,
            })
        };
        let environments: Vec<_> = environments.into_iter().filter_map(of).collect();
        if environments.is_empty() {
            Err(Error::NoEnvironments)
        } else {
            Ok((epoch, environments))
        }
    }

    /// Reads the changes since `current`, or the whole set without it. A store whose history is not
    /// that of `current`, because it was restored from a backup, gets another epoch: its
    /// generations cannot be compared with those that were read before.
    ///
    /// # Errors
    /// The set cannot be read completely.
    pub async fn read(
        &self,
        environment: &EnvironmentId,
        current: Option<&Arc<PlanSet>>,
    ) -> Result<ReadOutcome, Error> {
        loop {
            let mut tx = self.store.read().await?;
            let epoch = meta::epoch(&mut tx).await?;
            let published = set_identity::of(&mut tx, environment).await?;
            let published = published.ok_or_else(|| Error::NoEnvironment(environment.clone()))?;
            let Some(current) = current.filter(|set| set.epoch == epoch) else {
                let set = self.read_whole_set(environment, tx).await?;
                return Ok(ReadOutcome {
                    set: Some(set),
                    clears_refusals: true,
                });
            };
            if published.matches(current.generation, current.hash) {
                return Ok(ReadOutcome::default());
            }
            if current.generation < published.generation {
                let rows = published::since(&mut tx, environment, current.generation).await?;
                let clears_refusals = refusals::are_cleared_by(&rows, current);
                let changes = self.open(environment, rows).await?;
                let set = current.with_changes(published.generation, changes);
                if published.hash_matches_or_is_unknown(set.hash) {
                    return Ok(ReadOutcome {
                        set: Some(Arc::new(set)),
                        clears_refusals,
                    });
                }
            }
            // First check that the whole set is sound: missing rows are damage, not a restore.
            self.read_whole_set(environment, tx).await?;
            self.renew_epoch(&epoch).await?;
        }
    }

    /// Reads the whole set, and checks its hash.
    async fn read_whole_set(
        &self,
        environment: &EnvironmentId,
        mut tx: Tx,
    ) -> Result<Arc<PlanSet>, Error> {
        let snapshot = published::snapshot(&mut tx, environment).await?;
        drop(tx);
        let snapshot = snapshot.ok_or_else(|| Error::NoEnvironment(environment.clone()))?;
        let opened = self.open(environment, snapshot.resources).await?;
        let entries = opened.into_iter().filter_map(|(id, change)| match change {
            ResourceChange::Upsert(entry) => Some((id, entry)),
            ResourceChange::Removal => None,
        });
        let set = PlanSet::new(snapshot.epoch, snapshot.identity.generation, entries);
        if snapshot.identity.hash_matches_or_is_unknown(set.hash) {
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
                "the history of the store differs from the one that was read before: it was \
                 restored, and gets a new epoch",
            );
        }
        Ok(())
    }

    /// Returns whether other control planes may work on the same database.
    pub fn is_shared(&self) -> bool {
        self.store.is_shared()
    }

    /// Returns the signals that the database may have changed.
    pub fn changes(&self) -> Changes {
        self.store.changes()
    }

    /// Returns the announcements of other control planes; `None` if there cannot be any.
    pub async fn listen(&self) -> Result<Option<Listener>, Error> {
        Ok(self.store.listen().await?)
    }

    /// Returns the nodes of other control planes than `own` that were seen in the last `max_age`.
    /// `now` is the time by the clock of this process, which the records that are returned have.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn peer_nodes(
        &self,
        own: &BootId,
        max_age: Duration,
        now: Timestamp,
    ) -> Result<Vec<node::Node>, Error> {
        let mut tx = self.store.read().await?;
        let clock = self.server_clock(&mut tx, now).await?;
        let oldest = clock.to_server(now.before(max_age));
        let mut nodes = node::elsewhere(&mut tx, own, oldest).await?;
        for node in &mut nodes {
            node.last_seen_at = clock.to_own(node.last_seen_at);
        }
        Ok(nodes)
    }

    /// Writes the record of a node, but for its environments, and `states`. Returns `false`, and
    /// writes nothing, if another control plane has written a later record. `now` is the time by
    /// the clock of this process. Records have the time of the database's server.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn save_node(
        &self,
        mut seen: node::Node,
        states: NodeStates<'_>,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let mut tx = self.store.begin().await?;
        let clock = self.server_clock(&mut tx, now).await?;
        seen.last_seen_at = clock.to_server(seen.last_seen_at);
        if !node::upsert(&mut tx, &seen).await? {
            return Ok(false);
        }
        let states = match states {
            NodeStates::Changed(changed) => changed,
            NodeStates::All(all) => {
                node::environment::delete_of_node(&mut tx, &seen.id).await?;
                all.iter().collect()
            }
        };
        for state in states {
            node::environment::upsert(&mut tx, &seen.id, state).await?;
        }
        tx.commit().await?;
        Ok(true)
    }

    /// Returns how the clock of the database's server differs from the one that says `now`. They
    /// are the same where no other machine writes.
    async fn server_clock(&self, db: &mut Db, now: Timestamp) -> Result<ServerClock, Error> {
        let ahead = if self.is_shared() {
            control_plane::server_time(db).await?.as_millis() - now.as_millis()
        } else {
            0
        };
        Ok(ServerClock { ahead })
    }

    /// Opens bodies off the runtime's threads: they may be many, and large.
    async fn open(
        &self,
        environment: &EnvironmentId,
        rows: Vec<PublishedResource>,
    ) -> Result<Vec<(String, ResourceChange)>, Error> {
        let sealer = Arc::clone(&self.sealer);
        let environment = environment.clone();
        let open = move || {
            rows.into_iter()
                .map(|row| open(&sealer, &environment, row))
                .collect()
        };
        tokio::task::spawn_blocking(open)
            .await
            .map_err(|_| Error::Cancelled)?
    }
}

fn open(
    sealer: &Sealer,
    environment: &EnvironmentId,
    row: PublishedResource,
) -> Result<(String, ResourceChange), Error> {
    if row.removed {
        return Ok((row.resource_id, ResourceChange::Removal));
    }
    let context = seal_context(environment, &row.resource_id);
    let body = sealer.open(&row.sealed, &context);
    let body = body.map_err(|source| Error::Sealed {
        resource_id: row.resource_id.clone(),
        source,
    })?;
    let entry = ResourceEntry::new(body.into());
    if *entry.hash.as_bytes() != row.hash {
        return Err(Error::Hash(row.resource_id));
    }
    Ok((row.resource_id, ResourceChange::Upsert(entry)))
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
