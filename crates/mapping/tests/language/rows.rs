//! What flows wrote before the language had arithmetic means what it meant: a table of expressions
//! and templates with their results, made by the parser of that time.
//!
//! `rows/table.txt` has a row a line: the text, the number of its payload, and the value as JSON,
//! `undefined`, or `!` with the transform that fails and its message. Texts that were errors of
//! parsing are not in it. Most of them are those of `rows/generator.rs`; the others stand in the
//! examples, the documentation and the tests of that time.
//!
//! Two things changed their meaning, and these alone: the bare arguments `env.NAME` and
//! `response.NAME` were texts, and are paths.

mod generator;

use std::collections::HashSet;

use kanat_mapping::{EvaluationError, Expression, Scope, Template, Value};

use crate::scope;
use generator::Generator;

const TABLE: &str = include_str!("rows/table.txt");
const ROWS: usize = 5_000;

/// Payloads of the table, by their numbers.
const PAYLOADS: [&str; 3] = [
    r#"{"id": 17, "total": 149.5, "price": 1.10, "big": 9007199254740993, "zero": 0,
        "name": " Grüße \n", "empty": "", "nothing": null, "country": "de", "amount": "149.505",
        "yes": true, "no": false, "when": "2026-01-31T08:15:00.123Z", "list": [3, 1, 2, 1.0],
        "none": [], "mixed": [1, "1", null, true, {"a": 1}], "words": ["b", "a-b", "c"],
        "lines": [{"sku": "a", "qty": 2, "price": "1.10"}, {"qty": 3, "price": 2}],
        "object": {"b": 1, "a": {"c": 2}}, "odd name": "x", "a-1": 5, "a": 6, "if": "yes",
        "in": [1], "not": false, "index": 3, "and": {"or": "x"}, "coalesce": [7], "größe": 3,
        "sep": ";"}"#,
    r#"{"id": "a-b-c", "total": "12", "price": -0.05, "big": 1e400, "zero": "0", "name": "de",
        "empty": 0, "nothing": [], "country": "FR", "amount": -3, "yes": "on", "no": "off",
        "when": 1769847300, "list": ["x", "y"], "none": {}, "mixed": "a,b,c", "words": [],
        "lines": [], "object": [], "odd name": null, "a-1": null, "a": "source.a"}"#,
    "[1, {\"id\": 2}, \"item\"]",
];

fn result(text: &str, payload: &str) -> String {
    let scope = Scope {
        source: payload.as_bytes(),
        ..scope()
    };
    let shown = |value: Result<Value, EvaluationError>| match value {
        Ok(Value::Undefined) => "undefined".to_owned(),
        Ok(value) => {
            let mut out = Vec::new();
            value.write_json(&mut out);
            String::from_utf8(out).expect("output is text")
        }
        Err(error) => format!(
            "!{}: {}",
            error.transform.unwrap_or_default(),
            error.message
        ),
    };
    if text.contains("{{") {
        let template = Template::parse(text);
        return shown(template.expect("a template").evaluate(&scope));
    }
    let expression = Expression::parse(text);
    shown(expression.expect("an expression").evaluate(&scope))
}

#[test]
fn what_flows_wrote_before_means_the_same() {
    let rows: Vec<_> = TABLE.lines().collect();
    assert_eq!(rows.len(), ROWS);
    let wrong: Vec<_> = rows.into_iter().filter_map(difference).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns a row with what it gives instead, unless it means the same.
fn difference(row: &str) -> Option<String> {
    let [text, payload, expected] = row.split('\t').collect::<Vec<_>>()[..] else {
        panic!("no row: {row}");
    };
    let payload = PAYLOADS[payload.parse::<usize>().expect("the number of a payload")];
    let found = result(text, payload);
    // A message may say more than it did.
    let is_same = found == expected || expected.starts_with('!') && found.starts_with(expected);
    (!is_same && !changed_its_meaning(text)).then(|| format!("{row}\t{found}"))
}

fn changed_its_meaning(text: &str) -> bool {
    text.contains("env.X")
        || text
            .replace("target.response", "")
            .contains("response.status")
}

#[test]
fn two_arguments_that_were_texts_are_paths() {
    let scope = Scope {
        variables: br#"{"X": "value"}"#,
        ..scope()
    };
    for (text, expected) in [
        ("source.missing | default(env.X)", Value::plain("value")),
        (
            "source.missing | default(response.status)",
            Value::number("202"),
        ),
        ("'' | concat(env.X)", Value::plain("value")),
    ] {
        assert!(changed_its_meaning(text));
        let expression = Expression::parse(text).expect("an expression");
        assert_eq!(
            expression.evaluate(&scope).expect("a value").text(),
            expected.text()
        );
    }
}

#[test]
fn most_rows_are_those_of_the_generator() {
    let mut generator = Generator::new(2026);
    let generated: HashSet<_> = (0..20_000).map(|_| generator.text()).collect();
    let texts = TABLE.lines().filter_map(|row| row.split('\t').next());
    assert!(texts.filter(|text| generated.contains(*text)).count() > ROWS * 9 / 10);
}
