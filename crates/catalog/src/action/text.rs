//! The values of params as the parts of a request want them: segments, queries, forms, JSON.

use kanat_json::{decode, items, members, write_string};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{ParamError, wrong};

/// Characters that stand for themselves in every part of a URL, negated.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// A value as one segment of a path, which it must not change into another path.
pub(super) fn segment(name: &str, value: Option<&str>) -> Result<String, ParamError> {
    let text = value
        .and_then(text)
        .ok_or_else(|| wrong(name, "must be a text or a number: it is part of the path"))?;
    one_segment(name, &text)
}

/// A value as several segments: its slashes stay. One in front is not needed, one at the end may
/// matter.
pub(super) fn path(name: &str, value: Option<&str>) -> Result<String, ParamError> {
    let text = value
        .and_then(text)
        .ok_or_else(|| wrong(name, "must be a text or a number: it is part of the path"))?;
    let (text, end) = match text.strip_prefix('/').unwrap_or(&text) {
        text if text.len() > 1 && text.ends_with('/') => (&text[..text.len() - 1], "/"),
        text => (text, ""),
    };
    let segments: Result<Vec<_>, _> = text
        .split('/')
        .map(|segment| one_segment(name, segment))
        .collect();
    Ok(segments?.join("/") + end)
}

fn one_segment(name: &str, text: &str) -> Result<String, ParamError> {
    match text {
        "" => Err(wrong(name, "must not be empty: it is part of the path")),
        "." | ".." => Err(wrong(
            name,
            "must not be a segment of dots: it would be another path",
        )),
        text => Ok(utf8_percent_encode(text, RESERVED).to_string()),
    }
}

/// A value as text that stands for itself.
pub(super) fn plain(name: &str, value: Option<&str>) -> Result<String, ParamError> {
    value
        .and_then(text)
        .ok_or_else(|| wrong(name, "must be a text or a number: it is part of a header"))
}

/// Adds to an endpoint. Null is left out, a list of texts repeats its name, what is nested is
/// written in brackets.
pub(super) fn write_query(params: &[(String, &str)], endpoint: &mut String) {
    let mut separator = if endpoint.contains('?') { '&' } else { '?' };
    for (name, value) in fields(params) {
        endpoint.push(separator);
        write_pair(&name, &value, endpoint);
        separator = '&';
    }
}

/// A body of `application/x-www-form-urlencoded`.
pub(super) fn form(params: &[(String, &str)]) -> Vec<u8> {
    let mut body = String::new();
    for (index, (name, value)) in fields(params).iter().enumerate() {
        if index > 0 {
            body.push('&');
        }
        write_pair(name, value, &mut body);
    }
    body.into_bytes()
}

/// A JSON object of the params, their values as they came.
pub(super) fn object(params: &[(String, &str)]) -> Vec<u8> {
    let mut body = vec![b'{'];
    for (index, (name, value)) in params.iter().enumerate() {
        if index > 0 {
            body.push(b',');
        }
        write_string(name, &mut body);
        body.push(b':');
        body.extend_from_slice(value.as_bytes());
    }
    body.push(b'}');
    body
}

fn write_pair(name: &str, value: &str, out: &mut String) {
    out.extend(utf8_percent_encode(name, RESERVED));
    out.push('=');
    out.extend(utf8_percent_encode(value, RESERVED));
}

/// Every value by the name under which a query or a form has it.
fn fields(params: &[(String, &str)]) -> Vec<(String, String)> {
    let mut fields = Vec::with_capacity(params.len());
    for (name, value) in params {
        flatten(name, value, &mut fields);
    }
    fields
}

/// As deep as JSON that was checked nests.
fn flatten(name: &str, value: &str, fields: &mut Vec<(String, String)>) {
    match value.as_bytes().first() {
        Some(b'n') | None => {}
        Some(b'{') => {
            for (key, value) in members(value) {
                flatten(&format!("{name}[{}]", decode(key)), value, fields);
            }
        }
        Some(b'[') => {
            for (index, item) in items(value).enumerate() {
                // What has members of its own needs an index to keep them together; texts do
                // without.
                let is_nested = item.starts_with(['{', '[']);
                let name = if is_nested {
                    format!("{name}[{index}]")
                } else {
                    name.to_owned()
                };
                flatten(&name, item, fields);
            }
        }
        Some(_) => fields.extend(text(value).map(|text| (name.to_owned(), text))),
    }
}

/// The text of a string, a number or a boolean.
fn text(json: &str) -> Option<String> {
    match json.as_bytes().first()? {
        b'"' => Some(decode(json).into_owned()),
        b'{' | b'[' | b'n' => None,
        _ => Some(json.to_owned()),
    }
}
