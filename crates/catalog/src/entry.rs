//! The catalog's entries, read once from the data files in `entries/`.

use std::sync::LazyLock;

use kanat_model::FieldError;
use serde::Deserialize;
use serde_json::Value;

use crate::action::{Action, Refusals};
use crate::auth::Auth;
use crate::config::{self, ConfigField, ConfigFile, FieldKind};
use crate::credential::is_secret_header;
use crate::schema::Schema;
use crate::template::pairs;

/// The field in which expressions find the access token of an instance with OAuth2.
pub(crate) const ACCESS_TOKEN: &str = "access_token";

/// A kind of connector, as a data file describes it: how its instances are configured and what they
/// can do.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Id, which `catalogId` and the first half of a step's `action` name.
    pub id: String,
    /// Name for people.
    pub name: String,
    /// How it is spoken to; `http` is all there is.
    #[serde(rename = "type")]
    pub kind: String,
    /// `api_key`, `basic`, `bearer`, `oauth2`, or `configurable` where the instance chooses.
    pub authentication: String,
    /// The heading under which it is listed.
    pub category: String,
    /// One or two sentences.
    pub description: String,
    /// Address of the provider's documentation.
    #[serde(default)]
    pub documentation: Option<String>,
    /// Call of a connection test.
    pub test: TestCall,
    /// Rate limit of the provider for one account.
    #[serde(default)]
    pub rate_limit: Option<RateLimit>,
    /// Actions that a step can call.
    #[serde(default)]
    pub actions: Vec<Action>,
    /// Base URL of the provider; `{field}` stands for a config field. Absent when the instance has
    /// to name it.
    #[serde(default)]
    pub(crate) base_url: Option<String>,
    /// Headers of every request that does not have them; `{field}` stands for a config field.
    #[serde(default, deserialize_with = "pairs")]
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) auth: Auth,
    #[serde(default)]
    refusal: Refusals,
    config: ConfigFile,
    /// Fields of an instance's config.
    #[serde(skip)]
    pub fields: Vec<ConfigField>,
    /// JSON Schema of an instance's config, as JSON text.
    #[serde(skip)]
    pub config_schema: String,
    #[serde(skip)]
    schema: Option<Schema>,
}

/// Call of a connection test: it needs the credentials and changes nothing.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCall {
    /// HTTP method.
    #[serde(default = "get")]
    pub method: String,
    /// Relative to the base URL, maybe with a query. Empty for the base URL itself.
    #[serde(default)]
    pub path: String,
    /// Answers that show that the credentials were taken, beside those of success.
    #[serde(default)]
    pub statuses: Vec<u16>,
}

/// Rate limit of a provider for one account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimit {
    /// As many requests ...
    pub requests: u32,
    /// ... in so many seconds.
    pub seconds: u32,
    /// As many at the same time.
    #[serde(default)]
    pub concurrency: Option<u32>,
}

impl RateLimit {
    /// The steady rate.
    pub fn requests_per_second(&self) -> f64 {
        f64::from(self.requests) / f64::from(self.seconds.max(1))
    }
}

impl Entry {
    /// Reads a data file. Beside the entry it gives the faults of schemas, each with its place.
    ///
    /// # Errors
    /// A file that is no entry, with the position.
    fn read(text: &str) -> Result<(Self, Vec<String>), String> {
        let mut entry: Self = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        let schema = config::schema(&entry.config, &entry.auth);
        entry.fields = config::fields(&schema)?;
        entry.config_schema = schema.to_string();
        let schema = Schema::of_config(schema).map_err(|why| format!("config: {why}"))?;
        entry.schema = Some(schema);
        let mut faults = Vec::new();
        for action in &mut entry.actions {
            if let Err(why) = action.complete(&entry.refusal) {
                faults.push(format!("actions.{}: {why}", action.slug));
            }
        }
        Ok((entry, faults))
    }

    /// Returns the faults of a config by its schema, each under its path.
    pub(crate) fn schema_faults(&self, config: &Value) -> Vec<FieldError> {
        let schema = self.schema.iter();
        schema
            .flat_map(|schema| schema.faults(config, "config"))
            .collect()
    }

    /// Why the provider refused, when an answer with a status of success says so in its body.
    pub fn refusal(&self, body: &[u8]) -> Option<String> {
        self.refusal.reason(body)
    }

    /// Returns the action that a call is one of by its method and its path under the base URL. Of
    /// several it is the one whose path is the most specific.
    pub fn action_of(&self, method: &str, path: &str) -> Option<&Action> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let of_method = self.actions.iter().filter(|action| action.method == method);
        let matching = of_method.filter_map(|action| Some((action.closeness(&segments)?, action)));
        matching
            .max_by(|(a, _), (b, _)| a.cmp(b))
            .map(|(_, action)| action)
    }

    /// Returns whether the provider reports a refusal in the body of a successful answer.
    pub(crate) fn refuses_in_answers(&self) -> bool {
        !self.refusal.is_empty()
    }

    /// The action with this slug.
    pub fn action(&self, slug: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.slug == slug)
    }

    /// Returns whether a value that `names` lead to, from an instance's config on, is a secret or
    /// has one in it.
    pub fn is_secret(&self, names: &[String]) -> bool {
        let Some((name, inner)) = names.split_first() else {
            return true;
        };
        let member_is_secret = || inner.first().is_none_or(|member| is_secret_header(member));
        match self.field(name) {
            Some(ConfigField { secret: true, .. }) => true,
            Some(ConfigField {
                kind: FieldKind::Map,
                ..
            }) => member_is_secret(),
            Some(_) => false,
            None => name == ACCESS_TOKEN,
        }
    }

    /// The config field with this name.
    pub fn field(&self, name: &str) -> Option<&ConfigField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Entry {
    /// Returns the names that `instance.<field>` may have: the config's fields, and the access
    /// token where there is one.
    pub fn known_fields(&self) -> impl Iterator<Item = &str> {
        let token = matches!(self.auth, Auth::OAuth2(_)).then_some(ACCESS_TOKEN);
        self.fields
            .iter()
            .map(|field| field.name.as_str())
            .chain(token)
    }

    /// Returns whether `instance.<field>` may have this name.
    pub fn knows(&self, field: &str) -> bool {
        self.known_fields().any(|known| known == field)
    }
}

/// All entries, in order of their names.
pub fn entries() -> &'static [Entry] {
    &ENTRIES
}

/// The entry with this id.
pub fn entry(id: &str) -> Option<&'static Entry> {
    ENTRIES.iter().find(|entry| entry.id == id)
}

/// Every data file, with its name.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../entries/", $name, ".yaml")))),*];
    };
}

files![
    "airtable",
    "email-delivery",
    "github",
    "google-sheets",
    "http",
    "hubspot",
    "jira",
    "microsoft-teams",
    "notion",
    "oauth2",
    "salesforce",
    "shopify",
    "slack",
    "stripe",
    "support-ticketing",
    "twilio",
];

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let read = |(_, text): &(&str, &str)| {
        let read = Entry::read(text).expect("entries are part of the build, and tests read each");
        read.0
    };
    let mut entries: Vec<Entry> = FILES.iter().map(read).collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
});

fn get() -> String {
    "GET".to_owned()
}

#[cfg(test)]
mod tests;
