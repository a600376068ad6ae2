//! Destinations of the secrets of an instance: the origins of its calls and of its token endpoint.

use serde_json::{Map, Value};

use crate::config::FieldKind;
use crate::credential::is_secret_header;
use crate::entry::Entry;
use crate::redact::MASK;
use crate::values::Values;

impl Entry {
    /// Returns the origins that an instance with this config sends secrets to: that of its base URL
    /// first, then that of its token endpoint. A config that does not fit the entry has none.
    pub fn origins(&self, config: &Map<String, Value>) -> Vec<String> {
        let base = Values {
            entry: self,
            values: config,
        }
        .base_url()
        .ok();
        let client = self.oauth2(config).and_then(Result::ok);
        let urls = base
            .iter()
            .chain(client.iter().map(|client| client.token_url()));
        urls.map(|url| url.origin().ascii_serialization()).collect()
    }

    /// Returns the secrets of `merged`, as in `config.token`, that `update` does not say itself:
    /// those that were stored before.
    pub fn carried_secrets(
        &self,
        update: &Map<String, Value>,
        merged: &Map<String, Value>,
    ) -> Vec<String> {
        let says = |value: Option<&Value>| {
            value.is_some_and(|value| value.as_str().is_some_and(|text| text != MASK))
        };
        let mut carried = Vec::new();
        for field in &self.fields {
            let name = &field.name;
            match merged.get(name) {
                Some(Value::String(text))
                    if field.secret && !text.is_empty() && !says(update.get(name)) =>
                {
                    carried.push(format!("config.{name}"));
                }
                Some(Value::Object(members)) if field.kind == FieldKind::Map => {
                    let said =
                        |member: &str| says(update.get(name).and_then(|given| given.get(member)));
                    let secret = members
                        .keys()
                        .filter(|member| is_secret_header(member) && !said(member));
                    carried.extend(secret.map(|member| format!("config.{name}.{member}")));
                }
                Some(_) | None => {}
            }
        }
        carried
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::entry;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_origin_is_that_of_a_url_of_its_own_or_of_the_entry() {
        let origins = |id: &str, config: Value| entry(id).unwrap().origins(&map(config));
        let http = |base: &str| origins("http", json!({"base_url": base}));
        assert_eq!(http("https://erp.example/a"), ["https://erp.example"]);
        assert_eq!(
            http("https://erp.example:443/b"),
            http("https://erp.example")
        );
        assert_ne!(http("https://erp.example"), http("http://erp.example"));
        assert_ne!(
            http("https://erp.example"),
            http("https://erp.example:8443")
        );
        let oauth = json!({
            "base_url": "https://api.example",
            "token_url": "https://id.example/token",
            "client_id": "c",
            "authorization_url": "https://id.example/authorize",
        });
        assert_eq!(
            origins("oauth2", oauth),
            ["https://api.example", "https://id.example"]
        );
    }

    #[test]
    fn secrets_that_an_update_does_not_say_are_carried() {
        let http = entry("http").unwrap();
        let stored = map(json!({
            "base_url": "https://erp.example",
            "auth": "bearer",
            "token": "t",
            "webhook_secret": "w",
            "headers": {"X-Api-Key": "k", "X-Source": "s"},
        }));
        let carried = |update: Value| {
            let update = map(update);
            http.carried_secrets(&update, &http.merge(&stored, &update))
        };
        let mut all = carried(json!({"base_url": "https://evil.example"}));
        all.sort_unstable();
        assert_eq!(
            all,
            [
                "config.headers.X-Api-Key",
                "config.token",
                "config.webhook_secret"
            ]
        );
        assert_eq!(
            carried(json!({"token": MASK, "webhook_secret": "w", "headers": {"X-Api-Key": "k"}})),
            ["config.token"]
        );
        assert_eq!(
            carried(json!({"token": "t", "webhook_secret": null, "headers": {"X-Api-Key": MASK}})),
            ["config.headers.X-Api-Key"]
        );
        assert!(
            carried(json!({"token": "t", "webhook_secret": "w", "headers": {"X-Source": "s"}}))
                .is_empty()
        );
    }
}
