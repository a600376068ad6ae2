//! The language by examples: an expression, a payload, and what comes out.

use std::collections::HashMap;

use kanat_mapping::{Effort, Expression, Lookup, Scope, Tables, Value};
use kanat_model::Timestamp;

mod language {
    mod arithmetic;
    mod conditions;
    mod effort;
    mod examples;
    mod lists;
    mod mappings;
    mod numbers;
    mod paths;
    mod rows;
    mod sequences;
    mod templates;
    mod text;
}

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);
const SOURCE: &str = r#"{
    "id": 17, "total": 149.5, "big": 9007199254740993, "price": 1.10, "huge": 1e400, "zero": 0,
    "yes": true, "no": false,
    "name": " Grüße \n", "empty": "", "nothing": null, "country": "de", "amount": "149.505",
    "escaped": "a\/b\u00e9",
    "odd name": "x", "größe": 3, "list": [3, 1, 2, 1.0], "mixed": [1, "1", null, true, {"a": 1}],
    "none": [],
    "lines":
    [{"sku": "a", "qty": 2, "price": "1.10"}, {"qty": 3, "price": 2}, {"sku": null, "price": 0.05}],
    "orders": [{"lines": [{"n": 1}, {"n": 2}]}, {"lines": [{"n": 3}]}],
    "object": {"b": 1, "a": {"c": 2}}
}"#;

struct OneTable;

impl Tables for OneTable {
    fn lookup<'t>(&'t self, table: &str, key: &str) -> Lookup<'t> {
        match (table, key) {
            ("countries", "de") => Lookup::Value("Germany"),
            ("countries", "17" | "true") => Lookup::Value("by its text"),
            ("countries", "") => Lookup::Value("empty"),
            ("countries", _) => Lookup::NoKey,
            _ => Lookup::NoTable,
        }
    }
}

fn scope() -> Scope<'static> {
    Scope {
        trigger: br#"{"headers": {"x-shop": "north"}, "query": {"q": "1"}, "method": "POST",
            "path_params": {"id": "7"}}"#,
        steps: br#"{"contact": {"output": {"id": "c1"}, "status": 201}}"#,
        target: br#"{"response": {"body": {"ok": true}, "status": 200}}"#,
        instance: br#"{"region": "eu", "secret": "hunter2"}"#,
        state: br#"{"cursor": "c9"}"#,
        response: br#"{"status": 202, "headers": {"x-request-id": "r1"}, "body": {"ok": false}}"#,
        tables: &OneTable,
        ..Scope::new(SOURCE.as_bytes(), NOW, unbounded())
    }
}

/// The effort of an evaluation of its own, without the bound that all of an attempt share.
fn unbounded() -> &'static Effort {
    Box::leak(Box::new(Effort::new(u64::MAX)))
}

/// The JSON that an expression gives; `undefined` when it gives none.
#[track_caller]
fn evaluate(expression: &str) -> Result<String, kanat_mapping::EvaluationError> {
    let parsed =
        Expression::parse(expression).unwrap_or_else(|errors| panic!("{expression}: {errors:?}"));
    let scope = scope();
    let value = parsed.evaluate(&scope)?;
    if value == Value::Undefined {
        return Ok("undefined".to_owned());
    }
    let mut out = Vec::new();
    value.write_json(&mut out);
    Ok(String::from_utf8(out).expect("output is text"))
}

#[track_caller]
fn check(expression: &str, expected: &str) {
    match evaluate(expression) {
        Ok(found) => assert_eq!(found, expected, "{expression}"),
        Err(error) => panic!("{error}"),
    }
}

/// The expression fails, and says so in these words.
#[track_caller]
fn fails(expression: &str, message: &str) {
    match evaluate(expression) {
        Ok(found) => panic!("{expression} gives {found}"),
        Err(error) => assert_eq!(error.message, message, "{expression}"),
    }
}

#[test]
fn an_error_names_expression_transform_and_value() {
    let error = evaluate("source.name | trim | decimal(2)").unwrap_err();
    assert_eq!(error.expression, "source.name | trim | decimal(2)");
    assert_eq!(error.transform, Some("decimal"));
    assert_eq!(error.value.as_deref(), Some("\"Grüße\""));
    assert_eq!(
        error.to_string(),
        "given \"Grüße\": expected a number or a numeric string: it is not a number, in the \
         transform decimal of the expression `source.name | trim | decimal(2)`"
    );
}

#[test]
fn an_error_says_once_that_a_value_is_missing() {
    let error = evaluate("source.order.id | required").unwrap_err();
    assert_eq!(error.value.as_deref(), Some("undefined"));
    assert_eq!(
        error.to_string(),
        "a value is required, found undefined at source.order, in the transform required of the \
         expression `source.order.id | required`"
    );
    let error = evaluate("source.nothing * 2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the left side of `*` is null, expected a number; `default` gives one where there is \
         none, in the operator * of the expression `source.nothing * 2`"
    );
}

#[test]
fn an_error_names_the_key_that_a_table_lacks() {
    let error = evaluate("source.name | trim | lookup(countries) | uppercase | required");
    assert_eq!(
        error.unwrap_err().to_string(),
        "given \"Grüße\": a value is required, found undefined: the lookup table \"countries\" \
         has no such key, in the transform required of the expression \
         `source.name | trim | lookup(countries) | uppercase | required`"
    );
    let error =
        evaluate("source.name | lookup(countries) | default(x) | lookup(countries) | required");
    assert_eq!(error.unwrap_err().value.as_deref(), Some("\"x\""));
    // Without a key nothing is looked up.
    let error = evaluate("source.order | lookup(countries) | required");
    let error = error.unwrap_err().to_string();
    assert!(error.contains("found undefined at source.order"), "{error}");
    let error = evaluate("instance.secret | lookup(countries) | required").unwrap_err();
    assert_eq!(error.value, None);
    assert!(!error.to_string().contains("hunter2"));
}

#[test]
fn an_error_says_that_a_body_was_no_text() {
    let scope = Scope::new(br#"{"base64":"YQ=="}"#, NOW, unbounded());
    let expression = Expression::parse("source | parse_csv").unwrap();
    assert_eq!(
        expression.evaluate(&scope).unwrap_err().message,
        "expected a string, found an object of bytes (base64): the body is not UTF-8, or has a \
         content type that is no text"
    );
}

#[test]
fn an_error_shows_no_more_than_200_characters() {
    let source = format!("\"{}\"", "é".repeat(1000));
    let scope = Scope::new(source.as_bytes(), NOW, unbounded());
    let expression = Expression::parse("source | number").unwrap();
    let shown = expression.evaluate(&scope).unwrap_err().value.unwrap();
    assert_eq!(shown.chars().count(), 201);
    assert!(shown.ends_with('…'));
}

#[test]
fn an_error_hides_secrets_before_it_cuts_a_value() {
    let secret = format!("Bearer {}", "part.".repeat(200));
    let source = format!("[\"{}\", \"{secret}\"]", "é".repeat(150));
    let mask = kanat_model::Mask::new([&secret]);
    let scope = Scope {
        mask: &mask,
        ..Scope::new(source.as_bytes(), NOW, unbounded())
    };
    let expression = Expression::parse("source | number").unwrap();
    let shown = expression.evaluate(&scope).unwrap_err().value.unwrap();
    assert!(
        shown.ends_with("éé\", \"********\"]") && !shown.contains("Bearer"),
        "{shown}"
    );
}

#[test]
fn an_error_shows_no_secret_of_a_connector() {
    for expression in [
        "instance.secret | decimal(2)",
        "source.name | concat(instance.secret) | number",
    ] {
        let error = evaluate(expression).unwrap_err();
        assert_eq!(error.value, None);
        assert!(!error.to_string().contains("hunter2"));
    }
}

#[test]
fn a_map_of_maps_serves_as_tables() {
    let tables = HashMap::from([(
        "t".to_owned(),
        HashMap::from([("k".to_owned(), "v".to_owned())]),
    )]);
    assert_eq!(tables.lookup("t", "k"), Lookup::Value("v"));
    assert_eq!(tables.lookup("t", "x"), Lookup::NoKey);
    assert_eq!(tables.lookup("x", "k"), Lookup::NoTable);
}
