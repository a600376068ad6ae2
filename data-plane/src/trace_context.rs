//! W3C trace context: taken from the caller or created here, and passed on to the target. A message
//! keeps its context as `<traceparent>`, followed by a space and the `tracestate` if its caller
//! sent one.

use std::borrow::Cow;

use http::HeaderMap;
use kanat_model::id::MessageId;
use uuid::Uuid;

/// Size of the longest `tracestate` that is passed on, in bytes.
const MAX_STATE_BYTES: usize = 1024;

/// Returns the context of a new message: a span in the caller's trace when that is valid, else the
/// first span of a trace whose id is the unique part of the message's id.
pub(crate) fn accept(headers: &HeaderMap, message: &MessageId) -> String {
    let caller = caller(headers);
    let own = child(caller, message);
    match caller {
        Some(_) if headers.contains_key("tracestate") => with_state(own, &states(headers)),
        Some(_) | None => own,
    }
}

/// Returns the caller's `traceparent`, if it is valid.
pub(crate) fn caller(headers: &HeaderMap) -> Option<&str> {
    let given = headers
        .get("traceparent")
        .and_then(|value| value.to_str().ok());
    given.filter(|given| !given.trim().contains(' ') && parse(given).is_some())
}

/// Returns the `traceparent` of a context.
pub(crate) fn parent(context: &str) -> &str {
    context
        .split_once(' ')
        .map_or(context, |(parent, _)| parent)
}

/// Returns the `tracestate` of a context whose `traceparent` is valid.
pub(crate) fn state(context: &str) -> Option<&str> {
    let (_, state) = context.split_once(' ')?;
    parse(context).map(|_| state)
}

/// Returns a context with this `tracestate`, unless it is empty or too long.
pub(crate) fn with_state(traceparent: String, state: &str) -> String {
    match state.len() {
        1..=MAX_STATE_BYTES => format!("{traceparent} {state}"),
        _ => traceparent,
    }
}

/// Joins all headers of the name into one list.
fn states(headers: &HeaderMap) -> String {
    let states = headers
        .get_all("tracestate")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::trim);
    states
        .filter(|state| !state.is_empty())
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns the `traceparent` of a new span in the trace of a message.
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
    let mut parts = parent(text.trim()).split('-');
    let version = parts.next()?;
    let trace = parts.next()?;
    let span = parts.next()?;
    let flags = parts.next()?;
    // A later version may append fields; version 00 has none.
    let whole = version != "00" || parts.next().is_none();
    let valid =
        hex(version, 2) && version != "ff" && id(trace, 32) && id(span, 16) && hex(flags, 2);
    (whole && valid).then_some(Parent { trace, flags })
}

fn id(text: &str, length: usize) -> bool {
    hex(text, length) && text.bytes().any(|byte| byte != b'0')
}

fn hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn trace_id(message: &MessageId) -> Cow<'_, str> {
    match message.as_str().rsplit_once('_') {
        Some((_, unique)) if id(unique, 32) => Cow::Borrowed(unique),
        Some(_) | None => Cow::Owned(Uuid::now_v7().simple().to_string()),
    }
}

/// Returns the random half of a UUID. Its variant bits make it nonzero.
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
        accept(
            &headers,
            &MessageId::new("msg_0198c0ffee0070008000000000000001"),
        )
    }

    #[test]
    fn a_valid_traceparent_is_continued() {
        assert!(
            accepted(GIVEN).starts_with(&GIVEN[..36]) && accepted(GIVEN).ends_with("-00"),
            "{}",
            accepted(GIVEN)
        );
        let child = child(Some(GIVEN), &MessageId::new("msg_1"));
        assert!(
            child.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && child.ends_with("-00"),
            "{child}"
        );
        assert!(
            parse(&child).is_some() && !child.contains("00f067aa0ba902b7"),
            "{child}"
        );
    }

    #[test]
    fn the_state_of_a_valid_trace_is_kept_and_no_part_of_the_parent() {
        let accepted = |parent: &str, states: &[&str]| {
            let mut headers = HeaderMap::new();
            headers.insert("traceparent", parent.parse().unwrap());
            for state in states {
                headers.append("tracestate", state.parse().unwrap());
            }
            accept(&headers, &MessageId::new("msg_1"))
        };
        let context = accepted(GIVEN, &["vendor=a:1 ", "", "other=b"]);
        assert_eq!(state(&context), Some("vendor=a:1,other=b"));
        assert!(
            parent(&context).starts_with(&GIVEN[..36]) && parent(&context).len() == GIVEN.len(),
            "{context}"
        );
        let child = child(Some(&context), &MessageId::new("msg_1"));
        assert!(
            child.starts_with(&GIVEN[..36]) && child.len() == GIVEN.len(),
            "{child}"
        );
        assert_eq!(state(&accepted("none", &["vendor=a"])), None);
        assert_eq!(
            state(&accepted(GIVEN, &[&"x".repeat(MAX_STATE_BYTES + 1)])),
            None
        );
        assert_eq!(state(&format!("{} vendor=a", GIVEN.to_uppercase())), None);
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
            assert!(
                made.starts_with("00-0198c0ffee0070008000000000000001-") && parse(&made).is_some(),
                "{made}"
            );
        }
    }
}
