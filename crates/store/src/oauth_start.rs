//! Authorizations that were sent to a provider and have not come back; verifiers are sealed.
//! A row is found by the hash of its state and taken once.

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, InstanceId};

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthStart {
    pub state_sha256: [u8; 32],
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub instance_id: InstanceId,
    pub redirect_uri: String,
    /// Sealed.
    pub verifier: Vec<u8>,
    pub expires_at: Timestamp,
}

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "state_sha256, account_id, environment_id, instance_id, redirect_uri, \
                       verifier, expires_at";

const INSERT: &str =
    sql!("INSERT INTO oauth_start ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7)");

pub async fn insert(db: &mut Db, start: &OauthStart) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(start.state_sha256.as_slice())
        .bind(start.account_id.as_str())
        .bind(start.environment_id.as_str())
        .bind(start.instance_id.as_str())
        .bind(start.redirect_uri.as_str())
        .bind(start.verifier.as_slice())
        .bind(start.expires_at.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const TAKE: &str =
    sql!("DELETE FROM oauth_start WHERE state_sha256 = $1 AND expires_at > $2 RETURNING {COLUMNS}");

/// Takes the row out: nobody else gets it. None when there is none that has not expired.
pub async fn take(
    db: &mut Db,
    state_sha256: &[u8; 32],
    now: Timestamp,
) -> Result<Option<OauthStart>, Error> {
    let row = sqlx::query(TAKE)
        .bind(state_sha256.as_slice())
        .bind(now.as_millis())
        .fetch_optional(db)
        .await?;
    row.map(|row| {
        Ok(OauthStart {
            state_sha256: row.hash("state_sha256")?,
            account_id: row.id("account_id")?,
            environment_id: row.id("environment_id")?,
            instance_id: row.id("instance_id")?,
            redirect_uri: row.text("redirect_uri")?,
            verifier: row.bytes("verifier")?,
            expires_at: row.time("expires_at")?,
        })
    })
    .transpose()
}

const DELETE_EXPIRED: &str = "DELETE FROM oauth_start WHERE expires_at <= $1";

pub async fn delete_expired(db: &mut Db, now: Timestamp) -> Result<(), Error> {
    sqlx::query(DELETE_EXPIRED)
        .bind(now.as_millis())
        .execute(db)
        .await?;
    Ok(())
}

const DELETE_OF: &str = "DELETE FROM oauth_start WHERE instance_id = $1";

/// Ends all that was started for an instance.
pub async fn delete_of(db: &mut Db, instance: &InstanceId) -> Result<(), Error> {
    sqlx::query(DELETE_OF)
        .bind(instance.as_str())
        .execute(db)
        .await?;
    Ok(())
}
