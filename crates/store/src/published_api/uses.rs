//! Which lookup tables and adapters the answers of a published API name, and which APIs call a
//! flow: so that none is deleted under it.

use kanat_model::id::{FlowId, PublishedApiId};

use super::version::Content;
use crate::record::record;
use crate::statement::statements;
use crate::{Db, Error};

const CLEAR: &str = "DELETE FROM published_api_use WHERE api_id = $1";
const INSERT: &str =
    "INSERT INTO published_api_use (api_id, resource_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// Says anew what the API's answers name, such as `lookup_table/<id>`.
pub async fn replace(
    db: &mut Db,
    api: &PublishedApiId,
    resource_ids: &[String],
) -> Result<(), Error> {
    db.execute(CLEAR, &[api]).await?;
    for resource_id in resource_ids {
        db.execute(INSERT, &[api, resource_id]).await?;
    }
    Ok(())
}

statements! {
    /// Names of APIs whose answers name the resource, at most eleven.
    fn users(resource_id: &str) -> Vec<String> =
        "SELECT published_api.name AS name FROM published_api_use JOIN published_api ON \
         published_api.id = published_api_use.api_id WHERE published_api_use.resource_id = $1 AND \
         published_api.deleted_at IS NULL ORDER BY published_api.name LIMIT 11";

    /// Names of APIs that call the flow in a version that serves, at most ten.
    fn callers(flow: &FlowId) -> Vec<String> =
        "SELECT DISTINCT published_api.name AS name FROM published_api_version JOIN published_api \
         ON published_api.id = published_api_version.api_id WHERE published_api_version.flow_id = \
         $1 AND published_api_version.status <> 'retired' AND published_api.deleted_at IS NULL \
         ORDER BY published_api.name LIMIT 10";

    /// Returns the versions that serve and call the flow, in order of the names of their APIs.
    fn calling_versions(flow: &FlowId) -> Vec<CallingVersion> =
        "SELECT published_api.name AS api_name, published_api.strict_response AS \
         strict_response, published_api_version.number AS number, \
         published_api_version.request_schema AS request_schema, \
         published_api_version.response_schema AS response_schema, \
         published_api_version.response_mapping AS response_mapping, \
         published_api_version.response_status AS response_status, \
         published_api_version.response_headers AS response_headers FROM published_api_version \
         JOIN published_api ON published_api.id = published_api_version.api_id WHERE \
         published_api_version.flow_id = $1 AND published_api_version.status <> 'retired' AND \
         published_api.deleted_at IS NULL ORDER BY published_api.name, \
         published_api_version.number";
}

record! {
    /// A version of an API that calls a flow.
    pub struct CallingVersion {
        pub api_name: String,
        pub strict_response: bool,
        pub number: u32,
        pub content: Content {
            request_schema, response_schema, response_mapping, response_status, response_headers
        },
    }
}
