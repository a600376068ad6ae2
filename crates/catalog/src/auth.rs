//! How credentials go into a request: the `auth` of an entry's file.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::template::{fields_of, pairs};

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
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct OAuth2 {
    /// Authorization endpoint; the config has to name it when it is left out.
    pub(crate) authorization_url: Option<String>,
    /// Token endpoint; the config has to name it when it is left out.
    pub(crate) token_url: Option<String>,
    /// Scopes that are asked for when the config names none, with blanks between.
    pub(crate) scopes: String,
    /// Scopes that are asked for when the client acts for itself: `scopes` when it is left out,
    /// none when it is empty.
    pub(crate) client_scopes: Option<String>,
    /// Parameters of the authorization URL beyond those of the standard.
    #[serde(deserialize_with = "pairs")]
    pub(crate) authorization_params: Vec<(String, String)>,
    /// Authentication of the client at the token endpoint.
    pub(crate) client_authentication: ClientAuthentication,
    /// The grants that the provider has.
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

impl OAuth2 {
    /// The config fields that every entry with OAuth2 takes.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let mut fields = fields_of(include_str!("../fields/oauth2.yaml"));
        fields["scopes"]["default"] = self.scopes.as_str().into();
        if self.grants != Grants::Both {
            fields.shift_remove("grant_type");
        }
        for (name, default) in [
            ("authorization_url", &self.authorization_url),
            ("token_url", &self.token_url),
        ] {
            if default.is_some()
                && let Value::String(description) = &mut fields[name]["description"]
            {
                description.push_str(" Replaces the provider's.");
            }
        }
        fields
    }

    pub(crate) fn required(&self) -> Vec<&'static str> {
        let mut required = vec!["client_id"];
        if self.token_url.is_none() {
            required.push("token_url");
        }
        required
    }
}
