//! Definitions that callers send: what is wrong with them, in the words of an error.

use kanat_flow::{Definition, Diagnostic};
use kanat_model::{Error, FieldError};

/// A definition that is right in itself. Errors name all that is wrong.
pub fn parse(yaml: &str) -> Result<Definition, Error> {
    // PostgreSQL cannot store it.
    if yaml.contains('\0') {
        return Err(Error::field("yamlConfig", "must not contain a NUL character"));
    }
    kanat_flow::parse(yaml).map_err(|faults| invalid("the definition is wrong", &faults))
}

/// One detail a diagnostic: its field is the path in the definition, its message begins with line and column.
pub fn invalid(message: &str, faults: &[Diagnostic]) -> Error {
    let details = faults.iter().map(|fault| {
        let field = if fault.path.is_empty() { "yamlConfig" } else { &fault.path };
        FieldError::new(field, format!("line {}, column {}: {}", fault.line, fault.column, fault.message))
    });
    let summary = match faults {
        [only] => format!("{message}: {only}"),
        many => format!("{message} in {} places", many.len()),
    };
    Error::invalid(summary, details.collect())
}

#[cfg(test)]
mod tests {
    use kanat_flow::Severity;

    use super::*;

    #[test]
    fn every_fault_is_a_detail_with_path_and_place() {
        let fault = |path: &str, line| Diagnostic {
            severity: Severity::Error,
            message: "unknown key".to_owned(),
            path: path.to_owned(),
            line,
            column: 3,
        };
        let error = invalid("the definition is wrong", &[fault("maping", 4), fault("", 1)]);
        let details: Vec<_> = error.details.iter().map(|d| (d.field.as_str(), d.message.as_str())).collect();
        assert_eq!(
            details,
            [("maping", "line 4, column 3: unknown key"), ("yamlConfig", "line 1, column 3: unknown key"),]
        );
        assert_eq!(error.message, "the definition is wrong in 2 places");
    }
}
