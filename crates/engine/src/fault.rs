//! Failures of a part of a program, under the part's name.

use http::{HeaderName, HeaderValue};
use kanat_mapping::{EvaluationError, Scope, Template};
use kanat_model::message::{ErrorKind, Failure};

/// Returns the failure of an evaluation at `place`, whatever field of it the error names.
pub(crate) fn within(place: &str, mut error: EvaluationError) -> Failure {
    error.field = Some(place.to_owned());
    error.into()
}

/// Returns the failure of an expression whose value does not fit its place.
pub(crate) fn wrong(place: &str, expression: &str, message: &str) -> Failure {
    Failure {
        field: Some(place.to_owned()),
        expression: Some(expression.to_owned()),
        ..Failure::new(
            ErrorKind::Mapping,
            format!("field {place:?}: {message}, in `{expression}`"),
        )
    }
}

/// Returns the value of a header; none where its template has none.
pub(crate) fn header_value(
    part: &str,
    name: &HeaderName,
    template: &Template,
    scope: &Scope,
) -> Result<Option<HeaderValue>, Failure> {
    let place = format!("{part}.headers.{name}");
    let value = template
        .evaluate(scope)
        .map_err(|error| within(&place, error))?;
    if value.is_missing() {
        return Ok(None);
    }
    let value = HeaderValue::from_bytes(value.rendered().as_bytes());
    value.map(Some).map_err(|_| {
        let message = "the value has a character that no header may have";
        wrong(&place, template.text(), message)
    })
}
