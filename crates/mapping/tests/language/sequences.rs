//! Transforms that evaluate an expression for each element, and those of lists of any kind.

use kanat_mapping::{Effort, Expression, Scope};

use crate::{NOW, check, evaluate, fails};

#[test]
fn an_expression_is_evaluated_for_each_element() {
    check("source.list | map(item * 2)", "[6,2,4,2]");
    check("source.list | map(item)", "[3,1,2,1.0]");
    check("source.list | map(index)", "[0,1,2,3]");
    check("source.lines | map(item.sku)", r#"["a",null]"#);
    check("source.list | where(item > 1)", "[3,2]");
    check("source.list | where(item > 1) | map(index)", "[0,1]");
    check("source.list | any(item == 2)", "true");
    check("source.none | any(true)", "false");
    check("source.list | all(item > 0)", "true");
    check("source.none | all(false)", "true");
    check("source.lines | sum(item.qty)", "5");
    check("source.lines | sum(item.price)", "3.15");
    check("source.none | sum(item)", "0");
    check("source.missing | map(item / 0)", "undefined");
    check("source.nothing | any(item)", "null");
    fails("source.name | map(item)", "expected a list, found a string");
    fails(
        "source.object | any(item)",
        "expected a list, found an object",
    );
}

#[test]
fn the_list_around_is_outer() {
    check(
        "source.orders | map(item.lines | map(outer.index * 10 + index + item.n / 10))",
        "[[0.1,1.2],[10.3]]",
    );
    check(
        "[1, 2] | map([3] | map([4] | map([item, outer.item, outer.outer.item])))",
        "[[[[4,3,1]]],[[[4,3,2]]]]",
    );
    check(
        "source.lines | map(source.list | where(item == outer.item.qty) | first)",
        "[2,3]",
    );
    // Arguments that are not evaluated for each element see the item around them.
    check("[[1], [2]] | map(item | contains(item[0]))", "[true,true]");
    check(
        "[1, 2, 3] | map([4, 5, 6] | slice(index))",
        "[[4,5,6],[5,6],[6]]",
    );
}

#[test]
fn sort_by_orders_by_keys_and_is_stable() {
    check(
        "source.lines | sort_by(item.qty) | reverse | map(item.qty)",
        "[3,2]",
    );
    check(
        r#"'[10,"b",9,null,true,"a",false,-1e1]' | parse_json | sort_by(item)"#,
        r#"[-1e1,9,10,"a","b",false,true,null]"#,
    );
    check("[3, 1.0, 2, 1] | sort_by(item)", "[1.0,1,2,3]");
    check(
        "[[2, 'b'], [1, 'a']] | sort_by(item[0]) | map(item[1])",
        r#"["a","b"]"#,
    );
    fails(
        "source.mixed | sort_by(item)",
        "a key to sort by: expected numbers, strings and booleans in the list, found an object",
    );
}

#[test]
fn group_by_takes_equal_keys_together() {
    check(
        "source.list | group_by(item)",
        r#"[{"key":3,"items":[3]},{"key":1,"items":[1,1.0]},{"key":2,"items":[2]}]"#,
    );
    check(
        "source.mixed | group_by(item.a)",
        r#"[{"key":null,"items":[1,"1",null,true]},{"key":1,"items":[{"a": 1}]}]"#,
    );
    check(
        "source.list | group_by([item > 1]) | map(item.key)",
        "[[true],[false]]",
    );
}

#[test]
fn extremes_are_the_first_of_equals_with_their_digits() {
    check("source.list | max", "3");
    check("[1.0, 1, 2.50] | min", "1.0");
    check("[null, 'b', 'a'] | min", r#""a""#);
    check("source.none | max", "undefined");
    check("[null] | max", "undefined");
    fails(
        "[1, 'a'] | min",
        "expected numbers alone or strings alone in the list, found a string",
    );
    fails(
        "[true] | max",
        "expected numbers alone or strings alone in the list, found a boolean",
    );
}

#[test]
fn lists_are_cut_turned_and_opened() {
    check("[[1, 2], 3, [[4]], []] | flatten", "[1,2,3,[4]]");
    check("[source.lines[0].sku] | flatten", r#"["a"]"#);
    check("source.list | reverse", "[1.0,2,1,3]");
    check("source.list | slice(1, 3)", "[1,2]");
    check("source.list | slice(-2)", "[2,1.0]");
    check("source.list | slice(0, -1)", "[3,1,2]");
    check("source.list | slice(3, 1)", "[]");
    check("source.list | slice(-99, 1e30)", "[3,1,2,1.0]");
    check(
        "source.list | slice(source.missing | default(2.0))",
        "[2,1.0]",
    );
    fails(
        "source.list | slice(1.5)",
        "expected whole numbers as places, found 1.5",
    );
    fails(
        "source.list | slice(null)",
        "expected whole numbers as places, found null",
    );
    fails("source.name | reverse", "expected a list, found a string");
}

#[test]
fn contains_is_in() {
    check("source.list | contains(1.00)", "true");
    check("source.object | contains('b')", "true");
    check("source.country | contains('d')", "true");
    check("source.id | contains(1)", "false");
    check("source.missing | contains(1)", "undefined");
}

#[test]
fn an_error_within_names_the_transform_within() {
    let error = evaluate("source.list | map(item / 0)").unwrap_err();
    assert_eq!(error.transform, Some("/"));
    let error = evaluate("source.lines | map(item.sku | trim | date(YYYY))").unwrap_err();
    assert_eq!(error.transform, Some("date"));
    assert_eq!(error.value.as_deref(), Some("\"a\""));
}

/// Evaluates on a list of so many ones, and returns the message of the error.
fn message(expression: &str, ones: usize) -> String {
    let source = format!("[{}]", vec!["1"; ones].join(","));
    let effort = Effort::default();
    let scope = Scope::new(source.as_bytes(), NOW, &effort);
    let expression = Expression::parse(expression).expect("it is an expression");
    match expression.evaluate(&scope) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.message,
    }
}

#[test]
fn an_evaluation_is_bound_in_what_it_does_reads_and_holds() {
    assert_eq!(
        message("source | map(source | map(1))", 4_000),
        "the evaluation takes more than 10,000,000 steps"
    );
    assert_eq!(
        message("source | map(source[0])", 20_000),
        "the evaluation reads more than 512 MiB"
    );
    assert_eq!(
        message("source | flatten", 1_000_001),
        "a list has more than 1,000,000 elements"
    );
    assert_eq!(message("source | flatten | length", 1_000_000), "no error");
    assert_eq!(
        message("[source, source] | flatten", 600_000),
        "a list has more than 1,000,000 elements"
    );
    // Each list of 14 MiB is held while the next one is made of its first element.
    let long = format!("source | map('{}')", "x".repeat(100));
    let held = format!("{long} | map({long} | map({long} | map({long} | map({long}))))");
    assert_eq!(
        message(&held, 140_000),
        "the evaluation holds more than 64 MiB in memory"
    );
}

#[test]
fn an_evaluation_after_one_that_went_too_far_begins_anew() {
    let source = format!("[{}]", vec!["1"; 4_000].join(","));
    let effort = Effort::default();
    let scope = Scope::new(source.as_bytes(), NOW, &effort);
    let far = Expression::parse("source | map(source | map(1))").unwrap();
    assert!(far.evaluate(&scope).is_err());
    let near = Expression::parse("source[0]").unwrap();
    assert!(near.evaluate(&scope).is_ok());
}
