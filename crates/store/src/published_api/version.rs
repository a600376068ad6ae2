//! Versions of published APIs.

use kanat_model::Timestamp;
use kanat_model::id::{FlowId, PublishedApiId};
use kanat_model::published_api::{VersionStatus, version_label};
use sqlx::any::AnyRow;

use crate::row::RowExt;
use crate::{Db, Error};

/// Input, flow and answer of a version of an API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// As in `v2`.
    pub number: u32,
    pub status: VersionStatus,
    pub flow_id: FlowId,
    /// Present name of the flow; read along, never written.
    pub flow_name: String,
    pub content: Content,
    /// When it may end, once it is deprecated.
    pub sunset_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub deprecated_at: Option<Timestamp>,
    pub retired_at: Option<Timestamp>,
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

fn read(row: &AnyRow) -> Result<Version, Error> {
    let status = row.text("status")?;
    Ok(Version {
        number: row.whole("number")?,
        status: VersionStatus::parse(&status).ok_or(Error::Corrupt {
            column: "status",
            value: status,
        })?,
        flow_id: row.id("flow_id")?,
        flow_name: row.text("flow_name")?,
        content: Content {
            request_schema: row.optional_text("request_schema")?,
            response_schema: row.optional_text("response_schema")?,
            response_mapping: row.optional_text("response_mapping")?,
            response_status: row.optional_text("response_status")?,
            response_headers: row.optional_text("response_headers")?,
        },
        sunset_at: row.optional_time("sunset_at")?,
        created_at: row.time("created_at")?,
        deprecated_at: row.optional_time("deprecated_at")?,
        retired_at: row.optional_time("retired_at")?,
    })
}

const INSERT: &str = "INSERT INTO published_api_version (api_id, number, status, flow_id, \
                      request_schema, response_schema, response_mapping, response_status, \
                      response_headers, sunset_at, created_at, deprecated_at, retired_at) VALUES \
                      ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";

/// Errors when the API has a version of that number.
pub async fn insert(db: &mut Db, api: &PublishedApiId, version: &Version) -> Result<(), Error> {
    sqlx::query(INSERT)
        .bind(api.as_str())
        .bind(i64::from(version.number))
        .bind(version.status.as_str())
        .bind(version.flow_id.as_str())
        .bind(version.content.request_schema.clone())
        .bind(version.content.response_schema.clone())
        .bind(version.content.response_mapping.clone())
        .bind(version.content.response_status.clone())
        .bind(version.content.response_headers.clone())
        .bind(version.sunset_at.map(Timestamp::as_millis))
        .bind(version.created_at.as_millis())
        .bind(version.deprecated_at.map(Timestamp::as_millis))
        .bind(version.retired_at.map(Timestamp::as_millis))
        .execute(db)
        .await
        .map_err(|error| Error::taken(error, "version", &version_label(version.number)))?;
    Ok(())
}

const LIST: &str = "SELECT published_api_version.number AS number, published_api_version.status \
                    AS status, published_api_version.flow_id AS flow_id, flow.name AS flow_name, \
                    published_api_version.request_schema AS request_schema, \
                    published_api_version.response_schema AS response_schema, \
                    published_api_version.response_mapping AS response_mapping, \
                    published_api_version.response_status AS response_status, \
                    published_api_version.response_headers AS response_headers, \
                    published_api_version.sunset_at AS sunset_at, \
                    published_api_version.created_at AS created_at, \
                    published_api_version.deprecated_at AS deprecated_at, \
                    published_api_version.retired_at AS retired_at FROM published_api_version \
                    JOIN flow ON flow.id = published_api_version.flow_id WHERE \
                    published_api_version.api_id = $1 ORDER BY published_api_version.number DESC";

/// All versions of the API, highest number first.
pub async fn list(db: &mut Db, api: &PublishedApiId) -> Result<Vec<Version>, Error> {
    let rows = sqlx::query(LIST).bind(api.as_str()).fetch_all(db).await?;
    rows.iter().map(read).collect()
}

const UPDATE: &str = "UPDATE published_api_version SET status = $3, flow_id = $4, request_schema \
                      = $5, response_schema = $6, response_mapping = $7, response_status = $8, \
                      response_headers = $9, sunset_at = $10, deprecated_at = $11, retired_at = \
                      $12 WHERE api_id = $1 AND number = $2";

/// Writes what may change.
pub async fn update(db: &mut Db, api: &PublishedApiId, version: &Version) -> Result<(), Error> {
    sqlx::query(UPDATE)
        .bind(api.as_str())
        .bind(i64::from(version.number))
        .bind(version.status.as_str())
        .bind(version.flow_id.as_str())
        .bind(version.content.request_schema.clone())
        .bind(version.content.response_schema.clone())
        .bind(version.content.response_mapping.clone())
        .bind(version.content.response_status.clone())
        .bind(version.content.response_headers.clone())
        .bind(version.sunset_at.map(Timestamp::as_millis))
        .bind(version.deprecated_at.map(Timestamp::as_millis))
        .bind(version.retired_at.map(Timestamp::as_millis))
        .execute(db)
        .await?;
    Ok(())
}
