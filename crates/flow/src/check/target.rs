//! `target`: where the output goes. Methods and headers are checked here for `poll` too.

use std::collections::HashSet;
use std::time::Duration;

use kanat_catalog::check::{header_name_fault, header_value_fault, is_dot_segment};
use kanat_mapping::Template;
use kanat_model::media_type;

use super::Checker;
use super::cursor::{Cursor, optional};
use super::expression::{Place, Secrets};
use crate::definition::Target;
use crate::diagnostic::Position;
use crate::duration::quoted;
use crate::fields::InstanceOf;
use crate::nearest;
use crate::yaml::{Node, Text, Value, member_path};

const METHODS: &[&str] = &["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
const MIN_TIMEOUT: Duration = Duration::from_millis(1);
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60);

pub(super) fn target(checker: &mut Checker, cursor: &Cursor) -> Option<Target> {
    let steps = checker.step_names.len();
    let place = |name| Place {
        source: true,
        steps,
        instance: Some(InstanceOf::Target),
        ..Place::new(name)
    };
    let members = checker.members(cursor, "target")?;
    let connector = checker
        .required(&members, "connector")
        .and_then(|cursor| checker.named(&cursor, "a text, the name of a connector instance"));
    let endpoint = checker
        .required(&members, "endpoint")
        .and_then(|cursor| endpoint(checker, &cursor, place("target.endpoint")));
    let method = match members.get("method") {
        Some(cursor) => method(checker, &cursor),
        None => Some("POST".to_owned()),
    };
    let headers = optional(members.get("headers"), |cursor| {
        headers(
            checker,
            cursor,
            Place {
                secrets: Secrets::Whole,
                ..place("target.headers")
            },
        )
    });
    let timeout = match members.get("timeout") {
        Some(cursor) => checker.duration(&cursor, MIN_TIMEOUT, MAX_TIMEOUT),
        None => Some(DEFAULT_TIMEOUT),
    };
    let success_when = optional(members.get("success_when"), |cursor| {
        let place = place("target.success_when");
        checker.expression(
            cursor,
            Place {
                response: true,
                ..place
            },
        )
    });
    Some(Target {
        connector: connector?,
        endpoint: endpoint?,
        method: method?,
        headers: headers?.unwrap_or_default(),
        timeout: timeout?,
        success_when: success_when?,
    })
}

/// Warns of a content type that is not that of JSON, which a mapping makes.
pub(super) fn warn_of_content_type(checker: &mut Checker, cursor: &Cursor, target: &Target) {
    let headers = target.headers.iter();
    let found = headers
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .find_map(|(name, value)| Some((name, value.is_literal()?)));
    let Some((name, value)) = found.filter(|(_, value)| !media_type::is_json(value)) else {
        return;
    };
    let path = format!("{}.headers", cursor.path);
    let message = format!(
        "found the content type {}, and the mapping makes JSON: leave the header out, or make the \
         body by an adapter of the type target",
        quoted(value)
    );
    let at = header_position(cursor, name).unwrap_or(cursor.node.at);
    checker.warn(at, &member_path(&path, name), &message);
}

/// Returns the position of a header's value.
fn header_position(target: &Cursor, name: &str) -> Option<Position> {
    let headers = member(target.node, "headers")?;
    member(headers, name).map(|value| value.at)
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Value::Map(members) = &node.value else {
        return None;
    };
    let found = members.iter().find(|member| member.name == name)?;
    Some(&found.value)
}

/// An HTTP method, in capitals whatever the definition has.
pub(super) fn method(checker: &mut Checker, cursor: &Cursor) -> Option<String> {
    let found = checker.text(cursor, "an HTTP method")?.to_ascii_uppercase();
    if METHODS.contains(&found.as_str()) {
        return Some(found);
    }
    let near = nearest::suggestion(&found, METHODS.iter().copied());
    checker.type_error(cursor, &format!("one of {}{near}", METHODS.join(", ")));
    None
}

/// A map from header names to texts that may be templates.
pub(super) fn headers(
    checker: &mut Checker,
    cursor: &Cursor,
    place: Place,
) -> Option<Vec<(String, Template)>> {
    let members = checker.any_members(cursor, "a map of headers")?;
    let mut headers: Vec<Option<(String, Template)>> = Vec::new();
    let mut seen = HashSet::new();
    for (member, cursor) in members.iter() {
        if let Some(fault) = header_name_fault(&member.name) {
            checker.report(
                member.at,
                &cursor.path,
                format!("found {}, which {fault}", quoted(&member.name)),
            );
        }
        if !seen.insert(member.name.to_ascii_lowercase()) {
            let message = format!(
                "found the header {} twice; headers do not tell case apart",
                quoted(&member.name)
            );
            checker.report(member.at, &cursor.path, message);
        }
        let template = any_text(checker, &cursor, place);
        if let Some(fault) = template
            .as_ref()
            .and_then(Template::is_literal)
            .and_then(header_value_fault)
        {
            checker.error(&cursor, format!("the value {fault}"));
        }
        headers.push(template.map(|template| (member.name.clone(), template)));
    }
    headers.into_iter().collect()
}

/// A text, maybe empty, that may have `{{ }}` in it.
pub(super) fn any_text(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<Template> {
    match &cursor.node.value {
        Value::Text(Text { text, .. }) => checker.template_of(cursor, text, place),
        _ => {
            checker.type_error(cursor, "a text");
            None
        }
    }
}

/// The segments of an endpoint's path; an expression in one of them stands there as `{}`.
fn path_segments(endpoint: &str) -> impl Iterator<Item = String> {
    let mut parts = endpoint.split("{{");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str("{}");
        plain.push_str(part.split_once("}}").map_or("", |(_, rest)| rest));
    }
    let path = plain.split('?').next().unwrap_or_default();
    path.split('/')
        .map(str::to_owned)
        .collect::<Vec<_>>()
        .into_iter()
}

/// Returns the first character of a template's literal parts that is one of these.
pub(crate) fn literal_character(
    template: &Template,
    is_one: impl FnMut(&char) -> bool,
) -> Option<char> {
    template.literals().flat_map(str::chars).find(is_one)
}

/// Returns a character as it stands in a URL.
fn percent_encoded(c: char) -> String {
    let mut buffer = [0; 4];
    let bytes = c.encode_utf8(&mut buffer).bytes();
    bytes.map(|byte| format!("%{byte:02X}")).collect()
}

fn endpoint(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<Template> {
    const EXPECTED: &str = "a path under the connector's base URL, such as /orders";
    let template = checker.url_template(cursor, &format!("a text, {EXPECTED}"), place)?;
    let text = template.text();
    let has_scheme = ["http://", "https://"].iter().any(|scheme| {
        text.get(..scheme.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    });
    let is_stray = |c: &char| c.is_control() || c.is_whitespace() || matches!(c, '#' | '\\');
    // Builds before took these beside an expression.
    let is_taken = checker.stored && template.is_literal().is_none();
    let stray = literal_character(&template, is_stray).filter(|_| !is_taken);
    if has_scheme {
        checker.type_error(cursor, EXPECTED);
    } else if let Some(stray) = stray {
        checker.error(
            cursor,
            format!(
                "found the character {stray:?} in {}, which an endpoint cannot have: write {} for \
                 it",
                quoted(text),
                percent_encoded(stray)
            ),
        );
    } else if path_segments(text).any(|segment| is_dot_segment(&segment)) {
        checker.error(
            cursor,
            format!(
                "found a segment of dots alone in {}, which leads elsewhere",
                quoted(text)
            ),
        );
    }
    Some(template)
}
