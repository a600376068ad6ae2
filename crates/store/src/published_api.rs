//! Published APIs; their versions are in `published_api/version.rs`, what their answers name in
//! `published_api/uses.rs`. Deleted rows stay; nothing reads them as APIs.

pub mod uses;
pub mod version;

use kanat_model::Timestamp;
use kanat_model::id::{AccountId, EnvironmentId, PublishedApiId};
use kanat_model::published_api::{Auth, Cors, Method, OAuth2, OnTimeout, Validation};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::{lists, statements};
use crate::{Db, Error, Result, search_entry};

record! {
    pub struct PublishedApi in "published_api" {
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
}

/// Errors when the environment has an API of that name. Whether another one takes the same requests
/// is the caller's to see.
pub async fn insert(db: &mut Db, api: &PublishedApi) -> Result<()> {
    db.insert(api)
        .await
        .map_err(Error::taken("published API", &api.name))?;
    search_entry::update(db, api.id.as_str()).await
}

statements! {
    fn get(environment: &EnvironmentId, id: &PublishedApiId) -> Option<PublishedApi> =
        "SELECT {COLUMNS} FROM published_api WHERE environment_id = $1 AND id = $2 AND deleted_at \
         IS NULL";

    /// The API that takes the requests of this method on paths of this shape.
    fn by_route(environment: &EnvironmentId, method: Method, shape: &str) -> Option<PublishedApi> =
        "SELECT {COLUMNS} FROM published_api WHERE environment_id = $1 AND method = $2 AND shape \
         = $3 AND deleted_at IS NULL";

    /// Deletes an API; returns whether it existed.
    fn delete(environment: &EnvironmentId, id: &PublishedApiId, at: Timestamp) -> bool =
        "UPDATE published_api SET deleted_at = $3 WHERE environment_id = $1 AND id = $2 AND \
         deleted_at IS NULL", index id;
}

lists! {
    /// The environment's APIs, newest first; `search` is looked for in name, description and path.
    fn list(environment: &EnvironmentId; search) -> PublishedApi =
        "FROM published_api WHERE environment_id = $1 AND deleted_at IS NULL AND ($2 = '' OR name \
         GLOB $2 OR description GLOB $2 OR path GLOB $2)",
        "ORDER BY id DESC LIMIT $3 OFFSET $4";
}

const UPDATE: &str = sql!(
    PublishedApi,
    "UPDATE published_api SET name = {name}, description = {description}, method = {method}, path \
     = {path}, shape = {shape}, auth = {auth}, oauth2 = {oauth2}, validation = {validation}, \
     deadline_ms = {deadline_ms}, on_timeout = {on_timeout}, strict_response = {strict_response}, \
     cors = {cors}, updated_at = {updated_at}, revision = revision + 1 WHERE environment_id = \
     {environment_id} AND id = {id} AND deleted_at IS NULL"
);

/// Writes what may change, as the next revision. Errors when another API of the environment has the
/// name.
pub async fn update(db: &mut Db, api: &mut PublishedApi) -> Result<()> {
    db.run(UPDATE, &api.values())
        .await
        .map_err(Error::taken("published API", &api.name))?;
    api.revision += 1;
    search_entry::update(db, api.id.as_str()).await
}
