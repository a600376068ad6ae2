//! Variables of an environment: texts that its flows read as `env.NAME`.

use std::collections::BTreeMap;

use kanat_mapping::{Expression, json};
use kanat_model::{Error, Result};
use kanat_proto::plan::v1 as plan;
use kanat_store::Db;
use kanat_store::environment::Environment;
use serde_json::{Map, Value};

use crate::app::App;
use crate::app::users::{self, variable_id};

/// Variables of an environment.
const MAX_VARIABLES: usize = 500;

/// Characters of the name of a variable.
const MAX_NAME_CHARS: usize = 100;

/// Bytes of the value of a variable.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// Reads variables, a JSON object of texts.
pub fn check(text: &str) -> Result<BTreeMap<String, String>> {
    let object: Map<String, Value> = serde_json::from_str(text)
        .map_err(|_| Error::field("variables", "is no object of texts"))?;
    if object.len() < json::occurrences(text).count() {
        return Err(Error::field("variables", "has a variable twice"));
    }
    if object.len() > MAX_VARIABLES {
        let message = format!("has more than {MAX_VARIABLES} variables");
        return Err(Error::field("variables", message));
    }
    let variable = |(name, value): (String, Value)| {
        let wrong = |problem: String| Error::field(format!("variables.{name}"), problem);
        if !is_name(&name) {
            return Err(wrong(format!(
                "is no name of a variable: letters, digits, _ and -, at most {MAX_NAME_CHARS}"
            )));
        }
        match value {
            Value::String(value) if value.contains('\0') => {
                Err(wrong("must not contain a NUL character".to_owned()))
            }
            Value::String(value) if value.len() > MAX_VALUE_BYTES => {
                Err(wrong(format!("has more than {MAX_VALUE_BYTES} bytes")))
            }
            Value::String(value) => Ok((name, value)),
            _ => Err(wrong("is no text".to_owned())),
        }
    };
    object.into_iter().map(variable).collect()
}

/// Returns whether expressions can name a variable so.
fn is_name(name: &str) -> bool {
    let has_length = name.chars().nth(MAX_NAME_CHARS).is_none();
    let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-');
    has_length
        && name.chars().all(is_of_name)
        && Expression::parse(&format!("env.{name}")).is_ok_and(|parsed| {
            let found = &parsed.references().variables;
            found.len() == 1 && found[0].name == name
        })
}

/// Refuses an update that takes away variables which are in use.
pub async fn refuse_removals(
    app: &App,
    db: &mut Db,
    before: &Environment,
    after: &Environment,
) -> Result<()> {
    for name in before.variables.keys() {
        if !after.variables.contains_key(name) {
            let id = variable_id(before.id.as_str(), name);
            users::refuse(app, db, &id, &format!("variable {name:?} is read by"), "").await?;
        }
    }
    Ok(())
}

/// Returns the variables as nodes get them.
pub fn to_plan(variables: &BTreeMap<String, String>) -> Vec<plan::Variable> {
    let variable = |(name, value): (&String, &String)| plan::Variable {
        name: name.clone(),
        value: value.clone(),
    };
    variables.iter().map(variable).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_texts_under_names_of_the_language() {
        let read = check(r#"{"REGION":"eu-1","shop-2":"","Größe_1":"x"}"#).unwrap();
        let names: Vec<&str> = read.keys().map(String::as_str).collect();
        assert_eq!(names, ["Größe_1", "REGION", "shop-2"]);
        let long = "x".repeat(MAX_NAME_CHARS);
        assert!(check(&format!(r#"{{"{long}":"x"}}"#)).is_ok());
        let refused = |json: &str| check(json).unwrap_err().details[0].field.clone();
        for (json, field) in [
            (r#"{"A":null}"#, "variables.A"),
            (r#"{"A":1}"#, "variables.A"),
            (r#"{"A":"\u0000"}"#, "variables.A"),
            (r#"{"A.B":"x"}"#, "variables.A.B"),
            (r#"{"A B":"x"}"#, "variables.A B"),
            (r#"{"":"x"}"#, "variables."),
            (r#"{"A":"x","\u0041":"x"}"#, "variables"),
            ("[]", "variables"),
            (r#""x""#, "variables"),
        ] {
            assert_eq!(refused(json), field, "{json}");
        }
        let name = "x".repeat(MAX_NAME_CHARS + 1);
        let long = format!(r#"{{"{name}":"x"}}"#);
        assert_eq!(refused(&long), format!("variables.{name}"));
        let large = format!(r#"{{"A":"{}"}}"#, "x".repeat(MAX_VALUE_BYTES + 1));
        assert_eq!(refused(&large), "variables.A");
        let many: Vec<String> = (0..=MAX_VARIABLES)
            .map(|n| format!("\"V{n}\":\"\""))
            .collect();
        assert_eq!(refused(&format!("{{{}}}", many.join(","))), "variables");
    }
}
