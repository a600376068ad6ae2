//! Charges of evaluations, and the end of those that take too much.

use kanat_mapping::{Effort, Expression, Mapping, Scope};
use kanat_model::message::ErrorKind;

use super::mappings::Field::{self, Each, Text};
use super::mappings::mapping;
use crate::NOW;

/// A payload with `count` items, a text and a number as long as those, and an object of as many
/// members.
fn payload(count: usize) -> String {
    let items = vec![r#"{"id":1,"q":1}"#; count].join(",");
    let ones = vec!["1"; count].join(",");
    let members: Vec<_> = (0..count).map(|n| format!("\"k{n}\":1")).collect();
    format!(
        r#"{{"items":[{items}],"ones":[{ones}],"keys":{{{}}},"text":"{}","digits":{}}}"#,
        members.join(","),
        "a".repeat(count),
        "1".repeat(count)
    )
}

fn write(mapping: &Mapping, payload: &str) -> u64 {
    let effort = Effort::default();
    mapping
        .write(&Scope::new(payload.as_bytes(), NOW, &effort), &mut vec![])
        .expect("an output");
    Effort::MAX - effort.left()
}

#[test]
fn an_attempt_that_takes_too_much_work_fails_for_good() {
    let inner: &[(&str, Field)] = &[("of", Text("source.items[*].q | sum"))];
    let lines = mapping(&[
        ("id", Text("source.id")),
        ("lines", Each("source.items", inner)),
    ]);
    let effort = Effort::new(1_000_000);
    let payload = payload(1000);
    let scope = Scope::new(payload.as_bytes(), NOW, &effort);
    let mut out = Vec::new();
    let error = lines.write(&scope, &mut out).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Mapping);
    let field = error.field.as_deref().unwrap();
    assert!(
        field.starts_with("lines[") && field.ends_with("].of"),
        "{field}"
    );
    assert_eq!(error.expression, "source.items[*].q | sum");
    assert_eq!(
        error.message,
        "the attempt takes more work than it may: 1000 million steps"
    );
    assert!(out.is_empty());

    // All that the attempt evaluates takes of the same.
    let other = Expression::parse("source.id").unwrap();
    assert_eq!(other.evaluate(&scope).unwrap_err().message, error.message);
}

#[test]
fn a_list_that_is_walked_too_often_is_named_by_its_field() {
    let lines = mapping(&[("lines", Each("source.ones", &[("one", Text("1"))]))]);
    let effort = Effort::new(40_000);
    let payload = payload(1000);
    let scope = Scope::new(payload.as_bytes(), NOW, &effort);
    let error = lines.write(&scope, &mut Vec::new()).unwrap_err();
    let field = error.field.as_deref().unwrap();
    assert!(field.starts_with("lines"), "{field}");
    assert!(["source.ones", "1"].contains(&error.expression.as_str()));
}

#[test]
fn what_flows_do_is_far_below_the_bound() {
    let payload = payload(20_000);
    let once = write(
        &mapping(&[("sum", Text("source.items[*].q | sum"))]),
        &payload,
    );
    assert!(once < Effort::MAX / 100, "{once}");

    let two: &[(&str, Field)] = &[
        ("id", Text("item.id | string | required")),
        ("q", Text("{{ item.q | decimal(2) }} pieces")),
    ];
    let each = write(&mapping(&[("lines", Each("source.items", two))]), &payload);
    assert!(each < Effort::MAX / 20, "{each}");

    let names: Vec<_> = (0..1000).map(|n| format!("field{n}")).collect();
    let texts: Vec<_> = (0..1000)
        .map(|n| format!("source.keys.k{n} | decimal(2)"))
        .collect();
    let fields: Vec<_> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (name.as_str(), Text(text)))
        .collect();
    let thousand = write(&mapping(&fields), &payload);
    assert!(thousand < Effort::MAX / 100, "{thousand}");
}

#[test]
fn whatever_walks_or_reads_is_charged_for_all_of_it() {
    const COUNT: usize = 1000;
    let payload = payload(COUNT);
    for text in [
        "source.items[*].q",
        "source.items[999].q",
        "source.items | length",
        "source.items | first",
        "source.items | last",
        "source.ones | sum",
        "source.ones | unique",
        "source.ones | sort",
        "source.ones | join(',')",
        "source.items == source.items",
        "source.keys | keys",
        "source.keys | values",
        "source.keys | length",
        "source.keys.k1",
        "source.keys == source.keys",
        "'x' in source.items",
        "'x' in source.keys",
        "'x' in source.text",
        "'x' == source.text",
        "'x' < source.text",
        "source.text | uppercase",
        "source.text | json",
        "source.text | split('')",
        "'x' | concat(source.text)",
        "'x' | replace(x, source.text) | concat(source.text) | concat(source.text)",
        "source.digits | round(0)",
        "source.digits == 2",
        "not source.digits",
        "source.digits or true",
        "source.digits and true",
    ] {
        let effort = Effort::default();
        let scope = Scope::new(payload.as_bytes(), NOW, &effort);
        let expression =
            Expression::parse(text).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
        expression
            .evaluate(&scope)
            .unwrap_or_else(|error| panic!("{error}"));
        // Once for finding it in the payload, and once more.
        let used = Effort::MAX - effort.left() - payload.len() as u64;
        assert!(used > COUNT as u64, "{text}: {used}");
    }
    // A number that is compared with each of many is read each time.
    let effort = Effort::default();
    let scope = Scope::new(payload.as_bytes(), NOW, &effort);
    let among = Expression::parse("source.digits in source.ones").unwrap();
    among.evaluate(&scope).unwrap();
    let used = Effort::MAX - effort.left();
    assert!(used > (COUNT * COUNT) as u64, "{used}");
    // Numbers that stand far apart make a long sum.
    let effort = Effort::default();
    let far = br#"[1e10000, -1e10000, 1e-10000, -1e-10000]"#;
    let sum = Expression::parse("source | sum").unwrap();
    sum.evaluate(&Scope::new(far, NOW, &effort)).unwrap();
    let used = Effort::MAX - effort.left();
    assert!(used > 20_000, "{used}");
}

#[test]
fn a_key_that_is_there_again_and_again_is_charged_for_all_that_it_holds() {
    let names: Vec<_> = (0..500).map(|n| format!("field{n}")).collect();
    let texts: Vec<_> = (0..500).map(|n| format!("source.a.x{n}")).collect();
    let fields: Vec<_> = names
        .iter()
        .zip(&texts)
        .map(|(name, text)| (name.as_str(), Text(text)))
        .collect();
    let payload = format!("{{\"a\":{{}}{}}}", ",\"a\":{}".repeat(500));
    let used = write(&mapping(&fields), &payload);
    assert!(used > 500 * 500, "{used}");
}

#[test]
fn a_secret_is_returned_even_when_it_took_the_last_steps() {
    let template = kanat_mapping::Template::parse("{{ instance.secret }}").unwrap();
    let effort = Effort::new(1);
    let scope = Scope {
        instance: br#"{"secret": "hunter2"}"#,
        ..Scope::new(b"", NOW, &effort)
    };
    assert!(template.evaluate(&scope).is_err());
    let texts = template.secret_texts(&scope, &|_: &[String]| true);
    assert_eq!(texts, ["hunter2"]);
}
