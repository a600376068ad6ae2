//! Response to a caller that waits for the outcome of a run: built, validated and recorded with the
//! message.

use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kanat_engine::exchange::{self, Extent, ResponseView};
use kanat_engine::{Mask, ResponseParts, TargetAnswer};
use kanat_mapping::json;
use kanat_model::media_type;
use kanat_model::message::{ErrorKind, Failure};
use kanat_model::published_api::Validation;
use kanat_net::outbound::Response;
use kanat_schema::Violation;

use super::{Run, outputs};
use crate::plans::published::ResponseMapping;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Outcome of a run for its caller.
#[derive(Debug)]
pub(crate) enum CallOutcome {
    Response(CallResponse),
    /// The flow's condition was false.
    Filtered,
    /// A part of the flow failed.
    Failed(ErrorKind),
    /// The flow ran, but its response does not fit the API.
    InvalidResponse,
    /// A connector takes no calls at present; nothing was started.
    Unavailable,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A response body as it is validated and as it is sent.
struct Body {
    json: Bytes,
    /// Bytes and content type of a body that is not JSON.
    other: Option<(Bytes, HeaderValue)>,
}

impl Run<'_> {
    /// Builds the response to a run that succeeded.
    ///
    /// # Errors
    /// The response cannot be built, or does not fit the API.
    pub(super) async fn answer(
        &mut self,
        response_mapping: &ResponseMapping,
    ) -> Result<CallResponse, Failure> {
        let begun = Instant::now();
        let built = match &response_mapping.mapping {
            Some(mapping) => {
                let target = if mapping.reads_target() {
                    self.target_document(response_mapping)?
                } else {
                    Vec::new()
                };
                let response = if mapping.reads_response() {
                    // The document of the target has the same body, with the same faults.
                    if !mapping.reads_target() {
                        self.target_body(response_mapping)?;
                    }
                    self.response_document()
                } else {
                    Vec::new()
                };
                self.evaluate(|program, input, resources| {
                    let answered = TargetAnswer {
                        target: &target,
                        response: &response,
                    };
                    program.answer(mapping, input, answered, resources)
                })
                .await
            }
            None => Ok(ResponseParts {
                status: StatusCode::OK,
                headers: HeaderMap::new(),
                body: None,
            }),
        };
        let ResponseParts {
            status,
            mut headers,
            body,
        } = match built {
            Ok(built) => built,
            Err(failure) => {
                let message = self.mask.apply(&failure.message).into_owned();
                let message = self.unfit("answered", "responseMapping", message);
                return Err(Failure { message, ..failure });
            }
        };
        let body = match body {
            Some(json) => mapped(json.into(), headers.get(header::CONTENT_TYPE)),
            None => self.own_output(response_mapping)?,
        };
        if let Some(Err(violations)) = response_mapping
            .schema
            .as_ref()
            .map(|schema| schema.validate(&body.json))
        {
            if response_mapping.validation == Validation::Strict {
                let message = self.unfit("validated", "responseSchema", words(&violations));
                return Err(Failure {
                    kind: ErrorKind::Validation,
                    message,
                    field: Some("responseSchema".to_owned()),
                    expression: None,
                });
            }
            self.trace
                .warned("validated", "responseSchema", words(&violations));
        }
        let (body, content_type) = body.other.unwrap_or((body.json, JSON));
        headers.entry(header::CONTENT_TYPE).or_insert(content_type);
        let body = if is_bare(status) {
            headers.remove(header::CONTENT_TYPE);
            Bytes::new()
        } else {
            body
        };
        let shown = Response {
            status: status.as_u16(),
            headers,
            body,
            truncated: false,
        };
        self.trace.answered(begun, self::shown(&shown, &self.mask));
        Ok(CallResponse {
            status,
            headers: shown.headers,
            body: shown.body,
        })
    }

    /// Records that there is no response for the caller. Returns the error of the message.
    fn unfit(&mut self, stage: &'static str, name: &str, reason: String) -> String {
        let message = format!("delivered, but the caller got 502: {name}: {reason}");
        self.trace.failed(stage, name, reason);
        message
    }

    /// Returns the default body: the output of the mapping, else the body of the target, else the
    /// output of the last step, else the payload.
    fn own_output(&mut self, response_mapping: &ResponseMapping) -> Result<Body, Failure> {
        if let Some(mapped) = &self.mapped {
            return Ok(Body {
                json: mapped.clone(),
                other: None,
            });
        }
        let json = self.target_body(response_mapping)?;
        if let Some((response, json)) = self.response.as_ref().zip(json) {
            let is_json =
                json == response.body || response.body.iter().all(u8::is_ascii_whitespace);
            let content_type = response.headers.get(header::CONTENT_TYPE).cloned();
            let other = content_type
                .filter(|_| !is_json)
                .map(|content_type| (response.body.clone(), content_type));
            return Ok(Body { json, other });
        }
        let last = self.work.steps.last().map(|step| step.output.clone());
        Ok(Body {
            json: last.unwrap_or_else(|| self.payload.clone()),
            other: None,
        })
    }

    /// Returns the body of the target's answer as JSON, if there was one. One that contradicts its
    /// content type is a text for an API that is not strict.
    ///
    /// # Errors
    /// The body contradicts its content type, and the API is strict.
    fn target_body(
        &mut self,
        response_mapping: &ResponseMapping,
    ) -> Result<Option<Bytes>, Failure> {
        let Some(response) = &self.response else {
            return Ok(None);
        };
        let error = match outputs::read_answer(response) {
            Ok(body) => return Ok(Some(body)),
            Err(error) => error,
        };
        let status = response.status;
        let text = outputs::of_answer(response);
        let reason = format!("the answer {status} contradicts its content type: {error}");
        let reason = self.mask.apply(&reason).into_owned();
        if response_mapping.validation == Validation::Strict {
            return Err(Failure {
                field: Some("target.response.body".to_owned()),
                ..Failure::new(
                    ErrorKind::Validation,
                    self.unfit("answered", "target", reason),
                )
            });
        }
        self.trace.warned("answered", "target", reason);
        Ok(Some(text))
    }

    /// Returns the value of `target` in expressions; empty when there was no answer.
    fn target_document(&mut self, response_mapping: &ResponseMapping) -> Result<Vec<u8>, Failure> {
        let body = self.target_body(response_mapping)?;
        let Some((response, body)) = self.response.as_ref().zip(body) else {
            return Ok(Vec::new());
        };
        let mut out = Vec::with_capacity(body.len() + 48);
        out.extend_from_slice(b"{\"response\":{\"body\":");
        out.extend_from_slice(&body);
        out.extend_from_slice(format!(",\"status\":{}}}}}", response.status).as_bytes());
        Ok(out)
    }

    /// Returns the value of `response` in expressions; empty when there was no answer.
    fn response_document(&self) -> Vec<u8> {
        let response = self.response.as_ref();
        response.map(outputs::response).unwrap_or_default()
    }
}

/// Formats an answer for the trace.
pub(super) fn shown(response: &Response, mask: &Mask) -> String {
    exchange::response(&seen(response), mask)
}

/// Returns the parts of an answer that traces and errors show.
pub(super) fn seen(response: &Response) -> ResponseView<'_> {
    let Response {
        status,
        headers,
        body,
        truncated,
    } = response;
    ResponseView {
        status: *status,
        headers,
        body,
        extent: match truncated {
            true => Extent::Beginning,
            false => Extent::Whole,
        },
    }
}

/// Returns whether responses of this status have no body.
fn is_bare(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED
    )
}

/// Builds a mapped body. A string that is declared as another type than JSON is sent without
/// quotes.
fn mapped(json: Bytes, content_type: Option<&HeaderValue>) -> Body {
    let is_json = |declared: &HeaderValue| declared.to_str().is_ok_and(media_type::is_json);
    let declared = content_type.filter(|declared| !is_json(declared)).cloned();
    let text = std::str::from_utf8(&json)
        .ok()
        .filter(|text| text.starts_with('"'));
    let other = declared
        .zip(text)
        .map(|(declared, text)| (Bytes::from(json::decode(text).into_owned()), declared));
    Body { json, other }
}

fn words(violations: &[Violation]) -> String {
    let words = violations
        .iter()
        .map(|fault| format!("{} {}", fault.field, fault.message));
    words.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_another_type_goes_out_without_quotes() {
        let of = |json: &'static str, content_type: &'static str| {
            let body = mapped(json.into(), Some(&HeaderValue::from_static(content_type)));
            body.other.map(|(bytes, _)| bytes)
        };
        assert_eq!(
            of(r#""<b>\"1\"</b>""#, "text/html"),
            Some("<b>\"1\"</b>".into())
        );
        assert_eq!(of(r#""a""#, "application/json; charset=utf-8"), None);
        assert_eq!(of(r#""a""#, "application/problem+json"), None);
        assert_eq!(of(r#""a""#, "Application/Problem+JSON"), None);
        assert_eq!(of(r#""a""#, "text/json"), None);
        assert_eq!(of("{}", "text/html"), None);
    }
}
