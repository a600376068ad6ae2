//! The catalog's entries, read once from the data files in `entries/`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::action::Action;

/// A kind of connector: how its instances are configured and what they can do.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// What `catalogId` and the first half of a step's `action` name.
    pub id: String,
    /// What people read.
    pub name: String,
    /// How it is spoken to; `http` is all there is.
    #[serde(rename = "type")]
    pub kind: String,
    /// `none`, `api_key`, `basic`, `bearer`, or `configurable` where the instance chooses.
    pub authentication: String,
    /// The heading under which it is listed.
    pub category: String,
    /// One or two sentences.
    pub description: String,
    /// Where the provider answers; `{field}` stands for a config field. Absent when the instance must say.
    #[serde(default)]
    pub(crate) base_url: Option<String>,
    /// Relative to the base URL: what a connection test asks for with GET. Empty for the base URL itself.
    #[serde(default)]
    pub test_endpoint: String,
    /// How the credentials go into a request.
    pub(crate) auth: Auth,
    /// What an instance's config may hold.
    pub fields: Vec<ConfigField>,
    /// What a step can call.
    #[serde(default)]
    pub actions: Vec<Action>,
}

/// How credentials go into a request; `{field}` in a text stands for a config field.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
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
}

/// A field of an instance's config.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigField {
    /// The key in the config object.
    pub name: String,
    /// What its value may be.
    #[serde(rename = "type", default)]
    pub kind: FieldKind,
    /// No instance can do without it.
    #[serde(default)]
    pub required: bool,
    /// Encrypted at rest and never shown.
    #[serde(default)]
    pub secret: bool,
    /// One sentence.
    pub description: String,
    /// What holds when it is left out.
    #[serde(default)]
    pub default: Option<String>,
    /// Another field and the value of it that makes this one required.
    #[serde(default)]
    pub(crate) required_when: Option<RequiredWhen>,
    /// What a text must begin with.
    #[serde(default)]
    pub(crate) prefix: Option<String>,
    /// What a text must look like.
    #[serde(default)]
    pub(crate) format: Option<Format>,
    /// The empty text is a value.
    #[serde(default)]
    pub(crate) may_be_empty: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequiredWhen {
    pub(crate) field: String,
    pub(crate) is: String,
}

/// What a config field's value may be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldKind {
    /// A text.
    #[default]
    String,
    /// One of these texts.
    Enum(Vec<String>),
    /// An object whose values are texts.
    Map,
}

impl FieldKind {
    /// `string`, `enum` or `map`, as the API says it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Enum(_) => "enum",
            Self::Map => "map",
        }
    }

    /// The texts of an enum; none for the others.
    pub fn options(&self) -> &[String] {
        match self {
            Self::Enum(options) => options,
            Self::String | Self::Map => &[],
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Format {
    BaseUrl,
    DnsLabel,
    Email,
    HeaderOrQueryName,
    /// What a header value may hold.
    Visible,
    /// A map from header names to header values.
    Headers,
}

impl Entry {
    /// The action with this slug.
    pub fn action(&self, slug: &str) -> Option<&Action> {
        self.actions.iter().find(|action| action.slug == slug)
    }

    /// The config field with this name.
    pub fn field(&self, name: &str) -> Option<&ConfigField> {
        self.fields.iter().find(|field| field.name == name)
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

const FILES: &[&str] = &[
    include_str!("../entries/email-delivery.yaml"),
    include_str!("../entries/http.yaml"),
    include_str!("../entries/support-ticketing.yaml"),
];

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    FILES.iter().map(|text| read(text).expect("the entries are part of the build, and a test reads each")).collect()
});

fn read(text: &str) -> Result<Entry, serde_saphyr::Error> {
    serde_saphyr::from_str(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_data_file_reads() {
        for text in FILES {
            if let Err(error) = read(text) {
                panic!("{error}");
            }
        }
    }

    #[test]
    fn entries_are_in_order_of_their_names() {
        let names: Vec<_> = entries().iter().map(|entry| entry.name.as_str()).collect();
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn has_the_entries_and_fields_of_the_spec() {
        let fields = |id: &str| -> Vec<(String, bool)> {
            let fields = &entry(id).unwrap().fields;
            fields.iter().filter(|field| field.required).map(|field| (field.name.clone(), field.secret)).collect()
        };
        let text = |name: &str| name.to_owned();
        assert_eq!(
            fields("support-ticketing"),
            [(text("subdomain"), false), (text("email"), false), (text("api_token"), true)]
        );
        assert_eq!(fields("email-delivery"), [(text("api_key"), true)]);
        assert_eq!(entry("support-ticketing").unwrap().category, "CRM & Sales");
        assert_eq!(entry("support-ticketing").unwrap().authentication, "api_key");
        assert_eq!(entry("email-delivery").unwrap().category, "Communication");
        assert_eq!(entry("email-delivery").unwrap().authentication, "bearer");
        assert!(entry("unknown").is_none());
    }

    #[test]
    fn has_the_actions_of_the_spec() {
        let actions = |id: &str| -> Vec<String> {
            let actions = &entry(id).unwrap().actions;
            actions.iter().map(|a| format!("{} {} {}", a.slug, a.method, a.path)).collect()
        };
        assert_eq!(
            actions("support-ticketing"),
            [
                "list-tickets GET /api/v2/tickets",
                "get-ticket GET /api/v2/tickets/{ticketId}",
                "create-ticket POST /api/v2/tickets",
                "update-ticket PUT /api/v2/tickets/{ticketId}",
                "add-comment PUT /api/v2/tickets/{ticketId}",
                "list-users GET /api/v2/users",
                "get-user GET /api/v2/users/{userId}",
                "search GET /api/v2/search",
            ]
        );
        assert_eq!(
            actions("email-delivery"),
            [
                "send-email POST /mail/send",
                "list-contacts GET /marketing/contacts",
                "add-contacts PUT /marketing/contacts",
                "get-contact GET /marketing/contacts/{contactId}",
                "delete-contacts DELETE /marketing/contacts",
                "list-templates GET /templates",
            ]
        );
    }

    #[test]
    fn schemas_describe_objects_and_name_every_path_param() {
        for action in entries().iter().flat_map(|entry| &entry.actions) {
            let schema: serde_json::Value = serde_json::from_str(&action.request_schema).unwrap();
            assert_eq!(schema["type"], "object", "{}", action.slug);
            for param in action.path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
                assert!(schema["properties"][param].is_object(), "{} lacks {param}", action.slug);
                assert!(schema["required"].as_array().unwrap().iter().any(|name| name == param), "{}", action.slug);
            }
            let response: serde_json::Value = serde_json::from_str(&action.response_schema).unwrap();
            assert!(response.is_object(), "{}", action.slug);
        }
    }

    #[test]
    fn every_entry_takes_a_base_url() {
        for entry in entries() {
            assert!(entry.field("base_url").is_some(), "{}", entry.id);
            assert!(entry.base_url.is_some() || entry.field("base_url").unwrap().required, "{}", entry.id);
        }
    }
}
