//! Resources that the nodes of an environment run: one row a resource, its body sealed, under the
//! generation that changed it. A removed resource keeps its row, so that a node that was away
//! learns of the removal.

pub mod set_identity;

use kanat_model::id::{EnvironmentId, EpochId};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Result, meta};
pub use set_identity::SetIdentity;

record! {
    /// A resource as nodes know it.
    pub struct PublishedResource {
        /// Kind and id, such as `flow/<id>` (`kanat_plan_stream::Kind`).
        pub resource_id: String,
        /// SHA-256 of the body; all zeros when removed.
        pub hash: [u8; 32],
        /// The sealed body; empty when removed.
        pub sealed: Vec<u8>,
        /// The generation of the environment that brought it.
        pub generation: u64,
        pub removed: bool,
    }
}

/// All that an environment runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub epoch: EpochId,
    pub identity: SetIdentity,
    /// In order of their ids, without the removed ones.
    pub resources: Vec<PublishedResource>,
}

const PUT: &str = sql!(
    PublishedResource,
    "INSERT INTO published ({COLUMNS}, environment_id) VALUES ({VALUES}, $6) ON CONFLICT \
     (environment_id, resource_id) DO UPDATE SET hash = excluded.hash, sealed = excluded.sealed, \
     generation = excluded.generation, removed = excluded.removed"
);

/// A resource that is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    pub id: String,
    /// SHA-256 of the body.
    pub hash: [u8; 32],
    /// The sealed body.
    pub sealed: Vec<u8>,
}

/// Adds or replaces a resource, and gives the environment's next generation.
pub async fn put(
    db: &mut Db,
    environment: &EnvironmentId,
    resource_id: &str,
    hash: [u8; 32],
    sealed: Vec<u8>,
) -> Result<u64> {
    let resource = Resource {
        id: resource_id.to_owned(),
        hash,
        sealed,
    };
    put_all(db, environment, &resource, &[]).await
}

/// Adds or replaces resources, each once, and gives the environment's next generation, which brings
/// all of them.
pub async fn put_all(
    db: &mut Db,
    environment: &EnvironmentId,
    first: &Resource,
    others: &[&Resource],
) -> Result<u64> {
    let others: Vec<_> = others
        .iter()
        .map(|resource| ResourceChange::Put(resource))
        .collect();
    apply_all(db, environment, ResourceChange::Put(first), &others).await
}

/// Removes a resource, and gives the environment's next generation.
pub async fn remove(db: &mut Db, environment: &EnvironmentId, resource_id: &str) -> Result<u64> {
    apply_all(db, environment, ResourceChange::Remove(resource_id), &[]).await
}

/// Change of one resource.
#[derive(Debug, Clone, Copy)]
pub enum ResourceChange<'a> {
    Put(&'a Resource),
    /// By its id.
    Remove(&'a str),
}

/// Applies changes, each of another resource, and gives the environment's next generation, which
/// brings all of them.
pub async fn apply_all(
    db: &mut Db,
    environment: &EnvironmentId,
    first: ResourceChange<'_>,
    others: &[ResourceChange<'_>],
) -> Result<u64> {
    let pairs = others.iter().map(|change| change.pair());
    let generation = set_identity::next(db, environment, first.pair(), pairs).await?;
    for change in std::iter::once(&first).chain(others) {
        let row = change.row(generation);
        db.run(PUT, &row.values_and(&[environment])).await?;
    }
    Ok(generation)
}

impl ResourceChange<'_> {
    fn pair(&self) -> set_identity::Next<'_> {
        match self {
            Self::Put(resource) => (resource.id.as_str(), Some(resource.hash)),
            Self::Remove(id) => (id, None),
        }
    }

    fn row(&self, generation: u64) -> PublishedResource {
        let (resource_id, hash, sealed) = match self {
            Self::Put(Resource { id, hash, sealed }) => (id.clone(), *hash, sealed.clone()),
            Self::Remove(id) => ((*id).to_owned(), [0; 32], Vec::new()),
        };
        PublishedResource {
            resource_id,
            hash,
            sealed,
            generation,
            removed: matches!(self, Self::Remove(_)),
        }
    }
}

statements! {
    /// One resource, unless it was removed.
    fn get(environment: &EnvironmentId, resource_id: &str) -> Option<PublishedResource> =
        "SELECT {COLUMNS} FROM published WHERE environment_id = $1 AND resource_id = $2 AND \
         removed = 0";

    /// Returns the resources that changed after `generation`, removed ones included, in the order
    /// of the changes.
    fn since(environment: &EnvironmentId, generation: u64) -> Vec<PublishedResource> =
        "SELECT {COLUMNS} FROM published WHERE environment_id = $1 AND generation > $2 ORDER BY \
         generation";
}

const ALL: &str = sql!(
    PublishedResource,
    "SELECT {COLUMNS} FROM published WHERE environment_id = $1 AND removed = 0 ORDER BY \
     resource_id"
);

/// Everything that the environment runs; `None` when there is no such environment. Read it in a
/// transaction.
pub async fn snapshot(db: &mut Db, environment: &EnvironmentId) -> Result<Option<Snapshot>> {
    let Some(identity) = set_identity::of(db, environment).await? else {
        return Ok(None);
    };
    let epoch = meta::epoch(db).await?;
    Ok(Some(Snapshot {
        epoch,
        identity,
        resources: db.all(ALL, &[environment]).await?,
    }))
}
