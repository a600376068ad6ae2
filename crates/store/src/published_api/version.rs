//! Versions of published APIs.

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, PublishedApiId};
use kanat_model::published_api::{VersionStatus, version_label};

use crate::record::{Record, record};
use crate::sql::sql;
use crate::statement::statements;
use crate::{Db, Error, Result};

record! {
    /// Input, flow and answer of a version of an API.
    pub struct Version {
        /// As in `v2`.
        pub number: u32,
        pub status: VersionStatus,
        pub flow_id: FlowId,
        pub content: Content {
            request_schema, response_schema, response_mapping, response_status, response_headers
        },
        /// When it may end, once it is deprecated.
        pub sunset_at: Option<Timestamp>,
        pub created_at: Timestamp,
        pub deprecated_at: Option<Timestamp>,
        pub retired_at: Option<Timestamp>,
    } read {
        /// Present name of the flow; read along, never written.
        pub flow_name: String,
    }
}

/// JSON texts as they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    pub request_schema: Option<String>,
    pub response_schema: Option<String>,
    pub response_mapping: Option<String>,
    pub response_status: Option<String>,
    pub response_headers: Option<String>,
}

const INSERT: &str = sql!(
    Version,
    "INSERT INTO published_api_version ({COLUMNS}, api_id) VALUES ({VALUES}, $13)"
);

/// Errors when the API has a version of that number.
pub async fn insert(db: &mut Db, api: &PublishedApiId, version: &Version) -> Result<()> {
    db.run(INSERT, &version.values_and(&[api]))
        .await
        .map_err(Error::taken("version", &version_label(version.number)))
}

statements! {
    /// All versions of the API, highest number first.
    fn list(api: &PublishedApiId) -> Vec<Version> =
        "SELECT published_api_version.number AS number, published_api_version.status AS status, \
         published_api_version.flow_id AS flow_id, flow.name AS flow_name, \
         published_api_version.request_schema AS request_schema, \
         published_api_version.response_schema AS response_schema, \
         published_api_version.response_mapping AS response_mapping, \
         published_api_version.response_status AS response_status, \
         published_api_version.response_headers AS response_headers, \
         published_api_version.sunset_at AS sunset_at, published_api_version.created_at AS \
         created_at, published_api_version.deprecated_at AS deprecated_at, \
         published_api_version.retired_at AS retired_at FROM published_api_version JOIN flow ON \
         flow.id = published_api_version.flow_id WHERE published_api_version.api_id = $1 ORDER BY \
         published_api_version.number DESC";

    /// Writes what may change.
    fn update(api: &PublishedApiId, ..version: &Version) =
        "UPDATE published_api_version SET status = {status}, flow_id = {flow_id}, request_schema = \
         {request_schema}, response_schema = {response_schema}, response_mapping = \
         {response_mapping}, response_status = {response_status}, response_headers = \
         {response_headers}, sunset_at = {sunset_at}, deprecated_at = {deprecated_at}, retired_at \
         = {retired_at} WHERE api_id = $13 AND number = {number}";
}
