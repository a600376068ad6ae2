//! The document that expressions see as `trigger`: headers, query, method and time of the request. What would let its
//! reader act as the sender is masked before it is stored.

use http::{HeaderMap, Method, header};
use kanat_catalog::MASK;
use kanat_mapping::json::write_string;
use kanat_model::Timestamp;
use kanat_proto::plan::v1::Verify;

const SENSITIVE: [&str; 8] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
    "x-webhook-token",
];

/// The parts of a request that become the document.
#[derive(Debug)]
pub struct Received<'a> {
    pub method: &'a Method,
    pub headers: &'a HeaderMap,
    /// The values of each parameter, by name.
    pub query: Vec<(String, Vec<String>)>,
    pub at: Timestamp,
    /// Its header or query parameter may be the secret itself.
    pub verify: Option<&'a Verify>,
    /// What the parameters of the path stand for, as a JSON object.
    pub path_params: &'a [u8],
    /// What else there is to know, as members of the document in JSON, separated by commas.
    pub members: &'a [u8],
}

/// Returns the document as JSON.
pub fn document(received: Received<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"headers\":{");
    write_headers(&received, &mut out);
    out.extend_from_slice(b"},\"query\":");
    write_query(received.query, received.verify, &mut out);
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

/// Whether a header's value may not be shown. The name is in lower case.
pub fn is_sensitive(name: &str) -> bool {
    SENSITIVE.contains(&name) || name == header::SET_COOKIE.as_str()
}

fn write_headers(received: &Received<'_>, out: &mut Vec<u8>) {
    let secret = token_place(received.verify).map(|verify| verify.header.to_ascii_lowercase());
    for (at, name) in received.headers.keys().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name.as_str(), out);
        out.push(b':');
        if is_sensitive(name.as_str()) || secret.as_deref() == Some(name.as_str()) {
            write_string(MASK, out);
            continue;
        }
        let mut values = received.headers.get_all(name).iter();
        let first = values.next().map(|value| text(value.as_bytes())).unwrap_or_default();
        write_string(
            &values.fold(first, |joined, value| (joined.into_owned() + ", " + &text(value.as_bytes())).into()),
            out,
        );
    }
}

fn write_query(mut members: Vec<(String, Vec<String>)>, verify: Option<&Verify>, out: &mut Vec<u8>) {
    if let Some(verify) = token_place(verify) {
        for (_, values) in members.iter_mut().filter(|(name, _)| *name == verify.query) {
            values.fill(MASK.to_owned());
        }
    }
    write_members(&members, out);
}

/// Writes an object of strings, or of lists of strings where a name has several values.
pub fn write_members(members: &[(String, Vec<String>)], out: &mut Vec<u8>) {
    out.push(b'{');
    for (at, (name, values)) in members.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name, out);
        out.push(b':');
        match values.as_slice() {
            [one] => write_string(one, out),
            many => {
                out.push(b'[');
                for (at, value) in many.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_string(value, out);
                }
                out.push(b']');
            }
        }
    }
    out.push(b'}');
}

fn token_place(verify: Option<&Verify>) -> Option<&Verify> {
    verify.filter(|verify| verify.scheme == "token")
}

/// A header value is bytes; those that are no UTF-8 are read as Latin-1.
fn text(value: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(value) {
        Ok(text) => text.into(),
        Err(_) => value.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    fn of(headers: &[(&str, &[u8])], query: &[(&str, &[&str])], verify: Option<&Verify>) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name.parse::<HeaderName>().unwrap(), HeaderValue::from_bytes(value).unwrap());
        }
        let at = Timestamp::from_millis(1_769_847_300_123);
        let (path_params, members) = (b"{}".as_slice(), b"".as_slice());
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect();
        let query = query.iter().map(|(name, given)| ((*name).to_owned(), values(given))).collect();
        let received = Received { method: &Method::POST, headers: &map, query, at, verify, path_params, members };
        String::from_utf8(document(received)).unwrap()
    }

    #[test]
    fn shows_lower_case_headers_and_query_lists() {
        assert_eq!(
            of(&[("X-Shop", b"eu"), ("X-Shop", b"\xfc")], &[("a", &["1", "2"]), ("b", &[" "])], None),
            r#"{"headers":{"x-shop":"eu, ü"},"query":{"a":["1","2"],"b":" "},"method":"POST","path_params":{},"received_at":"2026-01-31T08:15:00.123Z"}"#
        );
    }

    #[test]
    fn masks_what_opens_doors() {
        let verify =
            Verify { scheme: "token".into(), header: "X-Key".into(), query: "key".into(), ..Verify::default() };
        let document = of(
            &[("Authorization", b"s3cret"), ("Cookie", b"s3cret"), ("x-key", b"s3cret")],
            &[("key", &["s3cret"]), ("a", &["1"])],
            Some(&verify),
        );
        assert!(!document.contains("s3cret"), "{document}");
        assert!(document.contains(r#""query":{"key":"********","a":"1"}"#), "{document}");
    }
}
