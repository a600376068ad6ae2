//! `kanat eval`: an expression or a template on data of a file, by the evaluator of runs and
//! without a service.

use std::collections::BTreeMap;

use anyhow::Result;
use kanat_flow::span;
use kanat_mapping::{
    Effort, EvaluationError, Expression, ParseError, References, Scope, Template, Value, json,
};
use kanat_model::Timestamp;

use super::input;
use crate::exit::{failure, usage};
use crate::output;

/// Arguments of `kanat eval`.
#[derive(clap::Args)]
pub struct Eval {
    /// The expression, such as `source.total | decimal(2)`.
    #[arg(allow_hyphen_values = true)]
    text: String,
    /// JSON file that is `source`, or a text: one whose name ends with `.csv`, `.tsv` or `.xml`;
    /// `-` is standard input. An object or a list may stand in the place of the file's name
    /// [default: `source` is undefined].
    #[arg(long)]
    data: Option<String>,
    /// The text is a template: a text with `{{ }}`.
    #[arg(long)]
    template: bool,
    /// Variable that the expression reads as `env.NAME`; may be repeated.
    #[arg(long = "variable", value_name = "NAME=VALUE")]
    variables: Vec<String>,
}

impl Eval {
    /// Evaluates without a service, so that the environment that is chosen there does not count.
    pub fn run(self, chosen: Option<&str>) -> Result<()> {
        refuse_variable(chosen)?;
        let data = match &self.data {
            Some(path) => source(path)?,
            None => String::new(),
        };
        let effort = Effort::default();
        let variables = self.variables()?;
        let scope = Scope {
            variables: &variables,
            ..Scope::new(data.as_bytes(), Timestamp::now(), &effort)
        };
        let text = self.text.as_str();
        let wrong = |errors: Vec<ParseError>| wrong(text, &errors);
        let failed = |error: EvaluationError| failed(text, &error);
        if self.template {
            let template = Template::parse(text).map_err(wrong)?;
            refuse_faults(text, template.references())?;
            refuse_what_needs_a_service(template.references())?;
            warn_of_parts(text, template.references());
            print(&template.evaluate(&scope).map_err(failed)?)
        } else {
            let expression = Expression::parse(text).map_err(wrong)?;
            refuse_faults(text, expression.references())?;
            refuse_what_needs_a_service(expression.references())?;
            warn(text, &expression, &scope);
            print(&expression.evaluate(&scope).map_err(failed)?)
        }
    }

    /// Returns the variables as a JSON object; the last one of a name counts.
    fn variables(&self) -> Result<Vec<u8>> {
        let mut variables = BTreeMap::new();
        for pair in &self.variables {
            let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty())
            else {
                return Err(usage(format!("--variable {pair:?} is not NAME=VALUE")));
            };
            variables.insert(name, value);
        }
        let mut out = b"{".to_vec();
        for (name, value) in variables {
            if out.len() > 1 {
                out.push(b',');
            }
            json::write_string(name, &mut out);
            out.push(b':');
            json::write_string(value, &mut out);
        }
        out.push(b'}');
        Ok(out)
    }
}

/// Refuses a variable that is given by the flag that chooses an environment of a service.
fn refuse_variable(chosen: Option<&str>) -> Result<()> {
    match chosen {
        Some(pair) if pair.contains('=') => Err(usage(format!(
            "--env chooses an environment of a service, and none is called {pair:?}: give a \
             variable with --variable {pair}"
        ))),
        Some(_) | None => Ok(()),
    }
}

/// Returns the payload in a file as JSON.
fn source(path: &str) -> Result<String> {
    let data = input::inline(path).map_or_else(|| input::text(path), |data| Ok(data.to_owned()))?;
    if input::is_text(path, None) {
        let mut written = Vec::new();
        json::write_string(&data, &mut written);
        return Ok(String::from_utf8_lossy(&written).into_owned());
    }
    match json::check(data.as_bytes(), json::MAX_DEPTH) {
        Ok(()) => Ok(data),
        Err(error) => Err(usage(format!(
            "{} is not JSON: line {}, column {}: {}\n{}",
            input::name(path),
            error.line,
            error.column,
            error.message,
            input::TEXT_HINT
        ))),
    }
}

/// Prints the warnings that a check of a definition has for the expression, else the comparison of
/// a text with a number that the data shows.
fn warn(text: &str, expression: &Expression, scope: &Scope) {
    warn_of_parts(text, expression.references());
    if expression.references().warnings.is_empty()
        && let Some(sentence) = expression.type_mismatch(scope)
    {
        output::hint(&format!("warning: {sentence}"));
    }
}

fn warn_of_parts(text: &str, references: &References) {
    for warning in &references.warnings {
        let span = span::of_parse_error(text, warning.offset, &warning.message);
        output::hint(&format!(
            "warning: line {}, column {}: {warning}",
            span.line, span.column
        ));
    }
}

/// Prints a value as one line of JSON; nothing for undefined.
fn print(value: &Value) -> Result<()> {
    if *value == Value::Undefined {
        return Ok(());
    }
    let mut written = Vec::new();
    value.write_json(&mut written);
    output::line(&one_line(&String::from_utf8_lossy(&written)))
}

/// Returns JSON without blanks and line ends between its parts.
fn one_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    let mut is_in_text = false;
    let mut is_escaped = false;
    for c in json.chars() {
        if is_in_text || !c.is_ascii_whitespace() {
            line.push(c);
        }
        if c == '"' && !is_escaped {
            is_in_text = !is_in_text;
        }
        is_escaped = is_in_text && c == '\\' && !is_escaped;
    }
    line
}

/// Refuses what a check of a definition refuses.
fn refuse_faults(text: &str, references: &References) -> Result<()> {
    match references.definition_faults.as_slice() {
        [] => Ok(()),
        faults => Err(wrong(text, faults)),
    }
}

fn refuse_what_needs_a_service(references: &References) -> Result<()> {
    let needs = |transform: &str| {
        failure(format!(
            "{transform} needs a service: POST /api/v1/expressions/evaluate has one"
        ))
    };
    match (references.tables.is_empty(), references.adapters.is_empty()) {
        (false, _) => Err(needs("lookup")),
        (true, false) => Err(needs("adapter")),
        (true, true) => Ok(()),
    }
}

fn wrong(text: &str, errors: &[ParseError]) -> anyhow::Error {
    let lines = errors.iter().map(|error| {
        let span = span::of_parse_error(text, error.offset, &error.message);
        format!("line {}, column {}: {error}", span.line, span.column)
    });
    failure(lines.collect::<Vec<_>>().join("\n"))
}

fn failed(text: &str, error: &EvaluationError) -> anyhow::Error {
    let span = span::of_failure(text, error);
    failure(format!(
        "line {}, column {}: {error}",
        span.line, span.column
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_is_no_environment() {
        assert!(refuse_variable(Some("production")).is_ok());
        let refused = refuse_variable(Some("REGION=eu")).unwrap_err().to_string();
        assert!(refused.ends_with("--variable REGION=eu"), "{refused}");
    }

    #[test]
    fn a_value_is_one_line_with_its_digits() {
        assert_eq!(
            one_line("{ \"a b\": [1.10,\n\t\"\\\" x\\\\\"], \"c\": 1e400 }"),
            r#"{"a b":[1.10,"\" x\\"],"c":1e400}"#
        );
    }
}
