//! `source.verify`: how an inbound webhook proves its sender.

use std::time::Duration;

use kanat_catalog::check::header_name_fault;
use kanat_mapping::Template;

use super::Checker;
use super::cursor::{Cursor, Members, optional};
use super::expression::{Place, Secrets};
use crate::definition::Verify;
use crate::fields::InstanceOf;
use crate::language;
use crate::webhook_key::{PREFIX, webhook_key};
use crate::yaml::Value;

/// The schemes, and the keys that each has beside `scheme`.
const SCHEMES: &[(&str, &[&str])] = &[
    ("token", &["secret", "header", "query"]),
    ("hmac-sha256", &["secret", "header", "prefix", "encoding"]),
    ("hmac-sha1", &["secret", "header", "prefix", "encoding"]),
    ("hmac-sha512", &["secret", "header", "prefix", "encoding"]),
    ("standard-webhooks", &["secret", "tolerance"]),
    ("github", &["secret"]),
    ("stripe", &["secret", "tolerance"]),
    ("shopify", &["secret"]),
    ("slack", &["secret", "tolerance"]),
    ("meta", &["secret", "verify_token"]),
    ("basic", &["username", "password"]),
];

const DEFAULT_TOLERANCE: Duration = Duration::from_secs(300);

pub(super) fn verify(
    checker: &mut Checker,
    cursor: &Cursor,
    instance: Option<InstanceOf>,
) -> Option<Verify> {
    let place = Place {
        instance,
        calls: false,
        secrets: Secrets::Whole,
        ..Place::new("source.verify")
    };
    let members = checker.members(cursor, "source.verify")?;
    let names: Vec<&str> = SCHEMES.iter().map(|(name, _)| *name).collect();
    let scheme = checker
        .required(&members, "scheme")
        .and_then(|cursor| checker.one_of(&cursor, &names));
    let keys = scheme
        .and_then(|scheme| SCHEMES.iter().find(|(name, _)| *name == scheme))
        .map(|(_, keys)| *keys);
    if let (Some(scheme), Some(keys)) = (scheme, keys) {
        fit(checker, &members, scheme, keys);
    }
    let secrets = optional(members.get("secret"), |cursor| {
        secrets(checker, cursor, scheme, place)
    });
    let header = optional(members.get("header"), |cursor| {
        checker.read(cursor, "a text, the name of a header", header)
    });
    let query = optional(members.get("query"), |cursor| {
        checker.text(cursor, "a text, the name of a query parameter")
    });
    let prefix = optional(members.get("prefix"), |cursor| {
        checker.any_text(cursor, "a text such as sha256=")
    });
    let encoding = optional(members.get("encoding"), |cursor| {
        checker.one_of(cursor, &["hex", "base64"])
    });
    let mut template = |name: &str| {
        optional(members.get(name), |cursor| {
            checker.template(cursor, "a text", place)
        })
    };
    let verify_token = template("verify_token");
    let username = template("username");
    let password = template("password");
    let tolerance = optional(members.get("tolerance"), |cursor| {
        tolerance(checker, cursor)
    });
    let header = header?;
    let query = query?;
    let encoding = encoding?;
    let scheme = scheme?;
    let keys = keys?;
    let header = header.unwrap_or_else(|| match query {
        Some(_) => String::new(),
        None => default_header(scheme).to_owned(),
    });
    let query = query.unwrap_or_default();
    checker.compared = match scheme {
        "basic" => Some(["headers".to_owned(), "authorization".to_owned()]),
        "token" if query.is_empty() => Some(["headers".to_owned(), header.to_ascii_lowercase()]),
        "token" => Some(["query".to_owned(), query.to_owned()]),
        _ => None,
    };
    Some(Verify {
        scheme: scheme.to_owned(),
        secrets: secrets?.unwrap_or_default(),
        header,
        query: query.to_owned(),
        prefix: prefix?.unwrap_or_default().to_owned(),
        encoding: encoding
            .unwrap_or(if keys.contains(&"encoding") {
                "hex"
            } else {
                ""
            })
            .to_owned(),
        verify_token: verify_token?,
        username: username?,
        password: password?,
        tolerance: tolerance?.unwrap_or(DEFAULT_TOLERANCE),
    })
}

/// Checks that the keys are those of the scheme.
fn fit(checker: &mut Checker, members: &Members, scheme: &str, keys: &[&str]) {
    for key in language::names("source.verify")
        .filter(|key| *key != "scheme" && !keys.contains(key) && members.has(key))
    {
        let (at, path) = members.key(key);
        let message = format!(
            "found {key:?} with the scheme {scheme}, which has {}",
            keys.join(", ")
        );
        checker.report(at, &path, message);
    }
    for key in ["secret", "verify_token", "username", "password"]
        .iter()
        .filter(|key| keys.contains(key))
    {
        checker.required(members, key);
    }
    if members.has("header") && members.has("query") && scheme == "token" {
        let (at, path) = members.key("query");
        checker.report(
            at,
            &path,
            "found \"query\" beside \"header\", expected only one of them",
        );
    }
}

fn default_header(scheme: &str) -> &'static str {
    match scheme {
        "token" => "X-Webhook-Token",
        "hmac-sha256" | "hmac-sha1" | "hmac-sha512" => "X-Signature",
        _ => "",
    }
}

/// One secret, or several while they are rotated.
fn secrets(
    checker: &mut Checker,
    cursor: &Cursor,
    scheme: Option<&str>,
    place: Place,
) -> Option<Vec<Template>> {
    const EXPECTED: &str = "a text, or a list of texts of which any is accepted";
    match &cursor.node.value {
        Value::List(items) if !items.is_empty() => {
            let spots = items
                .iter()
                .enumerate()
                .map(|(index, item)| cursor.item(index, item));
            let secrets: Vec<_> = spots
                .map(|cursor| secret(checker, &cursor, "a text", scheme, place))
                .collect();
            secrets.into_iter().collect()
        }
        _ => Some(vec![secret(checker, cursor, EXPECTED, scheme, place)?]),
    }
}

/// No message shows what is there: it may be a secret all the same.
fn secret(
    checker: &mut Checker,
    cursor: &Cursor,
    expected: &str,
    scheme: Option<&str>,
    place: Place,
) -> Option<Template> {
    let template = checker.template(cursor, expected, place)?;
    let is_key = match template.is_literal() {
        Some(text) => webhook_key(text).is_some(),
        None => !template.text().starts_with("whpk_"),
    };
    if template.is_literal() == Some(PREFIX) {
        checker.error(
            cursor,
            format!("found {PREFIX} alone, expected the secret behind it, too"),
        );
    } else if scheme == Some("standard-webhooks") && !is_key {
        checker.error(
            cursor,
            format!("the scheme standard-webhooks takes {PREFIX} and base64, and nothing else"),
        );
    }
    Some(template)
}

fn header(name: &str) -> Result<String, String> {
    match header_name_fault(name) {
        Some(_) => Err(format!(
            "found {}, expected the name of a header",
            crate::duration::quoted(name)
        )),
        None => Ok(name.to_owned()),
    }
}

/// A duration, or a number of seconds.
fn tolerance(checker: &mut Checker, cursor: &Cursor) -> Option<Duration> {
    const DAY_SECONDS: u32 = 24 * 60 * 60;
    match &cursor.node.value {
        Value::Number(_) => checker
            .whole(cursor, 1, DAY_SECONDS)
            .map(|seconds| Duration::from_secs(u64::from(seconds))),
        _ => checker.duration(
            cursor,
            Duration::from_secs(1),
            Duration::from_secs(u64::from(DAY_SECONDS)),
        ),
    }
}
