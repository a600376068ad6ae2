//! Parts of a call that a provider has to receive, by the catalog entry of the action alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kanat_tests::target::ReceivedRequest;
use reqwest::Url;
use serde_json::Value;

/// A call, taken apart.
struct Parts {
    query: Vec<(String, String)>,
    form: Vec<(String, String)>,
    body: Value,
    headers: String,
}

/// Method and path are the action's, and each param is in one place, whole.
pub fn check(call: &ReceivedRequest, root: &str, action: &Value, params: &Value) {
    let slug = action["slug"].as_str().unwrap();
    assert_eq!(call.method, action["method"].as_str().unwrap(), "{slug}");
    let url = Url::parse(&format!("http://provider.example{}", call.path)).unwrap();
    let mut path = format!("{root}{}", action["path"].as_str().unwrap());
    let in_path = |name: &str| [format!("{{{name}}}"), format!("{{+{name}}}")];
    let mut others = Vec::new();
    for (name, value) in params.as_object().unwrap() {
        match in_path(name).into_iter().find(|place| path.contains(place)) {
            Some(place) => path = path.replace(&place, &text(value)),
            None => others.push((name, value)),
        }
    }
    assert_eq!(url.path(), path, "{slug}");
    let parts = Parts::of(call, &url);
    let reads = matches!(action["method"].as_str(), Some("GET" | "DELETE"));
    assert!(!reads || call.body.is_empty(), "{slug}: {call:?}");
    for (name, value) in others {
        let places = parts.places_of(name, value);
        assert_eq!(
            places.len(),
            1,
            "{slug}: {name} = {value} is in {places:?} of {call:?}"
        );
        assert!(
            !reads || places == ["query"] || places == ["headers"],
            "{slug}: {name} is in {places:?}"
        );
    }
}

/// Each secret of the config lets the call in, in the clear or in Base64; of OAuth2 it is the
/// token.
pub fn check_credentials(
    call: &ReceivedRequest,
    schema: &Value,
    config: &Value,
    token: Option<&str>,
) {
    if let Some(token) = token {
        assert_eq!(call.header("authorization"), format!("Bearer {token}"));
        return;
    }
    let encoded = call
        .header("authorization")
        .strip_prefix("Basic ")
        .unwrap_or_default();
    let basic = String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap();
    let headers = format!("{basic}\n{}", headers(call));
    for (name, value) in config.as_object().unwrap() {
        if schema["properties"][name]["writeOnly"] == true {
            assert!(
                headers.contains(value.as_str().unwrap()),
                "{name} is not in {call:?}"
            );
        }
    }
}

impl Parts {
    fn of(call: &ReceivedRequest, url: &Url) -> Self {
        let is_form = call.header("content-type") == "application/x-www-form-urlencoded";
        let form = if is_form {
            pairs(&call.body)
        } else {
            Vec::new()
        };
        let body = if is_form || call.body.is_empty() {
            Value::Null
        } else {
            call.json()
        };
        Self {
            query: pairs(url.query().unwrap_or_default().as_bytes()),
            form,
            body,
            headers: headers(call),
        }
    }

    /// Lists the parts of the call that contain a whole param. A pair of name and value has its
    /// name, or one that begins with it.
    fn places_of(&self, name: &str, value: &Value) -> Vec<&'static str> {
        let mut places = Vec::new();
        if all_in(&self.query, name, value) {
            places.push("query");
        }
        if all_in(&self.form, name, value) {
            places.push("form");
        }
        if self.body == *value || self.body.get(name) == Some(value) {
            places.push("body");
        }
        if places.is_empty() && value.is_string() && self.headers.contains(&text(value)) {
            places.push("headers");
        }
        places
    }
}

/// Returns whether every string, number and boolean in `value` is the value of a pair with its
/// name.
fn all_in(pairs: &[(String, String)], name: &str, value: &Value) -> bool {
    let named = |key: &str| key == name || key.starts_with(&format!("{name}["));
    let mut leaves = Vec::new();
    leaves_of(value, &mut leaves);
    // The members of an object that is the query stand under their own names.
    let members = |key: &str| {
        value
            .as_object()
            .is_some_and(|members| members.contains_key(key))
    };
    let is_in = |leaf: &String| {
        pairs
            .iter()
            .any(|(key, value)| value == leaf && (named(key) || members(key)))
    };
    !leaves.is_empty() && leaves.iter().all(is_in)
}

fn leaves_of(value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves_of(item, leaves)),
        Value::Object(members) => members
            .values()
            .for_each(|member| leaves_of(member, leaves)),
        scalar => leaves.push(text(scalar)),
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn headers(call: &ReceivedRequest) -> String {
    call.headers
        .values()
        .map(|value| format!("{}\n", String::from_utf8_lossy(value.as_bytes())))
        .collect()
}

fn pairs(encoded: &[u8]) -> Vec<(String, String)> {
    let url: Url = format!("form:?{}", String::from_utf8_lossy(encoded))
        .parse()
        .unwrap();
    url.query_pairs().into_owned().collect()
}
