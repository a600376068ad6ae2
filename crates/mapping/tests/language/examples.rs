//! The language by a table that people read: `examples/table.txt` has an expression a line, what it
//! gives for `examples/payload.json` after `=>`, and the reason after `error:` where it fails.

use kanat_mapping::{Expression, Scope, Value};

use crate::scope;

const TABLE: &str = include_str!("examples/table.txt");
const PAYLOAD: &str = include_str!("examples/payload.json");
const FEWEST: usize = 200;

fn result(text: &str) -> String {
    let scope = Scope {
        source: PAYLOAD.as_bytes(),
        variables: br#"{"REGION": "eu-1"}"#,
        response: br#"{"status": 200, "body": {"ok": true}}"#,
        ..scope()
    };
    let parsed = match Expression::parse(text) {
        Ok(parsed) => parsed,
        Err(errors) => return format!("error: {}", errors[0].message),
    };
    match parsed.evaluate(&scope) {
        Ok(Value::Undefined) => "undefined".to_owned(),
        Ok(value) => {
            let mut out = Vec::new();
            value.write_json(&mut out);
            String::from_utf8(out).expect("output is text")
        }
        Err(error) => format!("error: {}", error.message),
    }
}

#[test]
fn every_example_gives_what_the_table_says() {
    let rows = TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    let mut wrong = Vec::new();
    for row in rows {
        let (text, expected) = row.split_once(" => ").expect("a row has `=>`");
        let found = result(text.trim());
        if found != expected.trim() {
            wrong.push(format!(
                "{}\n  gives    {found}\n  expected {}",
                text.trim(),
                expected.trim()
            ));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= FEWEST, "{count} examples");
}
