//! Checks of a data file beyond its form, so that an entry can work.

use std::collections::HashSet;

use serde_json::Value;
use url::Url;

use super::{Entry, TestCall};
use crate::action::{Action, Body};
use crate::auth::{Auth, Grants};
use crate::config::FieldKind;
use crate::format::{Format, header_name_fault};
use crate::template::{placeholders, schema_value};

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/// All that is wrong with an entry.
pub(super) fn faults(entry: &Entry) -> Vec<String> {
    let mut faults = Faults(Vec::new());
    head(entry, &mut faults);
    config(entry, &mut faults);
    credentials(entry, &mut faults);
    test_call(&entry.test, &mut faults);
    faults.unless(
        !entry.actions.is_empty(),
        "actions",
        "there must be one at least",
    );
    let mut slugs = HashSet::new();
    for action in &entry.actions {
        if !slugs.insert(action.slug.as_str()) {
            faults.add(&action.slug, "another action has this slug");
        }
        self::action(action, &mut faults);
    }
    faults.0
}

struct Faults(Vec<String>);

impl Faults {
    fn add(&mut self, place: &str, what: impl std::fmt::Display) {
        self.0.push(format!("{place}: {what}"));
    }

    fn unless(&mut self, holds: bool, place: &str, what: impl std::fmt::Display) {
        if !holds {
            self.add(place, what);
        }
    }
}

fn head(entry: &Entry, faults: &mut Faults) {
    faults.unless(
        is_slug(&entry.id),
        "id",
        "must be lower-case letters, digits and hyphens",
    );
    faults.unless(
        entry.kind == "http",
        "type",
        "must be http: there is no other way to speak to a provider",
    );
    faults.unless(
        is_sentence(&entry.description),
        "description",
        "must be a sentence that ends with a full stop",
    );
    faults.unless(!entry.name.trim().is_empty(), "name", "must not be empty");
    faults.unless(
        !entry.category.trim().is_empty(),
        "category",
        "must not be empty",
    );
    if let Some(address) = &entry.documentation {
        faults.unless(
            Url::parse(address).is_ok_and(|url| url.scheme() == "https"),
            "documentation",
            "must be https",
        );
    }
    if let Some(limit) = entry.rate_limit {
        faults.unless(
            limit.requests > 0 && limit.seconds > 0,
            "rate_limit",
            "must allow something in some time",
        );
    }
    let names = names(&entry.auth);
    let fits = names.contains(&entry.authentication.as_str());
    faults.unless(
        fits,
        "authentication",
        format!("must be one of {}, by its auth", names.join(", ")),
    );
}

fn config(entry: &Entry, faults: &mut Faults) {
    let schema = schema_value(&entry.config_schema);
    for field in &entry.fields {
        let place = format!("config.{}", field.name);
        faults.unless(
            is_sentence(&field.description),
            &place,
            "needs a description, a sentence with a full stop",
        );
        faults.unless(
            !field.secret || field.kind == FieldKind::String,
            &place,
            "only texts can be secret",
        );
        let schema = &schema["properties"][&field.name];
        let formats = [
            schema,
            &schema["propertyNames"],
            &schema["additionalProperties"],
        ];
        for format in formats
            .iter()
            .filter_map(|schema| schema["format"].as_str())
        {
            let known: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
            let what = format!("has the format {format:?}; there is {}", known.join(", "));
            faults.unless(Format::parse(format).is_some(), &place, what);
        }
        if let Some(default) = schema.get("default") {
            let config = [(field.name.clone(), default.clone())]
                .into_iter()
                .collect();
            let wrong = entry
                .check(&config)
                .err()
                .into_iter()
                .flatten()
                .find(|fault| fault.field == place);
            if let Some(fault) = wrong.filter(|fault| fault.message != "is required") {
                faults.add(&place, format!("its default {}", fault.message));
            }
        }
    }
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        faults.unless(
            entry.field(name).is_some(),
            "config.required",
            format!("names {name:?}, which is no property"),
        );
    }
    let addressed =
        entry.base_url.is_some() || entry.field("base_url").is_some_and(|field| field.required);
    faults.unless(
        addressed,
        "base_url",
        "must be given, or be a required field of the config",
    );
    let spoken = |url: &String| url.starts_with("https://") || url.starts_with("http://");
    faults.unless(
        entry.base_url.as_ref().is_none_or(spoken),
        "base_url",
        "must begin with https:// or http://",
    );
}

fn credentials(entry: &Entry, faults: &mut Faults) {
    let header_texts = entry.headers.iter().map(|(_, text)| text.as_str());
    let texts = entry
        .base_url
        .iter()
        .map(String::as_str)
        .chain(header_texts);
    for name in texts.flat_map(placeholders).chain(fields_of(&entry.auth)) {
        faults.unless(
            entry.field(name).is_some(),
            "auth, base_url or headers",
            format!("names {{{name}}}, which is no field"),
        );
    }
    for (name, _) in &entry.headers {
        if let Some(why) = header_name_fault(name) {
            faults.add("headers", format!("{name} {why}"));
        }
    }
    let is_secret = |name: &&str| entry.field(name).is_some_and(|field| field.secret);
    match &entry.auth {
        Auth::Configurable => {}
        Auth::Basic { .. } | Auth::Bearer { .. } | Auth::Header { .. } => {
            faults.unless(
                fields_of(&entry.auth).iter().any(is_secret),
                "auth",
                "no field that it names is writeOnly",
            );
        }
        Auth::OAuth2(oauth2) => {
            for url in oauth2.authorization_url.iter().chain(&oauth2.token_url) {
                faults.unless(
                    url.starts_with("https://"),
                    "auth",
                    format!("{url:?} must begin with https://"),
                );
            }
            let used = oauth2.client_scopes.is_none() || oauth2.grants == Grants::Both;
            faults.unless(
                used,
                "auth",
                "has client_scopes, which are for grants: both",
            );
        }
    }
}

fn test_call(test: &TestCall, faults: &mut Faults) {
    faults.unless(
        METHODS.contains(&test.method.as_str()),
        "test.method",
        "is none of HTTP that we send",
    );
    faults.unless(
        test.path.is_empty() || test.path.starts_with('/'),
        "test.path",
        "must begin with a slash",
    );
    for name in placeholders(&test.path) {
        faults.add(
            "test.path",
            format!("names {{{name}}}, and nothing is put in its place"),
        );
    }
}

fn action(action: &Action, faults: &mut Faults) {
    let place = |part: &str| format!("actions.{}.{part}", action.slug);
    faults.unless(
        is_slug(&action.slug),
        &place("slug"),
        "must be lower-case letters, digits and hyphens",
    );
    faults.unless(
        !action.name.trim().is_empty(),
        &place("name"),
        "must not be empty",
    );
    faults.unless(
        is_sentence(&action.description),
        &place("description"),
        "must be a sentence with a full stop",
    );
    faults.unless(
        METHODS.contains(&action.method.as_str()),
        &place("method"),
        "is none of HTTP that we send",
    );
    faults.unless(
        action.path.starts_with('/'),
        &place("path"),
        "must begin with a slash",
    );
    let schema = schema_value(&action.request_schema);
    faults.unless(
        schema["type"] == "object",
        &place("request_schema"),
        "must be of type object",
    );
    let has = |name: &str| schema["properties"].get(name).is_some();
    let requires = |name: &str| {
        schema["required"]
            .as_array()
            .is_some_and(|names| names.iter().any(|known| known == name))
    };
    for (name, _) in action.path_params() {
        faults.unless(
            has(name),
            &place("path"),
            format!("names {name}, which the request schema does not have"),
        );
        faults.unless(
            requires(name),
            &place("path"),
            format!("names {name}, which the request schema does not require"),
        );
    }
    let body_param = match action.body() {
        Body::Param(name) => Some(name),
        Body::None | Body::Json | Body::Form => None,
    };
    let others = action
        .query_params()
        .chain(action.header_params())
        .chain(body_param.as_deref());
    for name in others {
        faults.unless(
            has(name),
            &place("request_schema"),
            format!("lacks {name}, which is put somewhere"),
        );
    }
    for (name, _) in &action.headers {
        if let Some(why) = header_name_fault(name) {
            faults.add(&place("headers"), format!("{name} {why}"));
        }
    }
    for name in schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
    {
        faults.unless(
            has(name),
            &place("request_schema"),
            format!("requires {name}, which it does not describe"),
        );
    }
}

/// Returns the values of `authentication` that entries with it may have.
fn names(auth: &Auth) -> &'static [&'static str] {
    match auth {
        Auth::Configurable => &["configurable"],
        Auth::Basic { .. } => &["basic", "api_key"],
        Auth::Bearer { .. } => &["bearer", "api_key"],
        Auth::Header { .. } => &["api_key"],
        Auth::OAuth2(_) => &["oauth2"],
    }
}

/// Returns the config fields that its texts name.
fn fields_of(auth: &Auth) -> Vec<&str> {
    let texts: Vec<&str> = match auth {
        Auth::Configurable => Vec::new(),
        Auth::Basic { username, password } => vec![username, password],
        Auth::Bearer { token } => vec![token],
        Auth::Header { value, .. } => vec![value],
        Auth::OAuth2(oauth2) => {
            let urls = oauth2.authorization_url.iter().chain(&oauth2.token_url);
            urls.map(String::as_str).collect()
        }
    };
    texts.into_iter().flat_map(placeholders).collect()
}

fn is_slug(text: &str) -> bool {
    !text.is_empty()
        && text.split('-').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
        })
}

fn is_sentence(text: &str) -> bool {
    let text = text.trim();
    text.len() > 1 && text.ends_with('.')
}
