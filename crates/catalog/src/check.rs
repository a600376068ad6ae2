//! Whether a config fits its entry: every fault at once, each under the field's name.

use http::{HeaderName, HeaderValue};
use kanat_model::FieldError;
use serde_json::{Map, Value};

use crate::base_url;
use crate::entry::{ConfigField, Entry, FieldKind, Format};
use crate::redact::MASK;

/// The longest text of a config field in bytes.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;

impl Entry {
    /// Checks a whole config. Errors name fields as `config.<name>`, headers as `config.headers.<name>`.
    pub fn check(&self, config: &Map<String, Value>) -> Result<(), Vec<FieldError>> {
        let mut errors = Vec::new();
        for name in config.keys().filter(|name| self.field(name).is_none()) {
            let known: Vec<_> = self.fields.iter().map(|field| field.name.as_str()).collect();
            let message = format!("is not a field of {}; it has {}", self.id, known.join(", "));
            errors.push(FieldError::new(format!("config.{name}"), message));
        }
        for field in &self.fields {
            let path = format!("config.{}", field.name);
            match config.get(&field.name) {
                None | Some(Value::Null) => {
                    if let Some(why) = self.requires(field, config) {
                        errors.push(FieldError::new(path, why));
                    }
                }
                Some(value) => check_value(field, &path, value, &mut errors),
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Why a field that is absent must be there.
    fn requires(&self, field: &ConfigField, config: &Map<String, Value>) -> Option<String> {
        if field.required {
            return Some("is required".to_owned());
        }
        let when = field.required_when.as_ref()?;
        let default = self.field(&when.field).and_then(|other| other.default.as_deref());
        let other = config.get(&when.field).and_then(Value::as_str).or(default)?;
        (other == when.is).then(|| format!("is required when {} is {}", when.field, when.is))
    }
}

fn check_value(field: &ConfigField, path: &str, value: &Value, errors: &mut Vec<FieldError>) {
    let fault = match (&field.kind, value) {
        (FieldKind::String, Value::String(text)) => text_fault(field, text),
        (FieldKind::Enum(options), Value::String(text)) if options.contains(text) => None,
        (FieldKind::Enum(options), _) => Some(format!("must be one of {}", options.join(", "))),
        (FieldKind::Map, Value::Object(members)) => {
            check_members(field, path, members, errors);
            None
        }
        (FieldKind::String, _) => Some(format!("must be a string, not {}", type_name(value))),
        (FieldKind::Map, _) => Some(format!("must be an object of strings, not {}", type_name(value))),
    };
    errors.extend(fault.map(|message| FieldError::new(path, message)));
}

fn text_fault(field: &ConfigField, text: &str) -> Option<String> {
    if text.is_empty() && !field.may_be_empty {
        return Some("must not be empty".to_owned());
    }
    if text.len() > MAX_TEXT_BYTES {
        return Some(format!("must have at most {MAX_TEXT_BYTES} bytes"));
    }
    if field.secret && text == MASK {
        return Some("is the mask that stands for a secret, and there is none stored".to_owned());
    }
    if let Some(prefix) = field.prefix.as_ref().filter(|prefix| !text.starts_with(prefix.as_str())) {
        return Some(format!("must begin with {prefix:?}"));
    }
    match field.format? {
        Format::BaseUrl => base_url::parse(text).err(),
        Format::DnsLabel => {
            (!is_dns_label(text)).then(|| "must be one label of letters, digits and hyphens".to_owned())
        }
        Format::Email => (!is_email(text)).then(|| "must be an e-mail address".to_owned()),
        Format::HeaderOrQueryName => {
            HeaderName::from_bytes(text.as_bytes()).is_err().then(|| "must be the name of a header".to_owned())
        }
        Format::Visible => header_value_fault(text).map(str::to_owned),
        Format::Headers => None,
    }
}

fn check_members(field: &ConfigField, path: &str, members: &Map<String, Value>, errors: &mut Vec<FieldError>) {
    for (name, value) in members {
        let fault = match value {
            Value::String(text) => member_fault(field, name, text),
            _ => Some(format!("must be a string, not {}", type_name(value))),
        };
        errors.extend(fault.map(|message| FieldError::new(format!("{path}.{name}"), message)));
    }
}

fn member_fault(field: &ConfigField, name: &str, text: &str) -> Option<String> {
    if text.len() > MAX_TEXT_BYTES {
        return Some(format!("must have at most {MAX_TEXT_BYTES} bytes"));
    }
    if text == MASK {
        return Some("is the mask that stands for a secret, and there is none stored".to_owned());
    }
    if field.format != Some(Format::Headers) {
        return None;
    }
    header_name_fault(name).or_else(|| header_value_fault(text)).map(str::to_owned)
}

/// What keeps a text from being the name of a header that a user may give.
pub fn header_name_fault(name: &str) -> Option<&'static str> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Err(_) => Some("is not the name of a header"),
        Ok(name) if OURS.contains(&name) => Some("is set by the connection itself and cannot be given"),
        Ok(_) => None,
    }
}

/// What keeps a text from being the value of a header.
pub fn header_value_fault(text: &str) -> Option<&'static str> {
    HeaderValue::from_str(text).is_err().then_some("must not hold line breaks or other control characters")
}

/// Headers that frame the message or the connection: giving them would let a config smuggle requests.
const OURS: &[HeaderName] = &[
    http::header::HOST,
    http::header::CONTENT_LENGTH,
    http::header::TRANSFER_ENCODING,
    http::header::CONNECTION,
    http::header::UPGRADE,
    http::header::TE,
    http::header::TRAILER,
];

fn is_dns_label(text: &str) -> bool {
    text.len() <= 63
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_email(text: &str) -> bool {
    text.split_once('@').is_some_and(|(user, host)| !user.is_empty() && host.contains('.') && !host.contains('@'))
        && text.chars().all(|c| !c.is_whitespace() && !c.is_control() && c != ':')
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::entry;

    /// The fields at fault, in order.
    fn faults(id: &str, config: serde_json::Value) -> Vec<String> {
        let errors = entry(id).unwrap().check(config.as_object().unwrap()).err().unwrap_or_default();
        errors.into_iter().map(|error| format!("{} {}", error.field, error.message)).collect()
    }

    #[test]
    fn takes_every_auth_kind() {
        let configs = [
            json!({"base_url": "https://erp.example"}),
            json!({"base_url": "http://127.0.0.1:9000/api", "auth": "none", "headers": {"X-Source": "shop"}}),
            json!({"base_url": "https://e.example", "auth": "api_key", "api_key": "k"}),
            json!({"base_url": "https://e.example", "auth": "api_key", "api_key": "k", "api_key_name": "k", "api_key_in": "query"}),
            json!({"base_url": "https://e.example", "auth": "basic", "username": "u", "password": ""}),
            json!({"base_url": "https://e.example", "auth": "bearer", "token": "t", "webhook_secret": "w"}),
        ];
        for config in configs {
            assert_eq!(faults("http", config.clone()), [""; 0], "{config}");
        }
    }

    #[test]
    fn names_every_fault_of_a_config_at_once() {
        let config = json!({
            "base_url": "ftp://erp.example", "auth": "api_key", "api_key_in": "body", "api_key_name": "X Key",
            "headers": {"Host": "h", "X Bad": "v", "X-Ok": "a\nb", "X-Num": 1}, "token": 7, "colour": "red",
        });
        insta::assert_snapshot!(faults("http", config).join("\n"), @r"
        config.colour is not a field of http; it has base_url, auth, api_key, api_key_name, api_key_in, username, password, token, headers, webhook_secret
        config.base_url must begin with http:// or https://, not ftp:
        config.api_key is required when auth is api_key
        config.api_key_name must be the name of a header
        config.api_key_in must be one of header, query
        config.token must be a string, not a number
        config.headers.Host is set by the connection itself and cannot be given
        config.headers.X Bad is not the name of a header
        config.headers.X-Ok must not hold line breaks or other control characters
        config.headers.X-Num must be a string, not a number
        ");
    }

    #[test]
    fn requires_what_the_auth_kind_needs() {
        let base = |auth: &str| json!({"base_url": "https://e.example", "auth": auth});
        assert_eq!(faults("http", base("api_key")), ["config.api_key is required when auth is api_key"]);
        assert_eq!(
            faults("http", base("basic")),
            ["config.username is required when auth is basic", "config.password is required when auth is basic"]
        );
        assert_eq!(faults("http", base("bearer")), ["config.token is required when auth is bearer"]);
        assert_eq!(faults("http", json!({})), ["config.base_url is required"]);
    }

    #[test]
    fn checks_the_providers_fields() {
        assert_eq!(faults("email-delivery", json!({"api_key": "SG.x"})), [""; 0]);
        assert_eq!(faults("email-delivery", json!({"api_key": "x"})), ["config.api_key must begin with \"SG.\""]);
        assert_eq!(faults("email-delivery", json!({})), ["config.api_key is required"]);
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
    }
}
