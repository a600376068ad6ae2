//! W3C trace context: taken from the caller or begun here, and handed on to the target.

use std::borrow::Cow;

use http::HeaderMap;
use kanat_model::id::MessageId;
use uuid::Uuid;

/// The `traceparent` of a message that has come in: a span of its own in the caller's trace when that is valid, else the
/// first of a new trace whose id is the unique part of the message's id.
pub(crate) fn accept(headers: &HeaderMap, message: &MessageId) -> String {
    child(caller(headers), message)
}

/// The caller's `traceparent`, when it is valid.
pub(crate) fn caller(headers: &HeaderMap) -> Option<&str> {
    let given = headers.get("traceparent").and_then(|value| value.to_str().ok());
    given.filter(|given| parse(given).is_some())
}

/// The `traceparent` of a part of the work on a message: same trace, a span of its own.
pub(crate) fn child(traceparent: Option<&str>, message: &MessageId) -> String {
    let (trace, flags) = match traceparent.and_then(parse) {
        Some(parent) => (Cow::Borrowed(parent.trace), parent.flags),
        None => (trace_id(message), "01"),
    };
    format!("00-{trace}-{:016x}-{flags}", span_id())
}

struct Parent<'a> {
    trace: &'a str,
    flags: &'a str,
}

fn parse(text: &str) -> Option<Parent<'_>> {
    let mut parts = text.trim().split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    // A later version may append fields; this one has none.
    let whole = version != "00" || parts.next().is_none();
    let valid = hex(version, 2) && version != "ff" && id(trace, 32) && id(span, 16) && hex(flags, 2);
    (whole && valid).then_some(Parent { trace, flags })
}

fn id(text: &str, length: usize) -> bool {
    hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

fn hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn trace_id(message: &MessageId) -> Cow<'_, str> {
    match message.as_str().rsplit_once('_') {
        Some((_, unique)) if id(unique, 32) => Cow::Borrowed(unique),
        Some(_) | None => Cow::Owned(Uuid::now_v7().simple().to_string()),
    }
}

/// The random half of a UUID; its variant bits keep it from being zero.
fn span_id() -> u64 {
    Uuid::now_v7().as_u64_pair().1
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

    fn accepted(given: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", given.parse().unwrap());
        accept(&headers, &MessageId::new("msg_0198c0ffee0070008000000000000001"))
    }

    #[test]
    fn a_valid_traceparent_is_continued() {
        assert!(accepted(GIVEN).starts_with(&GIVEN[..36]) && accepted(GIVEN).ends_with("-00"), "{}", accepted(GIVEN));
        let child = child(Some(GIVEN), &MessageId::new("msg_1"));
        assert!(child.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && child.ends_with("-00"), "{child}");
        assert!(parse(&child).is_some() && !child.contains("00f067aa0ba902b7"), "{child}");
    }

    #[test]
    fn a_later_version_is_read_by_its_first_fields() {
        assert!(accepted(&format!("01{}-more", &GIVEN[2..])).starts_with(&GIVEN[..36]));
    }

    #[test]
    fn anything_else_begins_a_trace_named_after_the_message() {
        let zero = "0".repeat(32);
        for given in [
            "",
            "00",
            &format!("ff{}", &GIVEN[2..]),
            &format!("00-{zero}-00f067aa0ba902b7-01"),
            &format!("{GIVEN}-more"),
            &GIVEN.to_uppercase(),
        ] {
            let made = accepted(given);
            assert!(made.starts_with("00-0198c0ffee0070008000000000000001-") && parse(&made).is_some(), "{made}");
        }
    }
}
