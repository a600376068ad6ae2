//! Secrets that are written out in a definition: where they stand, and the definition without them.

use std::borrow::Cow;
use std::ops::Range;

use kanat_catalog::MASK;
use kanat_catalog::redact::is_secret_header;
use kanat_mapping::{Expression, Template};
use kanat_model::Mask;

use crate::definition::Definition;
use crate::diagnostic::{Diagnostic, Severity};
use crate::yaml::{Node, Text, Value, member_path};

/// Texts shorter than this are masked where they stand, and nowhere else: they are part of many
/// words.
const SHORTEST_EVERYWHERE: usize = 8;

/// Returns a warning for each secret that the definition has as a text.
pub fn literal_secrets(definition: &Definition) -> Vec<Diagnostic> {
    let warning = |found: &LiteralSecret| Diagnostic {
        severity: Severity::Warning,
        ..Diagnostic::error(
            found.node.at,
            &found.place,
            "found a secret that is written out: give it to a connector instance, and write {{ \
             instance.<field> }} here",
        )
    };
    found(definition).iter().map(warning).collect()
}

/// Returns the secrets that are written out and that a run has to do with: those of `source.verify`
/// stay at the ingress.
pub(crate) fn of_runs(definition: &Definition) -> Vec<String> {
    let of_runs = found(definition)
        .into_iter()
        .filter(|found| !found.place.starts_with("source.verify"));
    let mut secrets: Vec<String> = of_runs.flat_map(|found| found.secrets).collect();
    secrets.sort_unstable();
    secrets.dedup();
    secrets
}

/// Returns the text of a definition with the mask in the place of each secret that is written out;
/// `None` when there is none.
pub fn without_secrets(yaml: &str, definition: &Definition) -> Option<String> {
    let mut found = found(definition);
    if found.is_empty() {
        return None;
    }
    // An alias stands where its anchor does.
    found
        .sort_by_key(|found| std::cmp::Reverse(found.written().map_or(0, |written| written.start)));
    let mut masked = yaml.to_owned();
    let mut last = None;
    for found in &found {
        let Some(written) = found
            .written()
            .filter(|written| last.as_ref() != Some(written))
        else {
            continue;
        };
        if masked.get(written.clone()).is_some() {
            let shown = serde_json::Value::from(found.masked.as_str()).to_string();
            masked.replace_range(whole_scalar(yaml, &written), &shown);
        }
        last = Some(written);
    }
    // What else repeats it, such as a comment.
    let mask = everywhere(found.iter().flat_map(|found| &found.secrets));
    Some(mask.apply(&masked).into_owned())
}

/// Returns what may be shown of another text of a flow, such as its description.
pub fn text_without_secrets(definition: &Definition, text: &str) -> String {
    mask_of(definition).apply(text).into_owned()
}

/// Returns what hides the secrets of a definition in all of its texts.
pub(crate) fn mask_of(definition: &Definition) -> Mask {
    let found = found(definition);
    everywhere(found.iter().flat_map(|found| &found.secrets))
}

/// Returns the mask of secrets that are long enough to differ from other texts.
pub(crate) fn everywhere<'s>(secrets: impl IntoIterator<Item = &'s String>) -> Mask {
    let secrets = secrets.into_iter();
    Mask::new(secrets.filter(|secret| secret.len() >= SHORTEST_EVERYWHERE))
}

/// Returns JSON with the mask in the place of secrets in its texts; names and numbers stay.
pub(crate) fn masked_texts(json: String, mask: &Mask) -> String {
    if matches!(mask.apply(&json), Cow::Borrowed(_)) {
        return json;
    }
    let mut masked = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(quote) = rest.find('"') {
        let (before, text) = rest.split_at(quote + 1);
        let mut is_escaped = false;
        let end = text.find(|c: char| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        });
        let (text, after) = text.split_at(end.unwrap_or(text.len()));
        masked.push_str(before);
        match after
            .get(1..)
            .unwrap_or_default()
            .trim_start()
            .starts_with(':')
        {
            true => masked.push_str(text),
            false => masked.push_str(&mask.apply(text)),
        }
        masked.push_str(&after[..after.len().min(1)]);
        rest = &after[after.len().min(1)..];
    }
    masked.push_str(rest);
    masked
}

/// Returns where a scalar stands with all that is its own: a block with its indicator, and without
/// the indentation of the line behind it, which the parser counts to it.
fn whole_scalar(yaml: &str, written: &Range<usize>) -> Range<usize> {
    let before = yaml[..written.start].trim_end();
    let indicator = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
    let is_indicator = before[indicator..]
        .strip_prefix(['|', '>'])
        .is_some_and(|rest| rest.chars().all(|c| matches!(c, '+' | '-' | '0'..='9')));
    if !is_indicator || !yaml[before.len()..written.start].contains('\n') {
        return written.clone();
    }
    indicator..written.start + yaml[written.clone()].trim_end().len()
}

/// Returns what may be shown of a text of the definition, by the keys that lead to it.
pub(crate) fn shown(keys: &[&str], text: &str) -> String {
    secrets(keys, text).map_or_else(|| text.to_owned(), |(masked, _)| masked)
}

/// Returns what may be shown of the params of a step, as JSON; digits and order of keys are kept
/// where there is no secret.
pub(crate) fn shown_params(params: &str) -> String {
    let Ok(json) = serde_json::from_str(params) else {
        return params.to_owned();
    };
    let node = Node::from_json(json);
    let masked =
        node.to_json_with(|keys, text| shown(&[&["steps", "params"][..], keys].concat(), text));
    if masked == node.to_json() {
        params.to_owned()
    } else {
        masked
    }
}

/// A text with a secret that is written out.
struct LiteralSecret<'d> {
    node: &'d Node,
    place: String,
    masked: String,
    secrets: Vec<String>,
}

impl LiteralSecret<'_> {
    fn written(&self) -> Option<std::ops::Range<usize>> {
        match &self.node.value {
            Value::Text(Text { written, .. }) => written.clone(),
            _ => None,
        }
    }
}

fn found(definition: &Definition) -> Vec<LiteralSecret<'_>> {
    let mut found = Vec::new();
    walk(&definition.tree, String::new(), &mut Vec::new(), &mut found);
    found
}

/// As deep as the tree, which its reader bounds.
fn walk<'d>(
    node: &'d Node,
    place: String,
    keys: &mut Vec<&'d str>,
    found: &mut Vec<LiteralSecret<'d>>,
) {
    match &node.value {
        Value::Text(text) => {
            if let Some((masked, secrets)) = secrets(keys, &text.text) {
                found.push(LiteralSecret {
                    node,
                    place,
                    masked,
                    secrets,
                });
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                walk(item, format!("{place}[{index}]"), keys, found);
            }
        }
        Value::Map(members) => {
            for member in members {
                keys.push(&member.name);
                walk(
                    &member.value,
                    member_path(&place, &member.name),
                    keys,
                    found,
                );
                keys.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Invalid => {}
    }
}

/// The text with its secrets masked, and these; `None` when it has none.
fn secrets(keys: &[&str], text: &str) -> Option<(String, Vec<String>)> {
    let constant = |masked: &str, secret: Option<String>| {
        let secret = secret.filter(|secret| !secret.is_empty())?;
        Some((masked.to_owned(), vec![secret]))
    };
    let template = || Template::parse(text).ok()?.constant_text();
    let whole = || constant(MASK, template());
    match keys {
        ["source", "verify", "secret" | "verify_token" | "password"] => whole(),
        ["source", "poll", "headers" | "params", name] | ["target", "headers", name]
            if is_secret_header(name) =>
        {
            whole()
        }
        ["steps", "params", .., name] if is_secret_header(name) => whole(),
        ["mapping", .., name] if is_secret_header(name) => {
            if text.contains("{{") {
                return constant(&format!("{{{{ '{MASK}' }}}}"), template());
            }
            let secret = Expression::parse(text).ok()?.constant_text();
            constant(&format!("'{MASK}'"), secret)
        }
        ["source", "poll", "url"] | ["target", "endpoint"] | ["steps", "params", "path"] => {
            in_query(text)
        }
        _ => None,
    }
}

/// The secrets among the parameters of a URL's query.
fn in_query(url: &str) -> Option<(String, Vec<String>)> {
    let (path, query) = url.split_once('?')?;
    let mut secrets = Vec::new();
    let masked = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if is_secret_param(name) && !value.contains("{{") => {
            let end = value.find('#').unwrap_or(value.len());
            let (value, fragment) = value.split_at(end);
            if value.is_empty() {
                return pair.to_owned();
            }
            secrets.push(value.to_owned());
            format!("{name}={MASK}{fragment}")
        }
        Some(_) | None => pair.to_owned(),
    });
    let masked: Vec<String> = masked.collect();
    (!secrets.is_empty()).then(|| (format!("{path}?{}", masked.join("&")), secrets))
}

/// Returns whether a parameter may carry a credential, by its name as a URL writes it.
fn is_secret_param(name: &str) -> bool {
    let decoded = url::form_urlencoded::parse(name.as_bytes()).next();
    decoded.is_some_and(|(name, _)| is_secret_header(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "flow: f # s3cret-of-the-hook is in a comment
version: 1
source:
  connector: shop
  trigger: webhook
  verify: {scheme: token, secret: [s3cret-of-the-hook, \"{{ instance.webhook_secret }}\"]}
steps:
  - name: tell
    action: http.post
    connector: shop
    params: {path: /x, body: {api_key: \"s3cr\\u0065t\", n: 9007199254740993, note: plain}}
target:
  connector: erp
  endpoint: /in?token=hush&a=1
  headers:
    Authorization: 'Bearer abc'
    X-Source: kanat
    X-Api-Key: |-
      folded
  method: POST
mapping:
  access_token: \"'mapped'\"
  token: source.token
";

    const PLAIN: &str =
        "flow: f\nsource: {trigger: manual}\ntarget: {connector: c, endpoint: /x}\n";

    #[test]
    fn finds_what_is_written_out_and_masks_it() {
        let definition = crate::parse(YAML).unwrap();
        let places: Vec<String> = literal_secrets(&definition)
            .into_iter()
            .map(|found| found.path)
            .collect();
        assert_eq!(
            places,
            [
                "source.verify.secret[0]",
                "steps[0].params.body.api_key",
                "target.endpoint",
                "target.headers.Authorization",
                "target.headers.X-Api-Key",
                "mapping.access_token",
            ]
        );
        let masked = without_secrets(YAML, &definition).unwrap();
        for secret in [
            "s3cret-of",
            "s3cr",
            "hush",
            "Bearer abc",
            "folded",
            "mapped",
        ] {
            assert!(!masked.contains(secret), "{secret} in {masked}");
        }
        for kept in [
            "{{ instance.webhook_secret }}",
            "a=1",
            "kanat",
            "9007199254740993",
            "token: source.token",
            "plain",
        ] {
            assert!(masked.contains(kept), "{kept} not in {masked}");
        }
        let again = crate::parse(&masked).unwrap_or_else(|faults| panic!("{faults:?} in {masked}"));
        assert_eq!(
            crate::config_json(&again),
            crate::config_json(&definition),
            "{masked}"
        );
        assert!(without_secrets("", &crate::parse(PLAIN).unwrap()).is_none());
    }

    #[test]
    fn what_repeats_a_secret_is_masked_wherever_it_is_shown() {
        let yaml = "flow: f
description: uses repeated-secret/42
source: {trigger: manual}
steps:
  - {name: s, action: http.get, connector: c, params: {path: \"/x?note=repeated-secret%2F42\"}}
target:
  connector: c
  endpoint: /x
  headers:
    X-Api-Key: &k repeated-secret/42
    X-Other: *k
    X-More: a repeated-secret/42
mapping: {a: \"'repeated-secret/42'\", n: '4'}
";
        let definition = crate::parse(yaml).unwrap();
        let graph = crate::graph::of(&definition);
        for shown in [
            crate::config_json(&definition),
            without_secrets(yaml, &definition).unwrap(),
            text_without_secrets(&definition, &definition.description),
            format!("{graph:?}"),
        ] {
            assert!(!shown.contains("repeated"), "{shown}");
        }
        let plain = r#"{"secretive": 12345678, "a\\": ["x secretive\"", "12345678"]}"#;
        let mask = everywhere(&["secretive".to_owned(), "12345678".to_owned()]);
        assert_eq!(
            masked_texts(plain.to_owned(), &mask),
            r#"{"secretive": 12345678, "a\\": ["x ********\"", "********"]}"#
        );
    }

    #[test]
    fn finds_secrets_that_expressions_write_out() {
        let yaml = "flow: f
source: {trigger: manual}
steps:
  - name: s
    action: http.get
    connector: c
    params: {path: \"/x?a=1&api%5Fkey=param-secret#top\", token: \"{{ 'step-secret' }}\"}
target:
  connector: c
  endpoint: /x?a={{ source.a }}
  headers:
    X-Api-Key: \"{{ 'header' | concat('-secret') }}\"
    Authorization: Bearer {{ source.a }}
mapping:
  password: \"'mapped' | concat('-secret')\"
  token: \"{{ 'template-secret' }}\"
  key: now() | date('YYYY')
  session: uuid()
  auth: source.a | default('x')
";
        let definition = crate::parse(yaml).unwrap();
        let secrets = of_runs(&definition);
        let expected = ["header", "mapped", "param", "step", "template"];
        assert_eq!(secrets, expected.map(|name| format!("{name}-secret")));
        let masked = without_secrets(yaml, &definition).unwrap();
        assert!(!masked.contains("secret"), "{masked}");
        let again = crate::parse(&masked).unwrap_or_else(|faults| panic!("{faults:?} in {masked}"));
        let config = crate::config_json(&definition);
        assert_eq!(crate::config_json(&again), config, "{masked}");
        assert!(
            !config.contains("secret") && config.contains("#top"),
            "{config}"
        );
    }

    #[test]
    fn params_keep_their_digits() {
        assert_eq!(
            shown_params(r#"{"n": 1.10, "token": "{{ source.t }}"}"#),
            r#"{"n": 1.10, "token": "{{ source.t }}"}"#
        );
        assert_eq!(
            shown_params(r#"{"n": 7, "auth": {"token": "t"}}"#),
            r#"{"n":7,"auth":{"token":"********"}}"#
        );
    }
}
