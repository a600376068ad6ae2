//! The flow language for editors: the evaluation of one expression or template on documents that
//! the caller gives, as runs do.

use kanat_engine::Resources;
use kanat_flow::span::{self, Span};
use kanat_mapping::{
    Adapters, Effort, EvaluationError, Expression, NoAdapters, ParseError, References, Root, Scope,
    Template, Value,
};
use kanat_model::message::ErrorKind;
use kanat_model::{Error, FieldError, Result, Timestamp};
use kanat_script::apart;

use super::flow::{EnvironmentNames, Samples, uses};
use super::{Call, adapter, json};

/// Value of `context` of adapters.
const CONTEXT: &str = r#"{"test":true}"#;

/// Text to evaluate.
#[derive(Debug)]
pub enum ExpressionText {
    Expression(String),
    Template(String),
}

/// Documents of the roots, JSON texts by their names.
#[derive(Debug, Default)]
pub struct Documents {
    pub source: Option<String>,
    pub trigger: Option<String>,
    pub steps: Option<String>,
    pub target: Option<String>,
    pub item: Option<String>,
    pub index: Option<usize>,
    pub response: Option<String>,
    pub state: Option<String>,
    /// Variables, in the place of the environment's.
    pub env: Option<String>,
}

/// Value of an expression.
#[derive(Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// The name of its type.
    pub kind: &'static str,
    /// JSON; absent when it is undefined.
    pub value: Option<String>,
}

enum Parsed {
    Expression(Expression),
    Template(Template),
}

/// Evaluates an expression or a template in the caller's environment.
///
/// # Errors
/// A text that is wrong, or fails on its documents, is an invalid argument with its place.
pub async fn evaluate(
    call: &Call,
    text: &ExpressionText,
    documents: &Documents,
) -> Result<Evaluation> {
    documents.check()?;
    let parsed = text.parse()?;
    let references = parsed.references();
    let environment = &call.caller.environment_id;
    let mut tx = call.read().await?;
    let names = EnvironmentNames::load(&mut tx, environment).await?;
    let used = uses::of(references);
    let samples = Samples::named(&mut tx, environment, used, &names).await?;
    drop(tx);
    let now = Timestamp::now();
    let effort = Effort::default();
    let variables = match &documents.env {
        Some(env) => env.as_bytes(),
        None => samples.variables(),
    };
    let evaluation = |effort: &Effort, adapters: &dyn Adapters| {
        let scope = Scope {
            trigger: bytes(&documents.trigger),
            steps: bytes(&documents.steps),
            target: bytes(&documents.target),
            item: bytes(&documents.item),
            index: documents.index,
            response: bytes(&documents.response),
            state: bytes(&documents.state),
            variables,
            tables: &samples,
            adapters,
            ..Scope::new(bytes(&documents.source), now, effort)
        };
        parsed.evaluate(&scope)
    };
    let evaluated = if references.adapters.is_empty() {
        apart::evaluate(&effort, |effort| evaluation(effort, &NoAdapters)).await
    } else {
        let asker = adapter::asker(&call.caller);
        let mut calls = kanat_script::Caller::new(&call.app.adapters, asker, CONTEXT);
        calls
            .evaluate(&samples, |adapters| evaluation(&effort, adapters))
            .await
    };
    evaluated.map_err(|error| text.failed(&error))
}

impl Documents {
    fn check(&self) -> Result<()> {
        let Self {
            source,
            trigger,
            steps,
            target,
            item,
            index: _,
            response,
            state,
            env,
        } = self;
        for (field, document) in [
            ("source", source),
            ("trigger", trigger),
            ("steps", steps),
            ("target", target),
            ("item", item),
            ("response", response),
            ("state", state),
            ("env", env),
        ] {
            if let Some(document) = document {
                json::check(field, document)?;
            }
        }
        Ok(())
    }
}

impl ExpressionText {
    fn field_and_text(&self) -> (&'static str, &str) {
        match self {
            Self::Expression(text) => ("expression", text),
            Self::Template(text) => ("template", text),
        }
    }

    fn parse(&self) -> Result<Parsed> {
        let parsed = match self {
            Self::Expression(text) => Expression::parse(text).map(Parsed::Expression),
            Self::Template(text) => Template::parse(text).map(Parsed::Template),
        };
        let parsed = parsed.map_err(|errors| self.wrong(&errors))?;
        let references = parsed.references();
        if !references.definition_faults.is_empty() {
            return Err(self.wrong(&references.definition_faults));
        }
        if references.roots.contains(&Root::Instance) {
            let offset = references.instance_values.first();
            return Err(self.wrong(&[ParseError {
                offset: offset.map_or(0, |value| value.offset),
                message: "found instance, which is known only in a flow, at its connectors"
                    .to_owned(),
            }]));
        }
        Ok(parsed)
    }

    fn wrong(&self, errors: &[ParseError]) -> Error {
        let (field, text) = self.field_and_text();
        let details = errors.iter().map(|error| {
            let span = span::of_parse_error(text, error.offset, &error.message);
            FieldError {
                members: place(span),
                ..FieldError::new(field, &error.message)
            }
        });
        let summary = match errors {
            [only] => format!("the {field} is wrong: {only}"),
            many => format!("the {field} is wrong in {} places", many.len()),
        };
        Error::invalid(summary, details.collect())
    }

    fn failed(&self, error: &EvaluationError) -> Error {
        match error.kind {
            // An adapter that could not be run just now.
            ErrorKind::Timeout => return Error::unavailable(&error.message),
            ErrorKind::Mapping
            | ErrorKind::Network
            | ErrorKind::Tls
            | ErrorKind::Status
            | ErrorKind::TargetRefused
            | ErrorKind::Condition
            | ErrorKind::Egress
            | ErrorKind::Credentials
            | ErrorKind::Rejected
            | ErrorKind::Configuration
            | ErrorKind::Adapter
            | ErrorKind::Validation
            | ErrorKind::FlowDeleted => {}
        }
        let (field, text) = self.field_and_text();
        let mut members = place(span::of_failure(text, error));
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        if let Some(transform) = error.transform {
            members.push_str(&format!(",\"transform\":{}", quoted(transform)));
        }
        if let Some(value) = &error.value {
            // One that was cut is no JSON any more.
            let is_whole = json::check("value", value).is_ok();
            let shown = if is_whole {
                value.clone()
            } else {
                quoted(value)
            };
            members.push_str(&format!(",\"value\":{shown}"));
        }
        let detail = FieldError {
            members,
            ..FieldError::new(field, &error.message)
        };
        Error::invalid(error.to_string(), vec![detail])
    }
}

impl Parsed {
    fn references(&self) -> &References {
        match self {
            Self::Expression(expression) => expression.references(),
            Self::Template(template) => template.references(),
        }
    }

    fn evaluate(&self, scope: &Scope) -> Result<Evaluation, EvaluationError> {
        let value = match self {
            Self::Expression(expression) => expression.evaluate(scope)?,
            Self::Template(template) => template.evaluate(scope)?,
        };
        let kind = match value {
            Value::Undefined => "undefined",
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::List(_) => "list",
            Value::Object(_) => "object",
        };
        let mut json = Vec::new();
        value.write_json(&mut json);
        // The output is UTF-8: every part came from a `str`.
        let json = String::from_utf8_lossy(&json).into_owned();
        Ok(Evaluation {
            kind,
            value: (value != Value::Undefined).then_some(json),
        })
    }
}

/// Returns the members of a detail that say where a fault is.
fn place(span: Span) -> String {
    let Span {
        line,
        column,
        end_column,
    } = span;
    format!("\"line\":{line},\"column\":{column},\"endColumn\":{end_column}")
}

fn bytes(document: &Option<String>) -> &[u8] {
    document.as_deref().unwrap_or_default().as_bytes()
}
