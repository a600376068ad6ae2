//! Calls in traces: JSON with a truncated body and masked secrets.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use kanat_catalog::MASK;
use kanat_mapping::json::{self, write_string};
use kanat_model::media_type;
use url::Url;

use crate::Mask;
use crate::request::masked;

/// Headers whose values are never shown.
const SENSITIVE: [&str; 9] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
    "x-webhook-token",
];

/// Size of a body in a trace, in bytes.
const BODY_LIMIT: usize = 16 << 10;

/// Length of a URL, and of the body of an answer, in an error, in characters.
const URL_CHARACTERS: usize = 2000;
const BEGINNING_CHARACTERS: usize = 200;

/// Returns `{method, url, headers, body}`.
pub fn request(
    method: &Method,
    url: &Url,
    headers: &HeaderMap,
    body: &[u8],
    mask: &Mask,
) -> String {
    let mut out = Vec::with_capacity(256 + body.len().min(BODY_LIMIT));
    out.extend_from_slice(b"{\"method\":");
    write_string(method.as_str(), &mut out);
    out.extend_from_slice(b",\"url\":");
    write_string(&mask.apply(url.as_str()), &mut out);
    write_rest(headers, body, Extent::Whole, mask, &mut out);
    text(out)
}

/// How much of a body is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// There is more than is here.
    Beginning,
}

/// Parts of an answer that a trace shows.
#[derive(Debug, Clone, Copy)]
pub struct ResponseView<'a> {
    pub status: u16,
    pub headers: &'a HeaderMap,
    pub body: &'a [u8],
    pub extent: Extent,
}

/// Returns `{status, headers, body}`.
pub fn response(response: &ResponseView<'_>, mask: &Mask) -> String {
    let mut out = Vec::with_capacity(256 + response.body.len().min(BODY_LIMIT));
    out.extend_from_slice(b"{\"status\":");
    out.extend_from_slice(response.status.to_string().as_bytes());
    write_rest(
        response.headers,
        response.body,
        response.extent,
        mask,
        &mut out,
    );
    text(out)
}

/// Returns a text in UTF-8 with the mask in the place of every secret; shares the bytes of a text
/// without one.
pub fn shown(text: &Bytes, mask: &Mask) -> Bytes {
    match std::str::from_utf8(text).map(|text| mask.apply(text)) {
        Ok(Cow::Owned(masked)) => masked.into(),
        Ok(Cow::Borrowed(_)) | Err(_) => text.clone(),
    }
}

/// Returns `<METHOD> <url>` of a request as [`request`] shows it.
pub fn method_and_url(shown: &str) -> String {
    let text = |name| {
        json::member(shown, name)
            .map(json::decode)
            .unwrap_or_default()
    };
    let url = text("url");
    let cut = url
        .char_indices()
        .nth(URL_CHARACTERS)
        .map_or(url.len(), |(at, _)| at);
    let more = if cut < url.len() { "…" } else { "" };
    format!("{} {}{more}", text("method"), &url[..cut])
}

/// Returns `<status>: <the first characters of the body>` on one line, or the status alone where
/// there is no body.
pub fn beginning(response: &ResponseView<'_>, mask: &Mask) -> String {
    let body = response.body.trim_ascii_start();
    let head = String::from_utf8_lossy(&body[..body.len().min(beginning_bytes(mask))]);
    let characters = head
        .char_indices()
        .nth(BEGINNING_CHARACTERS)
        .map_or(head.len(), |(at, _)| at);
    let end = shown_bytes(head.len(), characters, response.extent, mask);
    let begun: String = mask
        .apply_to_beginning(&head, end)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let redirect = redirect(response, mask);
    match begun.trim() {
        "" => format!("{}{redirect}", response.status),
        begun => format!("{}{redirect}: {begun}", response.status),
    }
}

/// Returns the number of bytes of a body that [`beginning`] needs.
pub fn beginning_bytes(mask: &Mask) -> usize {
    4 * BEGINNING_CHARACTERS + mask.reach()
}

/// Returns the number of bytes of a text that may be shown, at most `limit`. The end of a truncated
/// text may be the beginning of a secret.
fn shown_bytes(length: usize, limit: usize, extent: Extent, mask: &Mask) -> usize {
    let whole = match extent {
        Extent::Beginning => length.saturating_sub(mask.reach()),
        Extent::Whole => length,
    };
    whole.min(limit)
}

/// Returns where a redirect leads, which is not followed, without the query; empty for other
/// answers.
fn redirect(response: &ResponseView<'_>, mask: &Mask) -> String {
    let location = response
        .headers
        .get(header::LOCATION)
        .and_then(|location| location.to_str().ok());
    match location {
        Some(location) if (300..400).contains(&response.status) => {
            let masked = mask.apply(location);
            let place = masked.split(['?', '#']).next().unwrap_or_default();
            let place: String = place.chars().take(BEGINNING_CHARACTERS).collect();
            format!(" (redirects are not followed; this one leads to {place})")
        }
        Some(_) | None => String::new(),
    }
}

fn write_rest(headers: &HeaderMap, body: &[u8], extent: Extent, mask: &Mask, out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"headers\":{");
    write_headers(headers, mask, out);
    out.push(b'}');
    if !body.is_empty() {
        out.extend_from_slice(b",\"body\":");
        let cut = write_body(headers, body, extent, mask, out);
        if cut || extent == Extent::Beginning {
            out.extend_from_slice(b",\"truncated\":true");
        }
    }
    out.push(b'}');
}

fn write_headers(headers: &HeaderMap, mask: &Mask, out: &mut Vec<u8>) {
    for (at, (name, value)) in headers.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_string(name.as_str(), out);
        out.push(b':');
        if value.is_sensitive() || SENSITIVE.contains(&name.as_str()) {
            write_string(MASK, out);
        } else {
            write_string(&mask.apply(&String::from_utf8_lossy(value.as_bytes())), out);
        }
    }
}

/// Writes a body: JSON verbatim, anything else as a string. Returns whether the body was truncated.
fn write_body(
    headers: &HeaderMap,
    body: &[u8],
    extent: Extent,
    mask: &Mask,
    out: &mut Vec<u8>,
) -> bool {
    let shown = shown_bytes(body.len(), BODY_LIMIT, extent, mask);
    let cut = shown < body.len();
    let head = String::from_utf8_lossy(&body[..body.len().min(shown + mask.reach())]);
    let masked = mask.apply_to_beginning(&head, if cut { shown } else { head.len() });
    let untouched = !cut && matches!(masked, Cow::Borrowed(_));
    if untouched && declares_json(headers) && json::check(body, json::MAX_DEPTH).is_ok() {
        out.extend_from_slice(body);
    } else {
        write_string(&masked, out);
    }
    cut
}

/// Returns the values of headers that are never shown, as far as they are long enough to be masked.
pub fn sensitive_values(headers: &HeaderMap) -> Vec<String> {
    let sensitive = headers
        .iter()
        .filter(|(name, _)| SENSITIVE.contains(&name.as_str()));
    masked(
        sensitive
            .filter_map(|(_, value)| Some(value.to_str().ok()?.to_owned()))
            .collect(),
    )
}

/// Returns whether headers declare a body to be JSON. Only such a body is shown as JSON.
pub fn declares_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type
        .and_then(|value| value.to_str().ok())
        .is_some_and(media_type::is_json)
}

/// Converts the output to a string. It is UTF-8: every part came from a `str` or passed the JSON
/// check.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn shows_json_as_it_is_and_text_as_a_string() {
        let mask = Mask::new(&[]);
        let url: Url = "https://erp.example/orders?a=1".parse().unwrap();
        let sent = headers(&[("content-type", "application/json"), ("x-a", "1")]);
        assert_eq!(
            request(&Method::POST, &url, &sent, br#"{"n": 1.10}"#, &mask),
            concat!(
                r#"{"method":"POST","url":"https://erp.example/orders?a=1","headers":"#,
                r#"{"content-type":"application/json","x-a":"1"},"body":{"n": 1.10}}"#
            )
        );
        let answered = headers(&[("content-type", "text/plain")]);
        let got = ResponseView {
            status: 503,
            headers: &answered,
            body: b"busy \xff",
            extent: Extent::Beginning,
        };
        assert_eq!(
            response(&got, &mask),
            "{\"status\":503,\"headers\":{\"content-type\":\"text/plain\"},\"body\":\"busy \
             \u{fffd}\",\"truncated\":true}"
        );
    }

    #[test]
    fn shows_the_json_of_every_type_of_json_as_it_is() {
        for declared in [
            "Application/JSON; charset=utf-8",
            "text/json",
            "application/Problem+JSON",
        ] {
            let headers = headers(&[("content-type", declared)]);
            let got = ResponseView {
                status: 200,
                headers: &headers,
                body: b"[1.10]",
                extent: Extent::Whole,
            };
            let shown = response(&got, &Mask::new(&[]));
            assert!(shown.ends_with(r#""body":[1.10]}"#), "{shown}");
        }
    }

    #[test]
    fn an_error_shows_the_call_and_the_beginning_of_the_answer() {
        let mask = Mask::new(&["s3cret".to_owned()]);
        let url: Url = "https://erp.example/in?key=s3cret".parse().unwrap();
        let shown = request(&Method::POST, &url, &HeaderMap::new(), b"{}", &mask);
        assert_eq!(
            method_and_url(&shown),
            "POST https://erp.example/in?key=********"
        );
        let answered = |status, body: &str| {
            let body = body.as_bytes();
            let headers = HeaderMap::new();
            beginning(
                &ResponseView {
                    status,
                    headers: &headers,
                    body,
                    extent: Extent::Whole,
                },
                &mask,
            )
        };
        assert_eq!(
            answered(500, "{\n  \"error\": \"s3cret\"\n}\n"),
            "500: {   \"error\": \"********\" }"
        );
        assert_eq!(answered(503, " \n"), "503");
        let long = answered(500, &format!("{}s3cret", "ü".repeat(197)));
        assert_eq!(long, format!("500: {}********", "ü".repeat(197)));
    }

    #[test]
    fn an_error_says_where_a_redirect_leads() {
        let mask = Mask::new(&["s3cret".to_owned()]);
        let headers = headers(&[("location", "https://erp.example/s3cret/new?token=7")]);
        let answered = |status| {
            let body = b"Moved";
            beginning(
                &ResponseView {
                    status,
                    headers: &headers,
                    body,
                    extent: Extent::Whole,
                },
                &mask,
            )
        };
        let place = "https://erp.example/********/new";
        assert_eq!(
            answered(302),
            format!("302 (redirects are not followed; this one leads to {place}): Moved")
        );
        assert_eq!(answered(201), "201: Moved");
    }

    #[test]
    fn cuts_bodies_and_hides_secrets_even_across_the_cut() {
        let mask = Mask::new(&["s3cret".to_owned()]);
        let mut body = vec![b'x'; BODY_LIMIT - 3];
        body.extend_from_slice(b"s3cret and more");
        let url: Url = "https://erp.example/?key=s3cret".parse().unwrap();
        let sent = headers(&[
            ("authorization", "Bearer t"),
            ("x-mine", "a s3cret b"),
            ("content-type", "application/json"),
        ]);
        let shown = request(&Method::POST, &url, &sent, &body, &mask);
        assert!(
            !shown.contains("s3c") && !shown.contains("Bearer t"),
            "{shown}"
        );
        assert!(shown.contains("\"truncated\":true") && shown.len() < BODY_LIMIT + 400);
        let json = request(&Method::POST, &url, &sent, br#"{"a":"s3cret"}"#, &mask);
        assert!(
            json.ends_with(r#""body":"{\"a\":\"********\"}"}"#),
            "{json}"
        );
    }

    #[test]
    fn what_masks_save_brings_nothing_into_view() {
        let token = "t0ken-".repeat(20);
        let longer = format!("{token}{}", "A".repeat(150));
        let mask = Mask::new(&[token.clone(), longer.clone()]);
        let headers = HeaderMap::new();
        let places = (0..800).chain(BODY_LIMIT - 800..BODY_LIMIT);
        for place in places.step_by(7) {
            let padding = "x".repeat(place.saturating_sub(3 * token.len()));
            let body = format!("{token}{token}{token}{padding}{longer}{}", "y".repeat(600));
            let answered = |body, extent| ResponseView {
                status: 500,
                headers: &headers,
                body,
                extent,
            };
            for body in [body.as_bytes(), &body.as_bytes()[..body.len() - 700]] {
                for text in [
                    response(&answered(body, Extent::Beginning), &mask),
                    beginning(&answered(body, Extent::Beginning), &mask),
                ] {
                    assert!(!text.contains("t0k"), "{place}: {text}");
                }
            }
            let text = beginning(&answered(body.as_bytes(), Extent::Whole), &mask);
            assert!(!text.contains("t0k"), "{place}: {text}");
        }
    }
}
