//! Which set of an environment is the present one. A generation alone does not say: a database that
//! was restored from a backup reaches the same numbers again with other contents. So the hash over
//! the whole set goes with it, kept up to date in the transaction of each change, at the cost of
//! what changes.

use std::collections::HashMap;

use kanat_model::id::EnvironmentId;
use kanat_plan_stream::{Hash, SetHash};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::{Db, Error};

/// The present set of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision {
    pub generation: u64,
    /// Hash of everything published; none when a build that keeps no hash made the last change.
    pub set_hash: Option<SetHash>,
}

impl Revision {
    /// Returns whether a set of that generation and hash is the present one, as far as can be
    /// known.
    pub fn is(self, generation: u64, set_hash: SetHash) -> bool {
        self.generation == generation && self.fits(set_hash)
    }

    /// Returns whether the set may have that hash.
    pub fn fits(self, set_hash: SetHash) -> bool {
        self.set_hash.is_none_or(|own| own == set_hash)
    }
}

fn read(row: &AnyRow) -> Result<Revision, Error> {
    let generation = row.number("generation")?;
    let of = row.number("set_hash_of")?;
    let text = row.text("set_hash")?;
    let hash = SetHash::from_hex(&text);
    let set_hash = if of == generation {
        Some(hash.ok_or(Error::Corrupt {
            column: "set_hash",
            value: text,
        })?)
    } else {
        None
    };
    Ok(Revision {
        generation: row.whole("generation")?,
        set_hash,
    })
}

const OF: &str = "SELECT generation, set_hash, set_hash_of FROM environment WHERE id = $1";

/// The environment's; none when it does not exist.
pub async fn of(db: &mut Db, environment: &EnvironmentId) -> Result<Option<Revision>, Error> {
    let row = sqlx::query(OF)
        .bind(environment.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const ALL: &str = "SELECT id, generation, set_hash, set_hash_of FROM environment";

/// Returns the revisions of all environments.
pub async fn all(db: &mut Db) -> Result<HashMap<EnvironmentId, Revision>, Error> {
    let rows = sqlx::query(ALL).fetch_all(db).await?;
    rows.iter()
        .map(|row| Ok((row.id("id")?, read(row)?)))
        .collect()
}

const BUMP: &str = "UPDATE environment SET generation = generation + 1 WHERE id = $1 RETURNING \
                    generation - 1 AS generation, set_hash, set_hash_of, (SELECT hash FROM \
                    published WHERE environment_id = $1 AND resource_id = $2 AND removed = 0) AS \
                    hash";
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
) -> Result<u64, Error> {
    let row = sqlx::query(BUMP)
        .bind(environment.as_str())
        .bind(first.0)
        .fetch_one(&mut *db)
        .await?;
    let before = read(&row)?;
    let mut set_hash = match before.set_hash {
        Some(set_hash) => set_hash,
        None => whole(db, environment).await?,
    };
    set_hash = changed(set_hash, first, row.optional_hash("hash")?);
    for next in others {
        let row = sqlx::query(FORMER)
            .bind(environment.as_str())
            .bind(next.0)
            .fetch_optional(&mut *db)
            .await?;
        set_hash = changed(set_hash, next, row.map(|row| row.hash("hash")).transpose()?);
    }
    let generation = before.generation + 1;
    sqlx::query(NOTE)
        .bind(environment.as_str())
        .bind(set_hash.to_string())
        .bind(generation.cast_signed())
        .execute(db)
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
async fn whole(db: &mut Db, environment: &EnvironmentId) -> Result<SetHash, Error> {
    let rows = sqlx::query(HASHES)
        .bind(environment.as_str())
        .fetch_all(db)
        .await?;
    let mut set_hash = SetHash::default();
    for row in &rows {
        set_hash = set_hash.toggled(&row.text("resource_id")?, Hash::from(row.hash("hash")?));
    }
    Ok(set_hash)
}
