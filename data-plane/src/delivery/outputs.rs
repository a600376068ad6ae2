//! Answers in expressions: conversion of an answer to an output, and the documents that expressions
//! see as `steps` and as `response`.

use bytes::Bytes;
use http::header;
use kanat_engine::{RESPONSE_BODY_LIMIT, response_document};
use kanat_mapping::json::write_string;
use kanat_message_log::Step;
use kanat_net::outbound::Response;

use crate::payload::{PayloadError, payload};

/// Converts the body of an answer to JSON by the rules for inbound bodies.
///
/// # Errors
/// The body contradicts its content type.
pub(crate) fn read_answer(answer: &Response) -> Result<Bytes, PayloadError> {
    if answer.body.iter().all(u8::is_ascii_whitespace) {
        return Ok(Bytes::from_static(b"null"));
    }
    let declared = answer
        .headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    Ok(payload(declared, &answer.body)?.unwrap_or_else(|| answer.body.clone()))
}

/// Converts the body of an answer to JSON by the rules for inbound bodies. A body that contradicts
/// its content type becomes a string.
pub(crate) fn of_answer(answer: &Response) -> Bytes {
    let read = read_answer(answer).or_else(|_| {
        payload(Some("text/plain"), &answer.body)
            .map(|text| text.unwrap_or_else(|| answer.body.clone()))
    });
    read.unwrap_or_else(|_| answer.body.clone())
}

/// Returns the value of `response` in expressions.
pub(crate) fn response(answer: &Response) -> Vec<u8> {
    let is_whole = !answer.truncated && answer.body.len() <= RESPONSE_BODY_LIMIT;
    let body = is_whole.then(|| of_answer(answer));
    response_document(answer.status, &answer.headers, body.as_deref())
}

/// Returns `{name: {output, status}}`; empty before any step has succeeded.
pub(crate) fn document(steps: &[Step]) -> Bytes {
    if steps.is_empty() {
        return Bytes::new();
    }
    let mut out = Vec::with_capacity(
        steps
            .iter()
            .map(|step| step.name.len() + step.output.len() + 32)
            .sum(),
    );
    for step in steps {
        out.push(if out.is_empty() { b'{' } else { b',' });
        write_string(&step.name, &mut out);
        out.extend_from_slice(b":{\"output\":");
        out.extend_from_slice(&step.output);
        out.extend_from_slice(format!(",\"status\":{}}}", step.status).as_bytes());
    }
    out.push(b'}');
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_steps_stand_under_their_names() {
        let step = |name: &str, output: &'static str| Step {
            name: name.into(),
            status: 200,
            output: output.into(),
        };
        assert_eq!(
            document(&[step("a", "1.10"), step("b\"", "{}")]),
            r#"{"a":{"output":1.10,"status":200},"b\"":{"output":{},"status":200}}"#
        );
        assert_eq!(document(&[]), "");
    }

    #[test]
    fn an_answer_becomes_json() {
        let of = |content_type: &str, body: &'static [u8]| {
            let mut headers = http::HeaderMap::new();
            if !content_type.is_empty() {
                headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            }
            of_answer(&Response {
                status: 200,
                headers,
                body: Bytes::from_static(body),
                truncated: false,
            })
        };
        assert_eq!(
            of("application/json", br#"{"id": 1.10}"#),
            r#"{"id": 1.10}"#
        );
        assert_eq!(of("", b"[1]"), "[1]");
        assert_eq!(of("application/json", b" "), "null");
        assert_eq!(of("", b""), "null");
        assert_eq!(of("text/plain", b"ok \"1\""), r#""ok \"1\"""#);
        assert_eq!(of("application/json", b"{broken"), r#""{broken""#);
        assert_eq!(of("image/png", b"\xff\x00"), r#"{"base64":"/wA="}"#);
        let mut headers = http::HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, "application/json".parse().unwrap());
        let broken = read_answer(&Response {
            status: 200,
            headers,
            body: Bytes::from_static(b"{\"name\":"),
            truncated: false,
        });
        let message = broken.unwrap_err().to_string();
        assert!(message.contains("line 1, column 9"), "{message}");
    }
}
