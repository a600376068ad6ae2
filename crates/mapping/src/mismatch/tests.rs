//! Comparisons that conditions and expressions are told of.

use kanat_model::Timestamp;

use crate::{Effort, Expression, Scope};

#[track_caller]
fn check(condition: &str, source: &str, expected: Option<&str>) {
    let effort = Effort::default();
    let scope = Scope {
        instance: br#"{"limit": "7"}"#,
        ..Scope::new(source.as_bytes(), Timestamp::from_millis(0), &effort)
    };
    let condition = Expression::parse(condition).unwrap();
    assert!(!condition.evaluate(&scope).unwrap().truthy());
    assert_eq!(condition.mismatch(&scope).as_deref(), expected);
}

#[test]
fn names_a_text_that_is_compared_with_a_number() {
    let advised = r#"the condition compares a text ("5") with a number; use source.qty | number"#;
    let source = r#"{"qty": "5", "unit": "kg", "limit": 3, "paid": true}"#;
    for condition in [
        "source.qty > 3",
        "3 < source.qty",
        "source.qty == 5",
        "source.paid and source.qty > 3",
        "source.limit > 9 or source.qty > 3",
        "not (source.qty != 5)",
    ] {
        check(condition, source, Some(advised));
    }
    check(
        "(source.qty | trim) > 3",
        source,
        Some(concat!(
            r#"the condition compares a text ("5") with a number; "#,
            "`number` makes one of a text"
        )),
    );
    check(
        "source.limit > '2'",
        source,
        Some(r#"the condition compares a text ("2") with a number; write 2 without quotes"#),
    );
    check(
        "source.unit > 3",
        source,
        Some(r#"the condition compares a text ("kg") with a number"#),
    );
    check("source.unit == 3", source, None);
    check("source.limit > 3", source, None);
    // The other side of `and` is not at fault.
    check("source.limit > 3 and source.qty > 3", source, None);
}

#[test]
fn names_a_text_in_a_list_and_in_a_choice() {
    let advised = concat!(
        r#"the condition compares a text ("10") with a number; "#,
        "use item.qty | number"
    );
    let source = r#"{"lines": [{"qty": "10", "sizes": [{"n": "7"}]}], "qty": "10"}"#;
    for condition in [
        "source.lines | any(item.qty > 5)",
        "(source.lines | where(item.qty > 5) | length) > 0",
        "source.lines | where(item.qty > 5) | first",
        "not (source.lines | all(not item.qty > 5))",
        "(source.lines | map(if(item.qty > 5, 1, 0)) | sum) > 0",
        "false or [source.lines | any(item.qty == 10)] == [true]",
    ] {
        check(condition, source, Some(advised));
    }
    check(
        "source.lines | any(item.sizes | any(outer.item.qty == 10 or item.n > 5))",
        source,
        Some(concat!(
            r#"the condition compares a text ("10") with a number; "#,
            "use outer.item.qty | number"
        )),
    );
    check(
        "if(source.qty > 5, true, false)",
        source,
        Some(concat!(
            r#"the condition compares a text ("10") with a number; "#,
            "use source.qty | number"
        )),
    );
    // The branch that is not taken, and items that lack the member, are no fault.
    check("if(source.no, source.qty > 5, false)", source, None);
    check("source.lines | any(item.no > 5)", source, None);
}

#[test]
fn names_numeric_texts_that_are_ordered_as_texts() {
    let source = r#"{"rows": [{"qty": "9", "zip": "0815"}, {"qty": "", "zip": "10"},
        {"qty": "10", "day": "2026-01-31"}]}"#;
    let advised = |name: &str| {
        format!(r#"the condition orders numeric texts ("9") as texts in {name}; "#,)
            + "`number` makes numbers of them"
    };
    for (condition, name) in [
        ("(source.rows | map(item.qty) | max) == 'x'", "max"),
        ("(source.rows | map(item.qty) | min) == 'x'", "min"),
        (
            "(source.rows | map(item.qty) | sort | first) == 'x'",
            "sort",
        ),
        ("(source.rows | sort_by(item.qty) | length) > 9", "sort_by"),
        ("([20, '9'] | sort | first) == 'x'", "sort"),
    ] {
        check(condition, source, Some(&advised(name)));
    }
    for condition in [
        "(source.rows | where(item.qty) | map(item.qty | number) | max) == 'x'",
        "(source.rows | map(item.zip) | max) == 'x'",
        "(source.rows | map(item.day) | max) == 'x'",
        "(source.rows | sort_by(item.zip) | length) > 9",
        "([20, 9] | sort | first) == 'x'",
    ] {
        check(condition, source, None);
    }
}

#[test]
fn names_what_is_missing() {
    check(
        "source.order.qty > 3",
        "{}",
        Some(
            "the condition compares source.order.qty with a number, but source.order is \
             undefined",
        ),
    );
    check(
        "source.qty > 3",
        r#"{"qty": null}"#,
        Some("the condition compares source.qty with a number, but source.qty is null"),
    );
    check("source.qty > source.limit", "{}", None);
    check("source.qty", "{}", None);
}

#[test]
fn shows_nothing_of_an_instance() {
    check(
        "instance.limit > 3",
        "{}",
        Some("the condition compares a text with a number; use instance.limit | number"),
    );
}
