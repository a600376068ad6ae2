//! Published APIs; their versions are in `published_api/version.rs`, what their answers name in
//! `published_api/uses.rs`. Deleted rows stay; nothing reads them as APIs.

pub mod uses;
pub mod version;

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, PublishedApiId};
use kanat_model::page::{ListPage, Page};
use kanat_model::published_api::{Auth, Cors, Method, OAuth2, OnTimeout, Validation};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::sql::sql;
use crate::{Db, Error, search};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedApi {
    pub id: PublishedApiId,
    pub account_id: AccountId,
    pub environment_id: EnvironmentId,
    pub name: String,
    pub description: String,
    pub method: Method,
    pub path: String,
    /// Equal for paths that match the same requests; unique for its method.
    pub shape: String,
    pub auth: Auth,
    /// Only where tokens open the API.
    pub oauth2: Option<OAuth2>,
    pub validation: Validation,
    pub deadline_ms: u64,
    pub on_timeout: OnTimeout,
    pub strict_response: bool,
    /// None when pages of other origins may not call.
    pub cors: Option<Cors>,
    /// Grows with every change of the API and of its versions.
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Columns of a row, in the order of [`INSERT`].
const COLUMNS: &str = "id, account_id, environment_id, name, description, method, path, shape, \
                       auth, oauth2, validation, deadline_ms, on_timeout, strict_response, \
                       cors, revision, created_at, updated_at";

fn read(row: &AnyRow) -> Result<PublishedApi, Error> {
    fn known<T>(
        row: &AnyRow,
        column: &'static str,
        parse: fn(&str) -> Option<T>,
    ) -> Result<T, Error> {
        let text = row.text(column)?;
        parse(&text).ok_or(Error::Corrupt {
            column,
            value: text,
        })
    }
    Ok(PublishedApi {
        id: row.id("id")?,
        account_id: row.id("account_id")?,
        environment_id: row.id("environment_id")?,
        name: row.text("name")?,
        description: row.text("description")?,
        method: known(row, "method", Method::parse)?,
        path: row.text("path")?,
        shape: row.text("shape")?,
        auth: known(row, "auth", Auth::parse)?,
        oauth2: settings(row, "oauth2")?,
        validation: known(row, "validation", Validation::parse)?,
        deadline_ms: row.whole("deadline_ms")?,
        on_timeout: known(row, "on_timeout", OnTimeout::parse)?,
        strict_response: row.flag("strict_response")?,
        cors: settings(row, "cors")?,
        revision: row.whole("revision")?,
        created_at: row.time("created_at")?,
        updated_at: row.time("updated_at")?,
    })
}

fn settings<T: DeserializeOwned>(row: &AnyRow, column: &'static str) -> Result<Option<T>, Error> {
    let Some(text) = row.optional_text(column)? else {
        return Ok(None);
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|_| Error::Corrupt {
            column,
            value: text,
        })
}

fn json<T: Serialize>(settings: &Option<T>) -> Result<Option<String>, Error> {
    let write = |settings| {
        serde_json::to_string(settings).map_err(|error| sqlx::Error::Encode(Box::new(error)).into())
    };
    settings.as_ref().map(write).transpose()
}

const INSERT: &str = sql!(
    "INSERT INTO published_api ({COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, \
     $11, $12, $13, $14, $15, $16, $17, $18)"
);

/// Errors when the environment has an API of that name. Whether another one takes the same requests
/// is the caller's to see.
pub async fn insert(db: &mut Db, api: &PublishedApi) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(api.id.as_str())
        .bind(api.account_id.as_str())
        .bind(api.environment_id.as_str())
        .bind(api.name.as_str())
        .bind(api.description.as_str())
        .bind(api.method.as_str())
        .bind(api.path.as_str())
        .bind(api.shape.as_str())
        .bind(api.auth.as_str())
        .bind(json(&api.oauth2)?)
        .bind(api.validation.as_str())
        .bind(api.deadline_ms.cast_signed())
        .bind(api.on_timeout.as_str())
        .bind(i64::from(api.strict_response))
        .bind(json(&api.cors)?)
        .bind(api.revision.cast_signed())
        .bind(api.created_at.as_millis())
        .bind(api.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "published API", &api.name))?;
    Ok(())
}

const GET: &str = sql!(
    "SELECT {COLUMNS} FROM published_api WHERE environment_id = $1 AND id = $2 AND deleted_at \
     IS NULL"
);

pub async fn get(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &PublishedApiId,
) -> Result<Option<PublishedApi>, Error> {
    let row = sqlx::query(GET)
        .bind(environment.as_str())
        .bind(id.as_str())
        .fetch_optional(db)
        .await?;
    row.as_ref().map(read).transpose()
}

const BY_ROUTE: &str = sql!(
    "SELECT {COLUMNS} FROM published_api WHERE environment_id = $1 AND method = $2 AND shape \
     = $3 AND deleted_at IS NULL"
);

/// The API that takes the requests of this method on paths of this shape.
pub async fn by_route(
    db: &mut Db,
    environment: &EnvironmentId,
    method: Method,
    shape: &str,
) -> Result<Option<PublishedApi>, Error> {
    let query = sqlx::query(BY_ROUTE)
        .bind(environment.as_str())
        .bind(method.as_str())
        .bind(shape);
    query
        .fetch_optional(db)
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

const COUNT: &str = "SELECT COUNT(*) AS total FROM published_api WHERE environment_id = $1 AND \
                     deleted_at IS NULL AND ($2 = '' OR name GLOB $2 OR description GLOB $2 OR \
                     path GLOB $2)";
const LIST: &str = sql!(
    "SELECT {COLUMNS} FROM published_api WHERE environment_id = $1 AND deleted_at IS NULL AND \
     ($2 = '' OR name GLOB $2 OR description GLOB $2 OR path GLOB $2) ORDER BY id DESC LIMIT \
     $3 OFFSET $4"
);

/// The environment's APIs, newest first; `search` is looked for in name, description and path.
pub async fn list(
    db: &mut Db,
    environment: &EnvironmentId,
    search: &str,
    page: Page,
) -> Result<ListPage<PublishedApi>, Error> {
    let pattern = search::pattern(db, search)?;
    let total = sqlx::query(search::statement(db, COUNT))
        .bind(environment.as_str())
        .bind(pattern.as_str())
        .fetch_one(&mut *db)
        .await?
        .whole("total")?;
    let rows = sqlx::query(search::statement(db, LIST))
        .bind(environment.as_str())
        .bind(pattern.as_str())
        .bind(i64::from(page.limit))
        .bind(i64::from(page.offset))
        .fetch_all(db)
        .await?;
    Ok(ListPage {
        items: rows.iter().map(read).collect::<Result<_, _>>()?,
        total,
        page,
    })
}

const UPDATE: &str = "UPDATE published_api SET name = $3, description = $4, method = $5, path = \
                      $6, shape = $7, auth = $8, oauth2 = $9, validation = $10, deadline_ms = \
                      $11, on_timeout = $12, strict_response = $13, cors = $14, updated_at = $15, \
                      revision = revision + 1 WHERE environment_id = $1 AND id = $2 AND \
                      deleted_at IS NULL";

/// Writes what may change, as the next revision. Errors when another API of the environment has the
/// name.
pub async fn update(db: &mut Db, api: &mut PublishedApi) -> Result<(), Error> {
    sqlx::query(UPDATE)
        .bind(api.environment_id.as_str())
        .bind(api.id.as_str())
        .bind(api.name.as_str())
        .bind(api.description.as_str())
        .bind(api.method.as_str())
        .bind(api.path.as_str())
        .bind(api.shape.as_str())
        .bind(api.auth.as_str())
        .bind(json(&api.oauth2)?)
        .bind(api.validation.as_str())
        .bind(api.deadline_ms.cast_signed())
        .bind(api.on_timeout.as_str())
        .bind(i64::from(api.strict_response))
        .bind(json(&api.cors)?)
        .bind(api.updated_at.as_millis())
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "published API", &api.name))?;
    api.revision += 1;
    Ok(())
}

const DELETE: &str = "UPDATE published_api SET deleted_at = $3 \
    WHERE environment_id = $1 AND id = $2 AND deleted_at IS NULL";

/// Deletes an API; returns whether it existed.
pub async fn delete(
    db: &mut Db,
    environment: &EnvironmentId,
    id: &PublishedApiId,
    at: Timestamp,
) -> Result<bool, Error> {
    let done = sqlx::query(DELETE)
        .bind(environment.as_str())
        .bind(id.as_str())
        .bind(at.as_millis())
        .execute(db)
        .await?;
    Ok(done.rows_affected() > 0)
}
