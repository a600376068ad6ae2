//! Compilation of a plan: every expression and template is parsed, every HTTP name is checked.

use std::time::Duration;

use http::{HeaderName, Method, header};
use kanat_mapping::{
    Conflict, Expression, FieldValue, JsonTemplate, Mapping, ParseError, Template,
};
use kanat_proto::plan::v1::{self, field};

use crate::Step;
use crate::target::Target;

/// Reason why a plan cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// `place` is the path in the definition, such as `mapping.total`.
    #[error("{place}: {message}")]
    Invalid { place: String, message: String },
    /// The plan needs a feature that this build lacks.
    #[error("this build does not run {0}")]
    Unsupported(String),
}

/// Compiled parts of a plan.
pub(crate) struct Parts {
    pub when: Option<Expression>,
    pub ordering_key: Option<Expression>,
    pub idempotency_key: Option<Expression>,
    pub steps: Vec<Step>,
    pub mapping: Option<Mapping>,
    pub target: Option<Target>,
}

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);
/// Headers that belong to the connection, not to the flow.
const OF_THE_CONNECTION: [HeaderName; 8] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::TE,
    header::TRAILER,
    header::EXPECT,
];

pub(crate) fn compile(plan: &v1::FlowPlan) -> Result<Parts, CompileError> {
    Ok(Parts {
        when: optional_expression("when", &plan.when)?,
        ordering_key: key("ordering_key", &plan.ordering_key)?,
        idempotency_key: key("idempotency_key", &plan.idempotency_key)?,
        steps: plan.steps.iter().map(step).collect::<Result<_, _>>()?,
        mapping: plan
            .mapping
            .as_ref()
            .map(|fields| mapping("mapping", fields))
            .transpose()?,
        target: plan.target.as_ref().map(target).transpose()?,
    })
}

fn step(step: &v1::Step) -> Result<Step, CompileError> {
    let action = kanat_catalog::entry(&step.entry).and_then(|entry| entry.action(&step.action));
    let action = action.ok_or_else(|| {
        CompileError::Unsupported(format!("the action {}.{}", step.entry, step.action))
    })?;
    let place = format!("steps.{}", step.name);
    let params = JsonTemplate::parse(if step.params.is_empty() {
        "{}"
    } else {
        &step.params
    })
    .map_err(|errors| unparsed(&format!("{place}.params"), errors))?;
    Ok(Step {
        name: step.name.clone(),
        instance: step.instance.clone(),
        action,
        open_path: action
            .open_path()
            .and_then(|param| crate::step::path_template(&step.params, param)),
        params,
        when: optional_expression(&format!("{place}.when"), &step.when)?,
        success_when: optional_expression(&format!("{place}.success_when"), &step.success_when)?,
        rejects: step.reject_on_failure,
    })
}

fn target(target: &v1::Target) -> Result<Target, CompileError> {
    let method = if target.method.is_empty() {
        "POST"
    } else {
        &target.method
    };
    Ok(Target {
        instance: target.instance.clone(),
        endpoint: template("target.endpoint", &target.endpoint)?,
        method: Method::from_bytes(method.as_bytes())
            .map_err(|_| invalid("target.method", format!("{method:?} is no HTTP method")))?,
        headers: target
            .headers
            .iter()
            .map(|named| header("target", named))
            .collect::<Result<_, _>>()?,
        timeout: match target.timeout_ms {
            0 => DEFAULT_TIMEOUT,
            milliseconds => Duration::from_millis(milliseconds),
        },
        success_when: optional_expression("target.success_when", &target.success_when)?,
    })
}

/// Compiles a header of the part at `place`.
pub(crate) fn header(
    of: &str,
    header: &v1::NamedText,
) -> Result<(HeaderName, Template), CompileError> {
    let place = format!("{of}.headers.{}", header.name);
    let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| {
        invalid(
            &place,
            format!("{:?} is no name of an HTTP header", header.name),
        )
    })?;
    if OF_THE_CONNECTION.contains(&name) {
        return Err(invalid(
            &place,
            format!("the header {name} belongs to the connection"),
        ));
    }
    Ok((name, template(&place, &header.text)?))
}

/// As deep as the plan nests, which its decoder bounds.
pub(crate) fn mapping(place: &str, mapping: &v1::Mapping) -> Result<Mapping, CompileError> {
    let mut fields = Vec::with_capacity(mapping.fields.len());
    for field in &mapping.fields {
        let place = format!("{place}.{}", field.name);
        fields.push((field.name.clone(), field_value(&place, field)?));
    }
    let conflict = |conflicts: Vec<Conflict>| match conflicts.into_iter().next() {
        Some(conflict) => invalid(&format!("{place}.{}", conflict.field), conflict.message),
        None => invalid(place, "the fields conflict"),
    };
    Mapping::new(fields).map_err(conflict)
}

fn field_value(place: &str, field: &v1::Field) -> Result<FieldValue, CompileError> {
    match &field.value {
        Some(field::Value::Expression(text)) => expression(place, text).map(FieldValue::Expression),
        Some(field::Value::Template(text)) => template(place, text).map(FieldValue::Template),
        Some(field::Value::Each(each)) => Ok(FieldValue::Each {
            list: expression(&format!("{place}.each"), &each.list)?,
            filter: optional_expression(&format!("{place}.where"), &each.r#where)?,
            map: Box::new(mapping(
                &format!("{place}.map"),
                each.map.as_ref().unwrap_or(&v1::Mapping::default()),
            )?),
        }),
        None => Err(invalid(
            place,
            "the field has no value that this build knows",
        )),
    }
}

pub(crate) fn optional_expression(
    place: &str,
    text: &str,
) -> Result<Option<Expression>, CompileError> {
    if text.is_empty() {
        Ok(None)
    } else {
        expression(place, text).map(Some)
    }
}

pub(crate) fn expression(place: &str, text: &str) -> Result<Expression, CompileError> {
    Expression::parse(text).map_err(|errors| unparsed(place, errors))
}

pub(crate) fn template(place: &str, text: &str) -> Result<Template, CompileError> {
    Template::parse(text).map_err(|errors| unparsed(place, errors))
}

/// Compiles a key. Keys are needed before a message is accepted: they must not call adapters.
fn key(place: &str, text: &str) -> Result<Option<Expression>, CompileError> {
    let key = optional_expression(place, text)?;
    if key
        .as_ref()
        .is_some_and(|key| !key.references().adapters.is_empty())
    {
        return Err(invalid(place, "a key cannot call adapters"));
    }
    Ok(key)
}

fn unparsed(place: &str, errors: Vec<ParseError>) -> CompileError {
    match errors.into_iter().next() {
        Some(error) => invalid(place, format!("byte {}: {}", error.offset, error.message)),
        None => invalid(place, "not an expression"),
    }
}

fn invalid(place: &str, message: impl Into<String>) -> CompileError {
    CompileError::Invalid {
        place: place.to_owned(),
        message: message.into(),
    }
}
