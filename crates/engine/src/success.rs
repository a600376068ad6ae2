//! Conditions that judge successful answers: `success_when` of the target and of steps.

use http::HeaderMap;
use kanat_mapping::{EvaluationError, Expression, Scope};
use kanat_model::message::{ErrorKind, Failure};

use crate::trigger::write_headers;
use crate::{Input, Program, Resources, Step};

/// Size of an answer in bytes, above which expressions do not see its body.
pub const RESPONSE_BODY_LIMIT: usize = 1 << 20;

impl Program {
    /// Returns the condition that an answer to `step`, or without one to the target, has to
    /// satisfy.
    pub fn success_when<'p>(&'p self, step: Option<&'p Step>) -> Option<&'p Expression> {
        match step {
            Some(step) => step.success_when.as_ref(),
            None => self.parts().target.as_ref()?.success_when.as_ref(),
        }
    }

    /// Returns whether an answer to `step` of unknown headers satisfies its condition, which may be
    /// absent; `None` where that depends on the headers.
    ///
    /// # Errors
    /// As of [`Self::succeeds`].
    pub fn succeeds_without_headers(
        &self,
        step: &Step,
        input: &Input,
        response: &[u8],
        resources: &dyn Resources,
    ) -> Result<Option<bool>, Failure> {
        let Some(condition) = step.success_when.as_ref() else {
            return Ok(Some(true));
        };
        let scope = self.answer_scope(Some(step), input, response, resources);
        let holds = condition.holds_without_headers(&scope);
        holds.map_err(|error| condition_failure(Some(step), error))
    }

    fn answer_scope<'s>(
        &'s self,
        step: Option<&Step>,
        input: &Input<'s>,
        response: &'s [u8],
        resources: &'s dyn Resources,
    ) -> Scope<'s> {
        let id = match step {
            Some(step) => Some(&step.instance),
            None => self.parts().target.as_ref().map(|target| &target.instance),
        };
        let instance = id.and_then(|id| resources.instance(id));
        Scope {
            response,
            ..self.scope(input, instance, resources)
        }
    }

    /// Returns whether the answer to a call satisfies its condition, which may be absent.
    /// `response` is the document of [`response_document`].
    ///
    /// # Errors
    /// A final failure of the kind `condition`: the other side has taken the call.
    pub fn succeeds(
        &self,
        step: Option<&Step>,
        input: &Input,
        response: &[u8],
        resources: &dyn Resources,
    ) -> Result<bool, Failure> {
        let Some(condition) = self.success_when(step) else {
            return Ok(true);
        };
        let scope = self.answer_scope(step, input, response, resources);
        let value = condition
            .evaluate(&scope)
            .map_err(|error| condition_failure(step, error))?;
        Ok(value.truthy())
    }

    /// Returns the failure of a call whose answer does not satisfy its condition. `call` is
    /// `<METHOD> <url>` as it may be shown.
    pub fn refusal(&self, step: Option<&Step>, call: &str, status: u16) -> Failure {
        let expression = self
            .success_when(step)
            .map(|condition| condition.text().trim().to_owned())
            .unwrap_or_default();
        Failure {
            kind: ErrorKind::TargetRefused,
            message: format!(
                "{call} answered {status}, but success_when does not hold: {expression}"
            ),
            field: step.map(Step::place),
            expression: Some(expression),
        }
    }
}

/// Returns the failure of a condition that cannot be evaluated.
fn condition_failure(step: Option<&Step>, error: EvaluationError) -> Failure {
    let place = step.map_or_else(|| "target".to_owned(), Step::place);
    Failure {
        kind: ErrorKind::Condition,
        ..EvaluationError {
            field: Some(format!("{place}.success_when")),
            ..error
        }
        .into()
    }
}

/// Returns the value of `response` in expressions: `{status, headers, body}`. `body` is JSON; it is
/// left out of an answer that is too long.
pub fn response_document(status: u16, headers: &HeaderMap, body: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + body.map_or(0, <[u8]>::len));
    out.extend_from_slice(format!("{{\"status\":{status},\"headers\":{{").as_bytes());
    write_headers(headers, |_| false, &mut out);
    out.push(b'}');
    if let Some(body) = body {
        out.extend_from_slice(b",\"body\":");
        out.extend_from_slice(body);
    }
    out.push(b'}');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_status_headers_and_body() {
        let mut headers = HeaderMap::new();
        headers.append("X-Request-Id", "r1".parse().unwrap());
        headers.append("Via", "a".parse().unwrap());
        headers.append("Via", "b".parse().unwrap());
        let text = |body| String::from_utf8(response_document(202, &headers, body)).unwrap();
        let head = r#"{"status":202,"headers":{"x-request-id":"r1","via":"a, b"}"#;
        assert_eq!(text(Some(b"1.10")), format!("{head},\"body\":1.10}}"));
        assert_eq!(text(None), format!("{head}}}"));
    }
}
