//! How credentials go into a request: the `auth` of an entry's file.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::template::{pairs, placeholders};

/// How credentials go into a request; `{field}` in a text stands for a config field.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Auth {
    /// The config's own field `auth` says which.
    Configurable,
    Basic {
        username: String,
        password: String,
    },
    Bearer {
        token: String,
    },
    Header {
        name: String,
        value: String,
    },
    #[serde(rename = "oauth2")]
    OAuth2(OAuth2),
}

/// Parameters of a provider's OAuth2.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OAuth2 {
    /// Authorization endpoint; the config has to name it when it is left out.
    #[serde(default)]
    pub(crate) authorization_url: Option<String>,
    /// Token endpoint; the config has to name it when it is left out.
    #[serde(default)]
    pub(crate) token_url: Option<String>,
    /// Scopes that are asked for when the config names none, with blanks between.
    #[serde(default)]
    pub(crate) scopes: String,
    /// Scopes that are asked for when the client acts for itself: `scopes` when it is left out,
    /// none when it is empty.
    #[serde(default)]
    pub(crate) client_scopes: Option<String>,
    /// Parameters of the authorization URL beyond those of the standard.
    #[serde(default, deserialize_with = "pairs")]
    pub(crate) authorization_params: Vec<(String, String)>,
    /// Authentication of the client at the token endpoint.
    #[serde(default)]
    pub(crate) client_authentication: ClientAuthentication,
    /// The grants that the provider has.
    #[serde(default)]
    pub(crate) grants: Grants,
}

/// Place of the client's id and secret in a request for tokens (RFC 6749, section 2.3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientAuthentication {
    /// Into the form.
    #[default]
    Body,
    /// Into the `Authorization` header.
    Basic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Grants {
    /// People give their consent.
    #[default]
    AuthorizationCode,
    /// The client may act for itself too.
    Both,
}

impl Auth {
    /// Values of `authentication` that entries with it may have.
    pub(crate) fn names(&self) -> &'static [&'static str] {
        match self {
            Self::Configurable => &["configurable"],
            Self::Basic { .. } => &["basic", "api_key"],
            Self::Bearer { .. } => &["bearer", "api_key"],
            Self::Header { .. } => &["api_key"],
            Self::OAuth2(_) => &["oauth2"],
        }
    }

    /// The config fields that its texts name.
    pub(crate) fn placeholders(&self) -> Vec<&str> {
        let texts: Vec<&str> = match self {
            Self::Configurable => Vec::new(),
            Self::Basic { username, password } => vec![username, password],
            Self::Bearer { token } => vec![token],
            Self::Header { value, .. } => vec![value],
            Self::OAuth2(oauth2) => oauth2
                .authorization_url
                .iter()
                .chain(&oauth2.token_url)
                .map(String::as_str)
                .collect(),
        };
        texts.into_iter().flat_map(placeholders).collect()
    }
}

impl OAuth2 {
    /// The config fields that every entry with OAuth2 takes.
    pub(crate) fn fields(&self) -> Vec<(String, Value)> {
        let mut fields = vec![
            (
                "client_id",
                json!({
                    "type": "string", "description": "Id of the client that is registered with \
                                                      the provider.",
                }),
            ),
            (
                "client_secret",
                json!({
                    "type": "string", "writeOnly": true, "format": "header-value",
                    "description": "Secret of the client; public clients have none.",
                }),
            ),
            (
                "scopes",
                json!({
                    "type": "string",
                    "minLength": 0,
                    "description": "What is asked for, with blanks between.",
                    "default": self.scopes,
                }),
            ),
            (
                "authorization_url",
                json!({
                    "type": "string",
                    "format": "http-url",
                    "description": "Where people give their consent.",
                }),
            ),
            (
                "token_url",
                json!({
                    "type": "string",
                    "format": "http-url",
                    "description": "Where tokens come from.",
                }),
            ),
        ];
        if self.grants == Grants::Both {
            fields.push((
                "grant_type",
                json!({
                    "type": "string",
                    "enum": ["authorization_code", "client_credentials"],
                    "default": "authorization_code",
                    "description": "Whether a person gives consent, or the client acts for itself.",
                }),
            ));
        }
        for (name, default) in [
            ("authorization_url", &self.authorization_url),
            ("token_url", &self.token_url),
        ] {
            let field = fields.iter_mut().find(|(known, _)| *known == name);
            if let (Some((_, schema)), Some(_)) = (field, default) {
                schema["description"] = format!(
                    "{} Replaces the provider's.",
                    schema["description"].as_str().unwrap_or("")
                )
                .into();
            }
        }
        fields
            .into_iter()
            .map(|(name, schema)| (name.to_owned(), schema))
            .collect()
    }

    pub(crate) fn required(&self) -> Vec<&'static str> {
        let mut required = vec!["client_id"];
        if self.token_url.is_none() {
            required.push("token_url");
        }
        required
    }
}
