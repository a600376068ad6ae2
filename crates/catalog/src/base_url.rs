//! Base URLs: their check, and how an endpoint goes under one without leaving it.

use url::Url;

/// Reads a base URL. Errors say what is wrong with it, in words that follow the field's name.
pub(crate) fn parse(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| match error {
        url::ParseError::RelativeUrlWithoutBase => {
            "is not an absolute URL: begin with http:// or https://".to_owned()
        }
        error => format!("is not an absolute URL: {error}"),
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!(
            "must begin with http:// or https://, not {}:",
            url.scheme()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not carry a user name or a password; use the auth fields".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or a fragment".to_owned());
    }
    Ok(url)
}

/// `endpoint`, a path with or without a leading slash and maybe a query, under `base`. What would
/// leave the base is an error: rendered values reach this place.
pub(crate) fn join(base: &Url, endpoint: &str) -> Result<Url, String> {
    if let Some(c) = endpoint
        .chars()
        .find(|c| c.is_control() || matches!(c, '\\' | '#'))
    {
        return Err(format!(
            "endpoint {endpoint:?} has the character {c:?}, which must be percent-encoded"
        ));
    }
    let (path, query) = match endpoint.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (endpoint, None),
    };
    if path.split('/').any(is_dot_segment) {
        return Err(format!(
            "endpoint {endpoint:?} has a segment of dots alone, which would leave its place"
        ));
    }
    if is_plain(path) && query.is_none_or(is_plain) {
        return Ok(join_plain(base, path, query));
    }
    let mut text = base.as_str().to_owned();
    if !path.is_empty() {
        text.truncate(text.trim_end_matches('/').len());
        if !path.starts_with('/') {
            text.push('/');
        }
        text.push_str(path);
    }
    if let Some(query) = query {
        text.push('?');
        text.push_str(query);
    }
    let url = Url::parse(&text)
        .map_err(|error| format!("endpoint {endpoint:?} makes no URL: {error}"))?;
    if url.origin() != base.origin() {
        return Err(format!(
            "endpoint {endpoint:?} leads away from {}",
            base.origin().ascii_serialization()
        ));
    }
    Ok(url)
}

/// Made of characters that stand for themselves in a path as in a query, so that nothing is left
/// for a URL parser to do.
fn is_plain(part: &str) -> bool {
    part.bytes().all(|c| {
        c.is_ascii_alphanumeric()
            || matches!(c, b'/' | b'-' | b'.' | b'_' | b'=' | b'&' | b'+' | b',')
    })
}

/// Spares parsing the base anew for every message. Scheme, host and port are the base's own.
fn join_plain(base: &Url, path: &str, query: Option<&str>) -> Url {
    let mut url = base.clone();
    if !path.is_empty() {
        let above = base.path().trim_end_matches('/');
        let slash = if path.starts_with('/') { "" } else { "/" };
        url.set_path(&[above, slash, path].concat());
    }
    url.set_query(query);
    url
}

/// Returns whether a segment of a path is `.` or `..`, in any spelling that URL parsers take for
/// them.
pub fn is_dot_segment(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    plain == "." || plain == ".."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(base: &str, endpoint: &str) -> Result<String, String> {
        join(&parse(base).unwrap(), endpoint).map(String::from)
    }

    #[test]
    fn puts_endpoints_under_the_base() {
        let cases = [
            (
                "https://erp.example",
                "/orders/1",
                "https://erp.example/orders/1",
            ),
            (
                "https://erp.example/",
                "orders/1",
                "https://erp.example/orders/1",
            ),
            (
                "https://erp.example/api/v2/",
                "/orders?x=1",
                "https://erp.example/api/v2/orders?x=1",
            ),
            ("https://erp.example/api", "", "https://erp.example/api"),
            (
                "https://erp.example/api",
                "?x=/../y",
                "https://erp.example/api?x=/../y",
            ),
            (
                "http://127.0.0.1:9000",
                "/a%2Fb/",
                "http://127.0.0.1:9000/a%2Fb/",
            ),
            (
                "https://erp.example",
                "//other.example/x",
                "https://erp.example//other.example/x",
            ),
            (
                "https://erp.example",
                "@other.example/x",
                "https://erp.example/@other.example/x",
            ),
            (
                "https://erp.example",
                "https://other.example/x",
                "https://erp.example/https://other.example/x",
            ),
        ];
        for (base, endpoint, expect) in cases {
            assert_eq!(joined(base, endpoint).as_deref(), Ok(expect), "{endpoint}");
        }
    }

    #[test]
    fn plain_endpoints_make_the_urls_that_a_parser_makes() {
        let endpoints = [
            "",
            "/",
            "//",
            "orders/1",
            "/a.b/..c/...",
            "/@",
            "?",
            "?a=1,2&b=+",
            "/a//b/?",
            "/x?y?z",
            "a:b/c%2F",
        ];
        for base in [
            "https://erp.example",
            "https://erp.example:8443/api//",
            "http://[::1]:9/a%20b/c",
            "http://1.2.3.4/",
        ] {
            for endpoint in endpoints {
                let normal = parse(base).unwrap();
                let (above, slash) = match endpoint.as_bytes().first() {
                    None | Some(b'?') => (normal.as_str(), ""),
                    Some(b'/') => (normal.as_str().trim_end_matches('/'), ""),
                    Some(_) => (normal.as_str().trim_end_matches('/'), "/"),
                };
                let expect = Url::parse(&format!("{above}{slash}{endpoint}")).unwrap();
                assert_eq!(join(&normal, endpoint), Ok(expect), "{base} {endpoint}");
            }
        }
    }

    #[test]
    fn refuses_what_leaves_the_base() {
        for endpoint in [
            "/orders/..",
            "/orders/%2e%2E/x",
            "/./x",
            "..",
            "/a\\b",
            "/a\nb",
            "/a#b",
        ] {
            assert!(
                joined("https://erp.example/api", endpoint).is_err(),
                "{endpoint}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_base() {
        let cases = [
            (
                "erp.example",
                "not an absolute URL: begin with http:// or https://",
            ),
            (
                "127.0.0.1:9100",
                "not an absolute URL: begin with http:// or https://",
            ),
            ("ftp://erp.example", "http:// or https://"),
            ("file:///etc/passwd", "http:// or https://"),
            ("https://user:pass@erp.example", "user name"),
            ("https://erp.example/#x", "fragment"),
            ("https://erp.example/?x=1", "query"),
            ("https://", "not an absolute URL"),
        ];
        for (text, expect) in cases {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expect), "{text}: {error}");
        }
    }
}
