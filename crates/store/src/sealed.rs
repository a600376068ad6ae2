//! Values that are sealed at rest, of whatever table: for sealing them anew when the master key
//! changes. What a value means, and what it is sealed for, is not known here.

use kanat_model::Timestamp;
use sqlx::AssertSqlSafe;

use crate::record::record;
use crate::statement::statements;
use crate::{Db, Result};

/// Column of sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Webhook tokens of flows; the row is the flow's id.
    WebhookToken,
    /// Drafts of flows; the row is the flow's id. A version that has the value of the draft is
    /// replaced with it, so that the two stay recognisably equal.
    Draft,
    /// Versions of flows; the row is the flow's id and the version. All versions and the draft of
    /// the flow that have the value are replaced together.
    Version,
    /// Configs of connector instances; the row is the instance's id.
    ConnectorConfig,
    /// Verifiers of OAuth2 starts; the row is the SHA-256 of the state in hexadecimal digits.
    OauthVerifier,
    /// Tokens of OAuth2 clients; the row is the instance's id.
    OauthTokens,
    /// Resources that nodes run; the row is the environment's id and the resource's id.
    Published,
    /// Answers to calls with an idempotency key; the row is the id of the API key and the
    /// idempotency key.
    KeptAnswer,
}

/// Names a row by one text or two.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub first: String,
    /// Empty where one text names it.
    pub second: String,
}

record! {
    /// Sealed value of a row.
    pub struct Value {
        pub row: Row { first, second },
        pub sealed: Vec<u8>,
    }
}

/// Statements of a column: one that lists its values, and those that put a value in the place of
/// another.
struct Statements {
    page: &'static str,
    replace: &'static [&'static str],
}

/// Statements that replace a definition wherever a flow has it.
const REPLACE_DEFINITION: &[&str] = &[
    "UPDATE flow SET sealed_config = $4 WHERE id = $1 AND $2 IS NOT NULL AND sealed_config = $3",
    "UPDATE flow_version SET sealed_config = $4 WHERE flow_id = $1 AND $2 IS NOT NULL AND \
     sealed_config = $3",
];

impl Column {
    /// All columns of sealed values.
    pub const ALL: [Self; 8] = [
        Self::WebhookToken,
        Self::Draft,
        Self::Version,
        Self::ConnectorConfig,
        Self::OauthVerifier,
        Self::OauthTokens,
        Self::Published,
        Self::KeptAnswer,
    ];

    fn statements(self) -> Statements {
        match self {
            Self::WebhookToken => Statements {
                page: "SELECT id AS first, '' AS second, webhook_token AS sealed FROM flow WHERE \
                       id > $1 AND $2 = '' AND substr(webhook_token, 1, $3) <> $4 ORDER BY id \
                       LIMIT $5",
                replace: &[
                    "UPDATE flow SET webhook_token = $4 WHERE id = $1 AND $2 = '' AND \
                     webhook_token = $3",
                ],
            },
            Self::Draft => Statements {
                page: "SELECT id AS first, '' AS second, sealed_config AS sealed FROM flow WHERE \
                       id > $1 AND $2 = '' AND substr(sealed_config, 1, $3) <> $4 ORDER BY id \
                       LIMIT $5",
                replace: REPLACE_DEFINITION,
            },
            Self::Version => Statements {
                page: "SELECT flow_id AS first, CAST(version AS TEXT) AS second, sealed_config AS \
                       sealed FROM flow_version WHERE (flow_id, version) > ($1, CASE WHEN $2 = '' \
                       THEN CAST(-1 AS BIGINT) ELSE CAST($2 AS BIGINT) END) AND \
                       substr(sealed_config, 1, $3) <> $4 ORDER BY flow_id, version LIMIT $5",
                replace: REPLACE_DEFINITION,
            },
            Self::ConnectorConfig => Statements {
                page: "SELECT id AS first, '' AS second, config AS sealed FROM connector_instance \
                    WHERE id > $1 AND $2 = '' AND substr(config, 1, $3) <> $4 ORDER BY id LIMIT $5",
                replace: &[
                    "UPDATE connector_instance SET config = $4 WHERE id = $1 AND $2 = '' AND \
                     config = $3",
                ],
            },
            Self::OauthVerifier => Statements {
                page: "SELECT hex(state_sha256) AS first, '' AS second, verifier AS sealed FROM \
                       oauth_start WHERE hex(state_sha256) > $1 AND $2 = '' AND substr(verifier, \
                       1, $3) <> $4 ORDER BY 1 LIMIT $5",
                replace: &["UPDATE oauth_start SET verifier = $4 \
                    WHERE hex(state_sha256) = $1 AND $2 = '' AND verifier = $3"],
            },
            Self::OauthTokens => Statements {
                page: "SELECT instance_id AS first, '' AS second, tokens AS sealed FROM \
                       oauth_token WHERE instance_id > $1 AND $2 = '' AND substr(tokens, 1, $3) \
                       <> $4 ORDER BY instance_id LIMIT $5",
                replace: &[
                    "UPDATE oauth_token SET tokens = $4 WHERE instance_id = $1 AND $2 = '' AND \
                     tokens = $3",
                ],
            },
            Self::Published => Statements {
                page: "SELECT environment_id AS first, resource_id AS second, sealed FROM \
                       published WHERE (environment_id, resource_id) > ($1, $2) AND removed = 0 \
                       AND substr(sealed, 1, $3) <> $4 ORDER BY environment_id, resource_id LIMIT \
                       $5",
                replace: &["UPDATE published SET sealed = $4 \
                    WHERE environment_id = $1 AND resource_id = $2 AND sealed = $3"],
            },
            Self::KeptAnswer => Statements {
                page: "SELECT key_id AS first, name AS second, answer AS sealed FROM kept_answer \
                       WHERE (key_id, name) > ($1, $2) AND substr(answer, 1, $3) <> $4 ORDER BY \
                       key_id, name LIMIT $5",
                replace: &[
                    "UPDATE kept_answer SET answer = $4 WHERE key_id = $1 AND name = $2 AND \
                     answer = $3",
                ],
            },
        }
    }
}

/// Returns values of a column that do not begin with `header`, in the order of their rows, from the
/// one behind `after` on.
pub async fn page(
    db: &mut Db,
    column: Column,
    after: &Row,
    header: &[u8],
    limit: u32,
) -> Result<Vec<Value>> {
    let statement = db.dialect().hex_text(column.statements().page);
    let length = i32::try_from(header.len()).unwrap_or(i32::MAX);
    let values: [&dyn crate::column::Value; 5] =
        [&after.first, &after.second, &length, &header, &limit];
    db.all(AssertSqlSafe(statement), &values).await
}

/// Puts `sealed` in the place of a value. Returns `false` where the value has changed meanwhile, or
/// is gone.
pub async fn replace(db: &mut Db, column: Column, value: &Value, sealed: &[u8]) -> Result<bool> {
    let mut replaced = 0;
    for statement in column.statements().replace {
        let statement = AssertSqlSafe(db.dialect().hex_text(statement));
        let Value {
            row,
            sealed: former,
        } = value;
        let values: [&dyn crate::column::Value; 4] = [&row.first, &row.second, former, &sealed];
        replaced += db.execute(statement, &values).await?;
    }
    Ok(replaced > 0)
}

statements! {
    /// Forgets the kept answers of builds before schema 12, which no build of now gives again.
    fn forget_former_answers() = "DELETE FROM answered_request";
}

const LAST_START: &str =
    "SELECT MAX(expires_at) AS expires_at FROM oauth_start WHERE expires_at > $1";

/// Returns when the last of the OAuth2 starts ends that people may still come back from.
pub async fn last_start_ends_at(db: &mut Db, now: Timestamp) -> Result<Option<Timestamp>> {
    db.one(LAST_START, &[&now]).await
}
