//! Value of `trigger` in expressions: headers, query, method and time of the request. Credentials
//! are masked in the stored form; a run that reads them has another form.

use std::borrow::Cow;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, Method};
use kanat_catalog::MASK;
use kanat_catalog::instance::SHORTEST_MASKED;
use kanat_catalog::redact::is_secret_header;
use kanat_mapping::json::{self, write_string};
use kanat_model::Timestamp;
use kanat_model::id::EnvironmentId;
use kanat_proto::plan::v1::Verify;

/// Member of a stored document that holds the document with its credentials, sealed, as base64
/// without padding.
pub const SEALED: &str = "sealed";

/// Returns the context under which the documents of an environment are sealed.
pub fn sealing_context(environment: &EnvironmentId) -> String {
    format!("trigger/{environment}")
}

/// Parts of a request in the document.
#[derive(Debug)]
pub struct InboundRequest<'a> {
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    /// The values of each parameter, by name.
    pub query: Vec<(String, Vec<String>)>,
    pub at: Timestamp,
    /// Verification of the webhook. Its header or query parameter may be the secret itself.
    pub verify: Option<&'a Verify>,
    /// Path parameters, as a JSON object.
    pub path_params: &'a [u8],
    /// Further members of the document as JSON, separated by commas.
    pub members: &'a [u8],
}

/// Form of the credentials in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Credentials {
    Masked,
    /// Credentials are included, except those that `verify` compares: the flow knows them.
    Clear,
}

/// Returns the document as JSON, with every credential masked.
pub fn document(received: &InboundRequest<'_>) -> Vec<u8> {
    written(received, Credentials::Masked)
}

/// Returns the document as JSON, with the credentials that a run may read; `None` when the request
/// has none. Those that `verify` compares are masked.
pub fn document_with_credentials(received: &InboundRequest<'_>) -> Option<Vec<u8>> {
    let compared_header = secret_header(received.verify);
    let compared_parameter = secret_parameter(received.verify);
    let headers = received.headers.keys().map(HeaderName::as_str);
    let parameters = received.query.iter().map(|(name, _)| name.as_str());
    let mut readable = headers
        .filter(|name| !compared_header.is_some_and(|own| own.eq_ignore_ascii_case(name)))
        .chain(parameters.filter(|name| compared_parameter != Some(*name)));
    readable
        .any(is_credential)
        .then(|| written(received, Credentials::Clear))
}

fn written(received: &InboundRequest<'_>, credentials: Credentials) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"headers\":{");
    let secret = secret_header(received.verify);
    let is_masked = |name: &str| {
        secret.is_some_and(|own| own.eq_ignore_ascii_case(name))
            || credentials == Credentials::Masked && is_credential(name)
    };
    write_headers(received.headers, is_masked, &mut out);
    out.extend_from_slice(b"},\"query\":");
    write_query(received, credentials, &mut out);
    out.extend_from_slice(b",\"method\":");
    write_string(received.method.as_str(), &mut out);
    out.extend_from_slice(b",\"path_params\":");
    out.extend_from_slice(received.path_params);
    out.extend_from_slice(b",\"received_at\":");
    write_string(&received.at.to_string(), &mut out);
    if !received.members.is_empty() {
        out.push(b',');
        out.extend_from_slice(received.members);
    }
    out.push(b'}');
    out
}

/// Returns whether a header or a query parameter may contain a credential. An idempotency key is
/// none.
pub fn is_credential(name: &str) -> bool {
    is_secret_header(name) && !name.eq_ignore_ascii_case("idempotency-key")
}

/// Returns whether the names that lead to a value of the document may lead to a credential.
pub(crate) fn leads_to_credential(names: &[String]) -> bool {
    match names {
        [] => true,
        [part] => matches!(part.as_str(), "headers" | "query"),
        [part, name, ..] => matches!(part.as_str(), "headers" | "query") && is_credential(name),
    }
}

/// Returns the credentials of a document that are long enough to be masked.
pub fn credentials(document: &[u8]) -> Vec<String> {
    let document = std::str::from_utf8(document).unwrap_or_default();
    let parts = ["headers", "query"]
        .into_iter()
        .filter_map(|part| json::member(document, part));
    let named = parts
        .flat_map(json::members)
        .filter(|(name, _)| is_credential(&json::decode(name)));
    let values = named.flat_map(|(_, value)| match value.starts_with('[') {
        true => json::items(value).collect(),
        false => vec![value],
    });
    let mut found: Vec<String> = values
        .map(|value| json::decode(value).into_owned())
        .collect();
    // The value after a scheme such as Bearer is a secret too.
    let bare: Vec<String> = found
        .iter()
        .filter_map(|text| Some(text.split_once(' ')?.1.trim().to_owned()))
        .collect();
    found.extend(bare);
    found.retain(|text| text.len() >= SHORTEST_MASKED);
    found
}

/// Writes the members of an object of headers; repeated ones are joined.
pub(crate) fn write_headers(
    headers: &HeaderMap,
    is_masked: impl Fn(&str) -> bool,
    out: &mut Vec<u8>,
) {
    for (at, name) in headers.keys().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name.as_str(), out);
        out.push(b':');
        if is_masked(name.as_str()) {
            write_string(MASK, out);
            continue;
        }
        let mut values = headers.get_all(name).iter();
        let first = values
            .next()
            .map(|value| text(value.as_bytes()))
            .unwrap_or_default();
        write_string(
            &values.fold(first, |joined, value| {
                (joined.into_owned() + ", " + &text(value.as_bytes())).into()
            }),
            out,
        );
    }
}

fn write_query(received: &InboundRequest<'_>, credentials: Credentials, out: &mut Vec<u8>) {
    let secret = secret_parameter(received.verify);
    let is_masked = |name: &str| {
        secret == Some(name) || credentials == Credentials::Masked && is_credential(name)
    };
    write_with(
        &received.query,
        |name, value| if is_masked(name) { MASK } else { value },
        out,
    );
}

/// Writes an object of strings, or of lists of strings where a name has several values.
pub fn write_members(members: &[(String, Vec<String>)], out: &mut Vec<u8>) {
    write_with(members, |_, value| value, out);
}

/// Writes the members, each value as `shown` returns it.
fn write_with(
    members: &[(String, Vec<String>)],
    shown: impl for<'v> Fn(&str, &'v str) -> &'v str,
    out: &mut Vec<u8>,
) {
    out.push(b'{');
    for (at, (name, values)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        match values.as_slice() {
            [one] => write_string(shown(name, one), out),
            many => {
                out.push(b'[');
                for (at, value) in many.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_string(shown(name, value), out);
                }
                out.push(b']');
            }
        }
    }
    out.push(b'}');
}

/// Returns the name of the header that `verify` compares, as it is written.
fn secret_header(verify: Option<&Verify>) -> Option<&str> {
    let verify = verify?;
    match verify.scheme.as_str() {
        "token" => Some(&verify.header),
        "basic" => Some(AUTHORIZATION.as_str()),
        _ => None,
    }
}

/// Returns the name of the query parameter that `verify` compares.
fn secret_parameter(verify: Option<&Verify>) -> Option<&str> {
    let token = verify.filter(|verify| verify.scheme == "token")?;
    Some(token.query.as_str())
}

/// Decodes a header value: UTF-8, else Latin-1.
fn text(value: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value
            .iter()
            .map(|byte| char::from(*byte))
            .collect::<String>()
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn of(headers: &[(&str, &[u8])], query: &[(&str, &[&str])], verify: Option<&Verify>) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                name.parse::<HeaderName>().unwrap(),
                HeaderValue::from_bytes(value).unwrap(),
            );
        }
        let at = Timestamp::from_millis(1_769_847_300_123);
        let path_params = b"{}".as_slice();
        let members = b"".as_slice();
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let query = query
            .iter()
            .map(|(name, given)| ((*name).to_owned(), values(given)))
            .collect();
        let received = InboundRequest {
            method: &Method::POST,
            headers: &map,
            query,
            at,
            verify,
            path_params,
            members,
        };
        String::from_utf8(document(&received)).unwrap()
    }

    #[test]
    fn shows_lower_case_headers_and_query_lists() {
        assert_eq!(
            of(
                &[("X-Shop", b"eu"), ("X-Shop", b"\xfc")],
                &[("a", &["1", "2"]), ("b", &[" "])],
                None
            ),
            concat!(
                r#"{"headers":{"x-shop":"eu, ü"},"query":{"a":["1","2"],"b":" "},"method":"POST","#,
                r#""path_params":{},"received_at":"2026-01-31T08:15:00.123Z"}"#
            )
        );
    }

    #[test]
    fn a_run_may_see_what_is_masked_but_not_what_the_flow_compares() {
        let verify = Verify {
            scheme: "token".into(),
            header: "X-Shop".into(),
            ..Verify::default()
        };
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-vault-token", "Vault v4ult"),
            ("x-shop", "sh0p"),
            ("idempotency-key", "order-7"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let received = InboundRequest {
            method: &Method::POST,
            headers: &headers,
            query: vec![(
                "api_key".to_owned(),
                vec!["qu3ry".to_owned(), "abc".to_owned()],
            )],
            at: Timestamp::from_millis(0),
            verify: Some(&verify),
            path_params: b"{}",
            members: b"",
        };
        let masked = String::from_utf8(document(&received)).unwrap();
        assert!(masked.contains("order-7"), "{masked}");
        for secret in ["v4ult", "sh0p", "qu3ry"] {
            assert!(!masked.contains(secret), "{masked}");
        }
        let clear = document_with_credentials(&received).unwrap();
        assert_eq!(credentials(&clear), ["Vault v4ult", "qu3ry", "v4ult"]);
        assert!(!String::from_utf8(clear).unwrap().contains("sh0p"));
        assert!(
            document_with_credentials(&InboundRequest {
                headers: &HeaderMap::new(),
                query: Vec::new(),
                ..received
            })
            .is_none()
        );
    }

    #[test]
    fn a_flow_does_not_read_the_password_that_its_webhook_compares() {
        let verify = Verify {
            scheme: "basic".into(),
            ..Verify::default()
        };
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_static("Basic aG9vazpz"));
        let clear = |headers: &HeaderMap| {
            let clear = document_with_credentials(&InboundRequest {
                method: &Method::POST,
                headers,
                query: Vec::new(),
                at: Timestamp::from_millis(0),
                verify: Some(&verify),
                path_params: b"{}",
                members: b"",
            });
            clear.map(|document| String::from_utf8(document).unwrap())
        };
        assert_eq!(clear(&headers), None);
        headers.insert("x-api-key", HeaderValue::from_static("k"));
        let clear = clear(&headers).unwrap();
        assert!(clear.contains(r#""authorization":"********""#), "{clear}");
        assert!(clear.contains(r#""x-api-key":"k""#), "{clear}");
    }

    #[test]
    fn masks_what_opens_doors() {
        let verify = Verify {
            scheme: "token".into(),
            header: "X-Key".into(),
            query: "key".into(),
            ..Verify::default()
        };
        let document = of(
            &[
                ("Authorization", b"s3cret"),
                ("Cookie", b"s3cret"),
                ("x-key", b"s3cret"),
            ],
            &[("key", &["s3cret"]), ("a", &["1"])],
            Some(&verify),
        );
        assert!(!document.contains("s3cret"), "{document}");
        assert!(
            document.contains(r#""query":{"key":"********","a":"1"}"#),
            "{document}"
        );
    }
}
