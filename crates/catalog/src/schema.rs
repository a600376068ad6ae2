//! JSON Schemas of configs and params, and what a value has wrong by them: in our words, under the
//! paths of the API, and without showing any of the value, which may be a secret.

use std::sync::Arc;

use jsonschema::error::{TypeKind, ValidationError, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationOptions, Validator};
use kanat_model::FieldError;
use serde_json::{Map, Value};

use crate::format::Format;

/// Maximum number of faults that are reported of one value.
const MAX_FAULTS: usize = 100;

/// A schema that has been read. References lead nowhere but into itself.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    text: Arc<Value>,
    validator: Arc<Validator>,
}

impl Schema {
    /// A schema of params or answers. Errors say what is wrong with it. Its formats are for the
    /// provider to judge.
    pub(crate) fn new(schema: Value) -> Result<Self, String> {
        Self::build(schema, jsonschema::options().should_validate_formats(false))
    }

    /// A schema of a config, whose formats are ours.
    pub(crate) fn of_config(schema: Value) -> Result<Self, String> {
        let mut options = jsonschema::options().should_validate_formats(true);
        for format in Format::ALL {
            options =
                options.with_format(format.as_str(), |text: &str| format.fault(text).is_none());
        }
        Self::build(schema, options)
    }

    fn build(schema: Value, options: ValidationOptions) -> Result<Self, String> {
        let validator = options
            .build(&schema)
            .map_err(|error| format!("is no JSON Schema: {error}"))?;
        Ok(Self {
            text: Arc::new(schema),
            validator: Arc::new(validator),
        })
    }

    /// Returns the faults of `value`, each under its path from `root`.
    pub(crate) fn faults(&self, value: &Value, root: &str) -> Vec<FieldError> {
        let mut faults = Vec::new();
        for error in self.validator.iter_errors(value).take(MAX_FAULTS) {
            self.push_faults(&error, root, &mut faults);
        }
        faults.truncate(MAX_FAULTS);
        faults
    }

    fn push_faults(&self, error: &ValidationError, root: &str, faults: &mut Vec<FieldError>) {
        let path = path(root, error.instance_path());
        let mut fault = |path: String, message: String| faults.push(FieldError::new(path, message));
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected }
            | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
                let known = self.known(error.schema_path());
                for name in unexpected {
                    fault(member(&path, name), format!("is not known here{known}"));
                }
            }
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                fault(
                    member(&path, name),
                    format!("is required{}", self.condition(error.schema_path())),
                );
            }
            ValidationErrorKind::PropertyNames { error } => {
                let name = error.instance().as_str().unwrap_or_default().to_owned();
                fault(member(&path, &name), message(error));
            }
            _ => fault(path, message(error)),
        }
    }

    /// `; there is a, b`, from the properties beside the keyword at `place`.
    fn known(&self, place: &Location) -> String {
        let beside = place
            .as_str()
            .rsplit_once('/')
            .and_then(|(parent, _)| self.text.pointer(parent));
        let names: Vec<&str> = beside
            .and_then(|schema| schema.get("properties")?.as_object())
            .map(|properties| properties.keys().map(String::as_str).collect())
            .unwrap_or_default();
        if names.is_empty() {
            String::new()
        } else {
            format!("; there is {}", names.join(", "))
        }
    }

    /// ` when auth is basic`, for what a `then` requires.
    fn condition(&self, place: &Location) -> String {
        let tested = place.as_str().split_once("/then/").and_then(|(parent, _)| {
            let properties = self
                .text
                .pointer(parent)?
                .get("if")?
                .get("properties")?
                .as_object()?;
            let (name, schema) = properties.iter().next()?;
            Some(format!(
                " when {name} is {}",
                schema.get("const")?.as_str()?
            ))
        });
        tested.unwrap_or_default()
    }
}

/// Returns the fault in words that follow the name of the field.
fn message(error: &ValidationError) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            format!(
                "must be {}, not {}",
                expected(kind),
                type_name(error.instance())
            )
        }
        ValidationErrorKind::Enum { options } => match options.as_array() {
            Some(options) => format!(
                "must be one of {}",
                options.iter().map(shown).collect::<Vec<_>>().join(", ")
            ),
            None => "must be one of the options".to_owned(),
        },
        ValidationErrorKind::Constant { expected_value } => {
            format!("must be {}", shown(expected_value))
        }
        ValidationErrorKind::Format { format } => {
            let text = error.instance().as_str().unwrap_or_default();
            let fault = Format::parse(format).and_then(|format| format.fault(text));
            fault.unwrap_or_else(|| format!("must be of the format {format}"))
        }
        ValidationErrorKind::Pattern { pattern } => match literal_prefix(pattern) {
            Some(prefix) => format!("must begin with {prefix:?}"),
            None => format!("must match {pattern}"),
        },
        ValidationErrorKind::MinLength { limit: 1 } => "must not be empty".to_owned(),
        ValidationErrorKind::MinLength { limit } => {
            format!("must have at least {limit} characters")
        }
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} characters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} items"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} items"),
        ValidationErrorKind::MinProperties { limit } => {
            format!("must have at least {limit} members")
        }
        ValidationErrorKind::MaxProperties { limit } => {
            format!("must have at most {limit} members")
        }
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::UniqueItems => "must not have the same item twice".to_owned(),
        ValidationErrorKind::AnyOf { context }
        | ValidationErrorKind::OneOfNotValid { context }
        | ValidationErrorKind::OneOfMultipleValid { context } => alternatives(context),
        _ => "does not fit its schema".to_owned(),
    }
}

/// Returns the members that every alternative lacks, when they lack members alone.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let lacked = |errors: &Vec<ValidationError<'static>>| match errors.as_slice() {
        [error] => match error.kind() {
            ValidationErrorKind::Required { property } => property.as_str().map(str::to_owned),
            _ => None,
        },
        _ => None,
    };
    let names: Option<Vec<String>> = context.iter().map(lacked).collect();
    match names.filter(|names| !names.is_empty()) {
        Some(names) => format!("needs {}", names.join(" or ")),
        None => "fits none of the forms that it may have, or several".to_owned(),
    }
}

/// The text that `^text` asks for, when it is no more than that.
fn literal_prefix(pattern: &str) -> Option<String> {
    let escaped = pattern.strip_prefix('^')?;
    let plain = escaped.replace("\\.", ".");
    let is_literal = escaped
        .replace("\\.", "")
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':'));
    is_literal.then_some(plain)
}

fn expected(kind: &TypeKind) -> String {
    let name = |kind: &str| match kind {
        "array" => "a list".to_owned(),
        "object" | "integer" => format!("an {kind}"),
        "null" => "null".to_owned(),
        kind => format!("a {kind}"),
    };
    match kind {
        TypeKind::Single(kind) => name(&kind.to_string()),
        TypeKind::Multiple(kinds) => kinds
            .iter()
            .map(|kind| name(&kind.to_string()))
            .collect::<Vec<_>>()
            .join(" or "),
    }
}

pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value of the schema, which is no secret.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// `config.headers.X-Source`, `params.contacts[0].email`.
fn path(root: &str, location: &Location) -> String {
    let mut path = root.to_owned();
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(name) => {
                path.push('.');
                path.push_str(&name);
            }
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

fn member(path: &str, name: &str) -> String {
    format!("{path}.{name}")
}

/// The members that are left out of calls and sent all the same: each with the JSON text of its
/// default.
pub(crate) fn defaults(schema: &Value) -> Vec<(String, String)> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let default = |(name, schema): (&String, &Value)| {
        Some((name.clone(), schema.get("default")?.to_string()))
    };
    properties
        .into_iter()
        .flat_map(Map::iter)
        .filter_map(default)
        .collect()
}
