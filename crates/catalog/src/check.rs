//! Check of a config by its entry: every fault at once, each under the field's name.

use kanat_model::FieldError;
use serde_json::{Map, Value};

use crate::auth::Auth;
use crate::entry::Entry;
use crate::redact::MASK;

pub use crate::base_url::is_dot_segment;
pub use crate::format::{header_name_fault, header_value_fault};

/// Credentials of entries whose kind of authentication is configurable, each with the kind that
/// sends it.
const CREDENTIALS: [(&str, &str); 4] = [
    ("token", "bearer"),
    ("api_key", "api_key"),
    ("username", "basic"),
    ("password", "basic"),
];

impl Entry {
    /// Checks a whole config by the entry's schema; a null member counts as none. Errors name
    /// fields as `config.<name>`, headers as `config.headers.<name>`, in the order of the schema's
    /// properties.
    pub fn check(&self, config: &Map<String, Value>) -> Result<(), Vec<FieldError>> {
        let given = config.iter().filter(|(_, value)| !value.is_null());
        let config: Map<String, Value> = given
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let mut errors = self.masked(&config);
        let config = Value::Object(config);
        errors.extend(self.schema_faults(&config));
        errors.sort_by_key(|error| self.place(&error.field));
        errors.dedup_by(|later, first| later.field == first.field);
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors)
        }
    }

    /// Completes the kind of authentication of a config that names none, where the entry has a
    /// choice: the one that its credentials are for.
    ///
    /// # Errors
    ///
    /// Names a credential that would never be sent because the kind is `none`.
    pub fn choose_auth(&self, config: &mut Map<String, Value>) -> Result<(), FieldError> {
        if self.authentication != "configurable" {
            return Ok(());
        }
        let given: Vec<(&str, &str)> = CREDENTIALS
            .into_iter()
            .filter(|(field, _)| config.get(*field).is_some_and(|value| !value.is_null()))
            .collect();
        let Some((field, kind)) = given.first().copied() else {
            return Ok(());
        };
        match config.get("auth") {
            None | Some(Value::Null) if given.iter().all(|(_, other)| *other == kind) => {
                config.insert("auth".to_owned(), kind.into());
                Ok(())
            }
            None | Some(Value::Null) => Err(FieldError::new(
                "config.auth",
                "is required: there are credentials of several kinds, and only those of one are \
                 sent",
            )),
            Some(auth) if auth == "none" => Err(FieldError::new(
                format!("config.{field}"),
                format!(
                    "is given, and auth is none, so that it would never be sent: did you mean \
                     auth {kind}?"
                ),
            )),
            Some(_) => Ok(()),
        }
    }

    /// Returns which of the `given` credentials a config keeps and never sends: its kind of
    /// authentication is another, or its credentials take the place of the header.
    pub fn unsent(&self, given: &Map<String, Value>, config: &Map<String, Value>) -> Vec<String> {
        let kind = config
            .get("auth")
            .and_then(Value::as_str)
            .filter(|_| self.authentication == "configurable");
        let is_given = |field: &str| given.get(field).is_some_and(|value| !value.is_null());
        let mut unsent = Vec::new();
        for (field, other) in CREDENTIALS {
            if let Some(kind) = kind.filter(|kind| is_given(field) && *kind != other) {
                unsent.push(format!(
                    "{field} is kept and not sent: auth is {kind}, not {other}"
                ));
            }
        }
        let headers = given
            .get("headers")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        for (name, _) in headers.filter(|(_, value)| !value.is_null()) {
            if self
                .credential_header(config)
                .is_some_and(|header| header.eq_ignore_ascii_case(name))
            {
                unsent.push(format!(
                    "headers.{name} is kept and not sent: the credentials set this header"
                ));
            }
        }
        unsent
    }

    /// Returns the name of the header that carries the credentials of a config; `None` where none
    /// does.
    fn credential_header<'c>(&'c self, config: &'c Map<String, Value>) -> Option<&'c str> {
        const AUTHORIZATION: &str = "Authorization";
        let text = |field: &str| {
            let default = || {
                self.fields
                    .iter()
                    .find(|known| known.name == field)?
                    .default
                    .as_deref()
            };
            config.get(field).and_then(Value::as_str).or_else(default)
        };
        match &self.auth {
            Auth::Basic { .. } | Auth::Bearer { .. } | Auth::OAuth2(_) => Some(AUTHORIZATION),
            Auth::Header { name, .. } => Some(name),
            Auth::Configurable => match text("auth")? {
                "basic" | "bearer" => Some(AUTHORIZATION),
                "api_key" if text("api_key_in") != Some("query") => text("api_key_name"),
                _ => None,
            },
        }
    }

    /// The mask of a secret, sent where there is nothing behind it.
    fn masked(&self, config: &Map<String, Value>) -> Vec<FieldError> {
        let error = |field: String| {
            FieldError::new(
                field,
                "is the mask that stands for a secret, and there is none stored",
            )
        };
        let secrets = self.fields.iter().filter(|field| field.secret);
        let fields =
            secrets.filter(|field| config.get(&field.name).is_some_and(|value| value == MASK));
        let mut errors: Vec<FieldError> = fields
            .map(|field| error(format!("config.{}", field.name)))
            .collect();
        for (name, value) in config {
            let members = value.as_object().into_iter().flatten();
            let members = members.filter(|(_, value)| *value == MASK);
            errors.extend(members.map(|(member, _)| error(format!("config.{name}.{member}"))));
        }
        errors
    }

    /// Returns the index of an error's field among the properties; any other field comes first.
    fn place(&self, path: &str) -> usize {
        let field = path.split('.').nth(1).unwrap_or_default();
        self.fields
            .iter()
            .position(|known| known.name == field)
            .map_or(0, |at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::entry;

    /// The fields at fault, in order.
    fn faults(id: &str, config: serde_json::Value) -> Vec<String> {
        let errors = entry(id)
            .unwrap()
            .check(config.as_object().unwrap())
            .err()
            .unwrap_or_default();
        errors
            .into_iter()
            .map(|error| format!("{} {}", error.field, error.message))
            .collect()
    }

    #[test]
    fn takes_every_auth_kind() {
        let configs = [
            json!({"base_url": "https://erp.example"}),
            json!({
                "base_url": "http://127.0.0.1:9000/api",
                "auth": "none",
                "headers": {"X-Source": "shop"},
            }),
            json!({"base_url": "https://e.example", "auth": "api_key", "api_key": "k"}),
            json!({
                "base_url": "https://e.example",
                "auth": "api_key",
                "api_key": "k",
                "api_key_name": "k",
                "api_key_in": "query",
            }),
            json!({
                "base_url": "https://e.example",
                "auth": "basic",
                "username": "u",
                "password": "",
            }),
            json!({
                "base_url": "https://e.example",
                "auth": "bearer",
                "token": "t",
                "webhook_secret": "w",
            }),
            json!({
                "base_url": "https://e.example",
                "requests_per_second": 0.5,
                "concurrency": 4,
                "token": null,
            }),
        ];
        for config in configs {
            assert_eq!(faults("http", config.clone()), [""; 0], "{config}");
        }
    }

    #[test]
    fn names_every_fault_of_a_config_at_once() {
        let config = json!({
            "base_url": "ftp://erp.example",
            "auth": "api_key",
            "api_key_in": "body",
            "api_key_name": "X Key",
            "headers": {"Host": "h", "X Bad": "v", "X-Ok": "a\nb", "X-Num": 1},
            "token": 7,
            "colour": "red",
            "concurrency": 0,
            "webhook_secret": "",
        });
        insta::assert_snapshot!(faults("http", config).join("\n"), @"
        config.colour is not known here; there is base_url, auth, api_key, api_key_name, \
        api_key_in, username, password, token, headers, webhook_secret, requests_per_second, \
        concurrency, breaker_failures, breaker_seconds
        config.base_url must begin with http:// or https://, not ftp:
        config.api_key is required when auth is api_key
        config.api_key_name must be the name of a header
        config.api_key_in must be one of header, query
        config.token must be a string, not a number
        config.headers.X-Ok must not hold line breaks or other control characters
        config.headers.X-Num must be a string, not a number
        config.headers.Host is set by the connection itself and cannot be given
        config.headers.X Bad is not the name of a header
        config.webhook_secret must not be empty
        config.concurrency must be at least 1
        ");
    }

    #[test]
    fn credentials_choose_the_auth_kind_or_are_refused_where_it_is_none() {
        let chosen = |config: serde_json::Value| {
            let mut config = config.as_object().unwrap().clone();
            let chosen = entry("http").unwrap().choose_auth(&mut config);
            chosen
                .map(|()| config.get("auth").cloned())
                .map_err(|fault| format!("{} {}", fault.field, fault.message))
        };
        assert_eq!(chosen(json!({})), Ok(None));
        assert_eq!(chosen(json!({"token": "t"})), Ok(Some("bearer".into())));
        assert_eq!(chosen(json!({"api_key": "k"})), Ok(Some("api_key".into())));
        assert_eq!(
            chosen(json!({"username": "u", "password": "p"})),
            Ok(Some("basic".into()))
        );
        assert_eq!(
            chosen(json!({"token": "t", "auth": "api_key"})),
            Ok(Some("api_key".into()))
        );
        let refused = chosen(json!({"token": "t", "auth": "none"})).unwrap_err();
        assert_eq!(
            refused,
            "config.token is given, and auth is none, so that it would never be sent: did you \
             mean auth bearer?"
        );
        assert!(
            chosen(json!({"token": "t", "api_key": "k"}))
                .unwrap_err()
                .starts_with("config.auth is required")
        );
    }

    #[test]
    fn a_header_that_the_credentials_replace_is_reported() {
        let unsent = |id: &str, config: serde_json::Value| {
            let config = config.as_object().unwrap();
            entry(id).unwrap().unsent(config, config)
        };
        let told = ["headers.authorization is kept and not sent: the credentials set this header"];
        let headers = json!({"authorization": "Bearer a", "X-Source": "shop"});
        assert_eq!(
            unsent(
                "http",
                json!({"auth": "bearer", "token": "b", "headers": headers})
            ),
            told
        );
        assert_eq!(
            unsent(
                "email-delivery",
                json!({"api_key": "SG.x", "headers": headers})
            ),
            told
        );
        assert_eq!(
            unsent("http", json!({"auth": "none", "headers": headers})),
            [""; 0]
        );
        assert_eq!(
            unsent(
                "http",
                json!({"auth": "api_key", "api_key": "k", "headers": headers})
            ),
            [""; 0]
        );
        let own = json!({"auth": "api_key", "api_key": "k", "headers": {"X-API-Key": "k"}});
        let told = ["headers.X-API-Key is kept and not sent: the credentials set this header"];
        assert_eq!(unsent("http", own), told);
    }

    #[test]
    fn requires_what_the_auth_kind_needs() {
        let base = |auth: &str| json!({"base_url": "https://e.example", "auth": auth});
        assert_eq!(
            faults("http", base("api_key")),
            ["config.api_key is required when auth is api_key"]
        );
        assert_eq!(
            faults("http", base("basic")),
            [
                "config.username is required when auth is basic",
                "config.password is required when auth is basic"
            ]
        );
        assert_eq!(
            faults("http", base("bearer")),
            ["config.token is required when auth is bearer"]
        );
        assert_eq!(faults("http", json!({})), ["config.base_url is required"]);
    }

    #[test]
    fn checks_the_providers_fields() {
        assert_eq!(
            faults("email-delivery", json!({"api_key": "SG.x"})),
            [""; 0]
        );
        assert_eq!(
            faults("email-delivery", json!({"api_key": "x"})),
            ["config.api_key must begin with \"SG.\""]
        );
        assert_eq!(
            faults("email-delivery", json!({})),
            ["config.api_key is required"]
        );
        let ticketing = json!({"subdomain": "evil.example/", "email": "agent", "api_token": ""});
        assert_eq!(
            faults("support-ticketing", ticketing),
            [
                "config.subdomain must be one label of letters, digits and hyphens",
                "config.email must be an e-mail address",
                "config.api_token must not be empty",
            ]
        );
        let sandbox = json!({"api_key": "SG.x", "base_url": "http://127.0.0.1:9000"});
        assert_eq!(faults("email-delivery", sandbox), [""; 0]);
        let long = json!({"api_key": format!("SG.{}", "x".repeat(20_000))});
        assert_eq!(
            faults("email-delivery", long),
            ["config.api_key must have at most 16384 characters"]
        );
    }

    #[test]
    fn no_fault_shows_a_secret() {
        let config = json!({"api_key": "hush", "webhook_secret": 4711});
        let told = faults("email-delivery", config).join("\n");
        assert!(!told.contains("hush") && !told.contains("4711"), "{told}");
    }
}
