//! Entry points of the fuzz targets to the parsers of the data plane. Each panics only where a
//! promise does not hold.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use kanat_engine::form;
use kanat_mapping::json;
use kanat_model::Timestamp;
use kanat_proto::plan::v1::Verify;
use url::Url;

use crate::ingress::verify;
use crate::payload;
use crate::poll;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

/// Proves the sender of a webhook and reads its body. The first line names the scheme; headers
/// follow, one a line, and the body after an empty line.
pub fn webhook(input: &[u8]) {
    let (head, body) = divide(input, b"\n\n");
    let (scheme, lines) = divide(head, b"\n");
    let scheme = String::from_utf8_lossy(scheme).into_owned();
    let headers = headers(lines);
    let verify = Verify {
        scheme,
        secrets: vec!["secret".to_owned(), "whsec_c2VjcmV0".to_owned()],
        header: "x-signature".to_owned(),
        prefix: "sha256=".to_owned(),
        verify_token: "token".to_owned(),
        username: "user".to_owned(),
        password: "password".to_owned(),
        ..Verify::default()
    };
    let credentials = verify::Credentials::resolve(&verify, None, b"", NOW);
    let query = headers
        .get("x-query")
        .and_then(|query| query.to_str().ok())
        .unwrap_or_default();
    let inbound = verify::Inbound {
        headers: &headers,
        query,
        body,
        now: NOW,
    };
    let _ = verify::check(&verify, &credentials, &inbound);
    let _ = verify::challenge(&credentials, query);
    let _ = verify::url_verification(body);
    let content_type = headers
        .get("content-type")
        .and_then(|value| value.to_str().ok());
    let body = Bytes::copy_from_slice(body);
    if let Ok(payload) = payload::payload(content_type, &body) {
        let payload = payload.unwrap_or(body.clone());
        assert!(
            json::check(&payload, json::MAX_DEPTH).is_ok(),
            "an accepted payload is JSON: {payload:?}"
        );
    }
    let _ = payload::of_call(content_type, &body);
    let _ = form::members(query.as_bytes());
}

/// Finds the next page in `Link` headers, one a line.
pub fn link(input: &[u8]) {
    let base = Url::parse("https://api.example.com/orders?page=1").expect("it is a URL");
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        headers.extend(
            HeaderValue::from_bytes(line)
                .ok()
                .map(|value| (http::header::LINK, value)),
        );
    }
    if let Ok(Some(next)) = poll::link_next(&headers, &base) {
        assert!(
            matches!(next.scheme(), "http" | "https"),
            "{next} can be asked for"
        );
    }
}

/// Finds the records of a poll's answer, whole and in pieces. The first line has the paths of the
/// records and of the value that leads on, separated by a blank.
pub fn poll_page(input: &[u8]) {
    let (paths, body) = divide(input, b"\n");
    let paths = String::from_utf8_lossy(paths);
    let (records, value) = paths.split_once(' ').unwrap_or((&paths, ""));
    let whole = poll::found(body, records, value, body.len().max(1));
    for size in [1, 2, 7] {
        assert_eq!(
            poll::found(body, records, value, size),
            whole,
            "in pieces of {size}"
        );
    }
    for record in whole.iter().flat_map(|(records, _)| records) {
        assert!(
            json::check(record, json::MAX_DEPTH).is_ok(),
            "a record is JSON: {record:?}"
        );
    }
}

fn divide<'i>(input: &'i [u8], by: &[u8]) -> (&'i [u8], &'i [u8]) {
    match input.windows(by.len()).position(|window| window == by) {
        Some(at) => (&input[..at], &input[at + by.len()..]),
        None => (input, &[]),
    }
}

/// Reads `name: value` lines, and leaves out what is no header.
fn headers(lines: &[u8]) -> HeaderMap {
    let header = |line: &[u8]| {
        let (name, value) = divide(line, b": ");
        Some((
            HeaderName::from_bytes(name).ok()?,
            HeaderValue::from_bytes(value).ok()?,
        ))
    };
    lines
        .split(|byte| *byte == b'\n')
        .filter_map(header)
        .collect()
}
