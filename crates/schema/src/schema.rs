//! A compiled schema: what may be asked of it.

use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde_json::Value;

use crate::violation::Field;
use crate::{MAX_SCHEMA_BYTES, MAX_VIOLATIONS, Violation};

/// Why a text is no schema that this crate takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}, at {}", if pointer.is_empty() { "the root" } else { pointer })]
pub struct Error {
    /// The JSON pointer of the fault in the schema; empty for the whole.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

/// A schema ready to check documents. May be shared among threads.
#[derive(Debug)]
pub struct Schema {
    validator: Validator,
    root: Value,
}

impl Schema {
    /// Compiles the text of a schema of the draft that its `$schema` names, 2020-12 when it names none.
    ///
    /// # Errors
    /// For text that is no JSON, a schema that its draft does not know, a reference that leaves the schema, and whatever
    /// could make a check take long.
    pub fn compile(text: &str) -> Result<Self, Error> {
        let fault = |pointer: String, message: String| Error { pointer, message };
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(fault(String::new(), format!("is longer than {MAX_SCHEMA_BYTES} bytes")));
        }
        kanat_json::check(text.as_bytes(), kanat_json::MAX_DEPTH)
            .map_err(|error| fault(String::new(), format!("is not JSON: {error}")))?;
        let root: Value =
            serde_json::from_str(text).map_err(|error| fault(String::new(), format!("is not JSON: {error}")))?;
        let options = jsonschema::options().should_validate_formats(true);
        let validator = options
            .with_pattern_options(PatternOptions::regex())
            .build(&root)
            .map_err(|error| fault(error.instance_path().to_string(), format!("is no JSON Schema: {error}")))?;
        Ok(Self { validator, root })
    }

    /// Checks a JSON text, and tells all that is wrong with it, at most [`MAX_VIOLATIONS`]. Text that is no JSON is a
    /// violation of the root.
    ///
    /// # Errors
    /// What is wrong, at least one violation.
    pub fn validate(&self, json_text: &[u8]) -> Result<(), Vec<Violation>> {
        let root = |message: String| vec![Violation { field: Field::default().finish(), message }];
        kanat_json::check(json_text, kanat_json::MAX_DEPTH).map_err(|error| root(format!("is not JSON: {error}")))?;
        let value: Value = serde_json::from_slice(json_text).map_err(|error| root(format!("is not JSON: {error}")))?;
        if self.validator.is_valid(&value) {
            return Ok(());
        }
        let mut violations: Vec<Violation> = Vec::new();
        for error in self.validator.iter_errors(&value).take(MAX_VIOLATIONS) {
            tell(&error, &mut violations);
        }
        violations.truncate(MAX_VIOLATIONS);
        Err(violations)
    }

    /// The JSON object that the parameters of a path and a query make: numbers, booleans and lists where the schema asks
    /// for them, text where it does not, or where the text is no such thing. A name that comes again makes a list.
    pub fn read_parameters<'p>(&self, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) -> String {
        let mut members: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, text) in pairs {
            match members.iter_mut().find(|(known, _)| *known == name) {
                Some((_, texts)) => texts.push(text),
                None => members.push((name, vec![text])),
            }
        }
        let mut out = vec![b'{'];
        for (index, (name, texts)) in members.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            kanat_json::write_string(name, &mut out);
            out.push(b':');
            let schema = self.root.get("properties").and_then(|properties| properties.get(name));
            let is_list = schema.is_some_and(|schema| schema["type"] == "array");
            match texts.as_slice() {
                [text] if !is_list => write_parameter(text, schema, &mut out),
                texts => {
                    let items = schema.and_then(|schema| schema.get("items"));
                    out.push(b'[');
                    for (index, text) in texts.iter().enumerate() {
                        if index > 0 {
                            out.push(b',');
                        }
                        write_parameter(text, items, &mut out);
                    }
                    out.push(b']');
                }
            }
        }
        out.push(b'}');
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn write_parameter(text: &str, schema: Option<&Value>, out: &mut Vec<u8>) {
    let fits = match schema.and_then(|schema| schema["type"].as_str()) {
        Some("integer" | "number") => {
            text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
                && kanat_json::check(text.as_bytes(), 1).is_ok()
        }
        Some("boolean") => matches!(text, "true" | "false"),
        _ => false,
    };
    if fits {
        out.extend_from_slice(text.trim().as_bytes());
    } else {
        kanat_json::write_string(text, out);
    }
}

fn tell(error: &ValidationError, violations: &mut Vec<Violation>) {
    let mut violation = |key: Option<&str>, message: String| {
        violations.push(Violation { field: field(error.instance_path(), key), message });
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                violation(Some(name), "is not known here".to_owned());
            }
        }
        ValidationErrorKind::Required { property } => violation(property.as_str(), "is required".to_owned()),
        ValidationErrorKind::PropertyNames { error } => {
            violation(error.instance().as_str(), "has a name that does not fit".to_owned());
        }
        _ => violation(None, "does not fit its schema".to_owned()),
    }
}

fn field(location: &Location, key: Option<&str>) -> String {
    let mut field = Field::default();
    for segment in location.segments() {
        match segment {
            LocationSegment::Property(name) => field.member(&name),
            LocationSegment::Index(index) => field.index(index),
        }
    }
    if let Some(key) = key {
        field.member(key);
    }
    field.finish()
}
