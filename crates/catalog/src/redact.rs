//! Showing a config without its secrets, and taking such a config back.

use serde_json::{Map, Value};

use crate::config::{ConfigField, FieldKind};
use crate::entry::Entry;

pub use crate::credential::is_secret_header;
pub use kanat_model::mask::MASK;

impl Entry {
    /// The config with every secret masked: the fields that the entry marks, and headers that may
    /// carry credentials. Fields that the entry does not know are masked too.
    pub fn redact(&self, config: &Map<String, Value>) -> Map<String, Value> {
        config
            .iter()
            .map(|(name, value)| (name.clone(), self.redacted(name, value)))
            .collect()
    }

    /// `stored` with the fields of `update`: null removes one, the mask keeps the stored secret,
    /// all else replaces. The result is still to be checked.
    pub fn merge(
        &self,
        stored: &Map<String, Value>,
        update: &Map<String, Value>,
    ) -> Map<String, Value> {
        let mut merged = stored.clone();
        for (name, value) in update {
            if value.is_null() {
                merged.shift_remove(name);
            } else if let Some(value) = kept(stored.get(name), value) {
                merged.insert(name.clone(), value);
            }
        }
        merged
    }

    fn redacted(&self, name: &str, value: &Value) -> Value {
        match (self.field(name), value) {
            (_, Value::Null) => Value::Null,
            (
                Some(ConfigField {
                    secret: false,
                    kind: FieldKind::Map,
                    ..
                }),
                Value::Object(members),
            ) => members
                .iter()
                .map(|(name, value)| (name.clone(), redacted_header(name, value)))
                .collect(),
            (Some(ConfigField { secret: false, .. }), _) => value.clone(),
            (Some(ConfigField { secret: true, .. }) | None, _) => MASK.into(),
        }
    }
}

fn redacted_header(name: &str, value: &Value) -> Value {
    if is_secret_header(name) {
        MASK.into()
    } else {
        value.clone()
    }
}

/// The value of a field after an update; `None` when the stored one stays as it is.
fn kept(stored: Option<&Value>, update: &Value) -> Option<Value> {
    match (stored, update) {
        (Some(_), Value::String(text)) if text == MASK => None,
        (Some(Value::Object(stored)), Value::Object(members)) => {
            let member = |(name, value): (&String, &Value)| {
                let value = if value == MASK {
                    stored.get(name).unwrap_or(value)
                } else {
                    value
                };
                (name.clone(), value.clone())
            };
            Some(Value::Object(
                members
                    .iter()
                    .filter(|(_, value)| !value.is_null())
                    .map(member)
                    .collect(),
            ))
        }
        (Some(_) | None, _) => Some(update.clone()),
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
    fn masks_secrets_and_headers_that_carry_them() {
        let config = map(json!({
            "base_url": "https://erp.example",
            "auth": "api_key",
            "api_key": "k",
            "webhook_secret": "w",
            "token": null,
            "headers": {
                "X-Source": "shop",
                "X-Api-Version": "2",
                "Authorization": "a",
                "Cookie": "c",
                "x-auth-token": "t",
                "X-Shop": "s",
                "X-Key-Id": "i",
            },
            "unknown": "u",
        }));
        let expect = map(json!({
            "base_url": "https://erp.example",
            "auth": "api_key",
            "api_key": MASK,
            "webhook_secret": MASK,
            "token": null,
            "headers": {
                "X-Source": "shop",
                "X-Api-Version": "2",
                "Authorization": MASK,
                "Cookie": MASK,
                "x-auth-token": MASK,
                "X-Shop": "s",
                "X-Key-Id": MASK,
            },
            "unknown": MASK,
        }));
        assert_eq!(entry("http").unwrap().redact(&config), expect);
    }

    #[test]
    fn an_update_keeps_what_it_masks_and_removes_what_it_nulls() {
        let stored = map(json!({
            "base_url": "https://erp.example", "auth": "api_key", "api_key": "k", "username": "u",
            "headers": {"Cookie": "c", "X-Source": "shop"},
        }));
        let update = map(json!({
            "base_url": "https://new.example", "api_key": MASK, "username": null,
            "headers": {"Cookie": MASK, "X-New": "n"},
        }));
        let expect = map(json!({
            "base_url": "https://new.example",
            "auth": "api_key",
            "api_key": "k",
            "headers": {"Cookie": "c", "X-New": "n"},
        }));
        assert_eq!(entry("http").unwrap().merge(&stored, &update), expect);
    }

    #[test]
    fn sending_back_what_was_shown_changes_nothing() {
        let http = entry("http").unwrap();
        let stored = map(json!({
            "base_url": "https://erp.example", "auth": "basic", "username": "u", "password": "p",
            "headers": {"X-Api-Key": "k"},
        }));
        assert_eq!(http.merge(&stored, &http.redact(&stored)), stored);
    }

    #[test]
    fn a_mask_without_a_stored_secret_is_refused_by_the_check() {
        let http = entry("http").unwrap();
        let update =
            map(json!({"base_url": "https://erp.example", "auth": "bearer", "token": MASK}));
        let errors = http.check(&http.merge(&Map::new(), &update)).unwrap_err();
        assert_eq!(errors[0].field, "config.token");
    }
}
