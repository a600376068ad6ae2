//! Identity of the present set of an environment. A generation alone does not identify it: a
//! database that was restored from a backup reaches the same numbers again with other contents. So
//! the hash over the whole set goes with it, kept up to date in the transaction of each change, at
//! the cost of what changes.

use std::collections::HashMap;

use kanat_model::id::EnvironmentId;
use kanat_plan_stream::{Hash, SetHash};
use sqlx::any::AnyRow;

use crate::record::{FromRow, RowExt};
use crate::statement::statements;
use crate::{Db, Error, Result};

/// Generation and hash of the present set of an environment. Its set version also has the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetIdentity {
    pub generation: u64,
    /// Hash of the set; none if a build that keeps no hash made the last change.
    pub set_hash: Option<SetHash>,
}

impl SetIdentity {
    /// Returns whether a set of that generation and hash is the present one. If no hash is stored,
    /// the generation decides.
    pub fn matches(self, generation: u64, set_hash: SetHash) -> bool {
        self.generation == generation && self.hash_matches_or_is_unknown(set_hash)
    }

    /// Returns whether the present set has that hash, or no hash is stored. Without a stored hash
    /// each set passes, so that a change by a build that keeps none is not taken for damage.
    pub fn hash_matches_or_is_unknown(self, set_hash: SetHash) -> bool {
        self.set_hash.is_none_or(|own| own == set_hash)
    }
}

impl FromRow for SetIdentity {
    fn read(row: &AnyRow, _: usize) -> Result<Self> {
        let generation: i64 = row.column("generation")?;
        let text: String = row.column("set_hash")?;
        let set_hash = if row.column::<i64>("set_hash_of")? == generation {
            let hash = SetHash::from_hex(&text);
            Some(hash.ok_or_else(|| Error::corrupt("set_hash", text))?)
        } else {
            None
        };
        Ok(Self {
            generation: row.column("generation")?,
            set_hash,
        })
    }
}

statements! {
    /// Returns the identity of the environment's set; none if the environment does not exist.
    fn of(environment: &EnvironmentId) -> Option<SetIdentity> =
        "SELECT generation, set_hash, set_hash_of FROM environment WHERE id = $1";
}

const ALL: &str = "SELECT id, generation, set_hash, set_hash_of FROM environment";

/// Returns the identities of the sets of all environments.
pub async fn all(db: &mut Db) -> Result<HashMap<EnvironmentId, SetIdentity>> {
    Ok(db.all(ALL, &[]).await?.into_iter().collect())
}

const BUMP: &str = "UPDATE environment SET generation = generation + 1 WHERE id = $1 RETURNING \
                    (SELECT hash FROM published WHERE environment_id = $1 AND resource_id = $2 \
                    AND removed = 0) AS hash, generation - 1 AS generation, set_hash, set_hash_of";
const FORMER: &str =
    "SELECT hash FROM published WHERE environment_id = $1 AND resource_id = $2 AND removed = 0";
const HASHES: &str =
    "SELECT resource_id, hash FROM published WHERE environment_id = $1 AND removed = 0";
const NOTE: &str = "UPDATE environment SET set_hash = $2, set_hash_of = $3 WHERE id = $1";

/// A resource id, and the hash that it has from now on; none when it is no longer there.
pub(super) type Next<'a> = (&'a str, Option<[u8; 32]>);

/// Takes the next generation, which brings all of this. To be called before the rows are written.
/// The environment stays locked until the transaction ends, so that generations become visible in
/// their order.
pub(super) async fn next(
    db: &mut Db,
    environment: &EnvironmentId,
    first: Next<'_>,
    others: impl Iterator<Item = Next<'_>>,
) -> Result<u64> {
    let (former, before): (_, SetIdentity) = db.one(BUMP, &[environment, &first.0]).await?;
    let mut set_hash = match before.set_hash {
        Some(set_hash) => set_hash,
        None => whole(db, environment).await?,
    };
    set_hash = changed(set_hash, first, former);
    for next in others {
        let former = db.first(FORMER, &[environment, &next.0]).await?;
        set_hash = changed(set_hash, next, former);
    }
    let generation = before.generation + 1;
    db.run(NOTE, &[environment, &set_hash.to_string(), &generation])
        .await?;
    Ok(generation)
}

/// The hash of the set in which the resource had the hash `former` until now.
fn changed(set_hash: SetHash, (resource_id, hash): Next<'_>, former: Option<[u8; 32]>) -> SetHash {
    let pairs = former.into_iter().chain(hash).map(Hash::from);
    pairs.fold(set_hash, |set_hash, hash| {
        set_hash.toggled(resource_id, hash)
    })
}

/// The hash over every row.
async fn whole(db: &mut Db, environment: &EnvironmentId) -> Result<SetHash> {
    let resources: Vec<(String, [u8; 32])> = db.all(HASHES, &[environment]).await?;
    let toggled = |set_hash: SetHash, (id, hash): &(String, [u8; 32])| {
        set_hash.toggled(id, Hash::from(*hash))
    };
    Ok(resources.iter().fold(SetHash::default(), toggled))
}
