//! The examples of the language have their values, and the schema is that of its keys.

use kanat_mapping::{Effort, Expression, Scope, Value};
use kanat_model::Timestamp;

use super::*;

/// Evaluates an expression on a payload.
fn evaluate(expression: &str, source: &str) -> String {
    let effort = Effort::default();
    let scope = Scope::new(source.as_bytes(), Timestamp::from_millis(0), &effort);
    let parsed =
        Expression::parse(expression).unwrap_or_else(|errors| panic!("{expression}: {errors:?}"));
    let value = parsed
        .evaluate(&scope)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_ne!(value, Value::Undefined, "{expression}");
    let mut json = Vec::new();
    value.write_json(&mut json);
    String::from_utf8(json).unwrap()
}

#[test]
fn every_example_gives_its_value() {
    for function in transforms().chain(FUNCTIONS.iter().copied()) {
        let Example {
            expression,
            source,
            value,
        } = function.example;
        assert!(expression.contains(function.name), "{expression}");
        if let Some(value) = value {
            let found = evaluate(expression, source.unwrap_or_default());
            assert_eq!(found, value, "{expression}");
        } else {
            assert!(Expression::parse(expression).is_ok(), "{expression}");
        }
    }
    for operator in OPERATORS {
        let parsed = Expression::parse(operator.example);
        assert!(parsed.is_ok(), "{}", operator.example);
    }
}

#[test]
fn the_schema_in_the_tree_is_that_of_the_table() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../schemas/flow.schema.json"
    );
    let stored = std::fs::read_to_string(path).unwrap();
    assert!(
        stored == schema(),
        "write it anew: kanat flow schema > schemas/flow.schema.json"
    );
}

#[test]
fn the_schema_takes_every_example() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/flows");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let yaml = std::fs::read_to_string(&path).unwrap();
        let definition = crate::parse(&yaml).unwrap();
        let tree = serde_json::from_str(&crate::config_json(&definition)).unwrap();
        let errors: Vec<_> = validator
            .iter_errors(&tree)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, [""; 0], "{path:?}");
        count += 1;
    }
    assert!(count > 5, "{count}");
}

#[test]
fn what_the_schema_refuses_the_compiler_refuses() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let flow = |rest: &str| {
        format!("flow: f\nsource: {{trigger: manual}}\ntarget: {{connector: c, endpoint: /x{rest}")
    };
    for (yaml, taken) in [
        (flow("}\n"), true),
        (
            flow(", method: pOsT, timeout: 1m30s, success_when: true}\n"),
            true,
        ),
        (
            flow("}\nwhen: 5\nmapping: {a: {each: source.x, map: {b: 1.5}}}\n"),
            true,
        ),
        (flow(", method: PSOT}\n"), false),
        (flow(", timeout: soon}\n"), false),
        (flow(", timeout: 30}\n"), false),
        (flow("}\non_error: {retry: often}\n"), false),
        (flow("}\nmapping: {}\n"), false),
        (flow("}\nmapping: {a: {b: source.c}}\n"), false),
        (flow("}\nmapping: {a: [source.c]}\n"), false),
        (flow("}\nversion: 0\n"), false),
        (flow("}\nname: g\n"), false),
        (flow("}\nsteps: []\n"), false),
        (flow("}\nsteps: [{name: a b, action: x.y}]\n"), false),
        (flow("}\nsteps: [{name: a}]\n"), false),
        (flow("}\nnope: 1\n"), false),
    ] {
        let tree = crate::yaml::read(&yaml).0.unwrap();
        let tree = serde_json::from_str(&tree.to_json()).unwrap();
        assert_eq!(validator.is_valid(&tree), taken, "{yaml}");
        assert_eq!(crate::parse(&yaml).is_ok(), taken, "{yaml}");
    }
}
