//! Mappings: fields, nesting, lists mapped item by item.

use kanat_mapping::{EvaluationError, Expression, FieldValue, Mapping, Template};

use crate::scope;

/// The fields of a mapping as a definition writes them: a list and its map are `each` and `map`.
pub(super) enum Field<'t> {
    Text(&'t str),
    Each(&'t str, &'t [(&'t str, Field<'t>)]),
}
use Field::{Each, Text};

pub(super) fn mapping(fields: &[(&str, Field)]) -> Mapping {
    let value = |field: &Field| match field {
        Text(text) if text.contains("{{") => {
            FieldValue::Template(Template::parse(text).expect("a template"))
        }
        Text(text) => FieldValue::Expression(Expression::parse(text).expect("an expression")),
        Each(list, map) => FieldValue::Each {
            list: Expression::parse(list).expect("an expression"),
            filter: None,
            map: Box::new(mapping(map)),
        },
    };
    let fields = fields
        .iter()
        .map(|(name, field)| ((*name).to_owned(), value(field)))
        .collect();
    Mapping::new(fields).expect("no conflict")
}

fn write(fields: &[(&str, Field)]) -> Result<String, EvaluationError> {
    let mut out = b"before".to_vec();
    let result = mapping(fields).write(&scope(), &mut out);
    let out = String::from_utf8(out).expect("output is text");
    assert!(out.starts_with("before") && (result.is_ok() || out == "before"));
    result.map(|()| out["before".len()..].to_owned())
}

#[track_caller]
fn check(fields: &[(&str, Field)], expected: &str) {
    assert_eq!(write(fields).as_deref(), Ok(expected));
}

#[test]
fn writes_fields_in_their_order_and_leaves_out_the_undefined() {
    check(
        &[
            ("order_id", Text("source.id | required")),
            ("missing", Text("source.missing")),
            ("nothing", Text("source.nothing")),
            ("big", Text("source.big")),
            ("country", Text("source.country | lookup(countries, ZZ)")),
            (
                "greeting",
                Text("Dear {{ source.country | uppercase }}, {{ source.missing }}!"),
            ),
            ("id", Text("{{ source.id }}")),
            ("none", Text("{{ source.missing }}")),
            ("processed_at", Text("'' | now")),
        ],
        concat!(
            r#"{"order_id":17,"nothing":null,"big":9007199254740993,"country":"Germany","#,
            r#""greeting":"Dear DE, !","#,
            r#""id":17,"processed_at":"2026-01-31T08:15:00.123Z"}"#
        ),
    );
    check(&[], "{}");
    check(&[("a", Text("source.missing"))], "{}");
}

#[test]
fn dotted_names_nest_where_they_are_first_mentioned() {
    check(
        &[
            ("customer.name", Text("source.country")),
            ("total", Text("source.total")),
            ("customer.address.city", Text("source.zero")),
            ("customer.none", Text("source.missing")),
        ],
        r#"{"customer":{"name":"de","address":{"city":0}},"total":149.5}"#,
    );
    check(
        &[("a.b.c", Text("source.missing")), ("d", Text("1"))],
        r#"{"d":1}"#,
    );
    check(&[("a \"b\"", Text("1"))], r#"{"a \"b\"":1}"#);
}

#[test]
fn maps_a_list_item_by_item() {
    check(
        &[(
            "lines",
            Each(
                "source.lines",
                &[
                    ("sku", Text("item.sku | uppercase")),
                    ("qty", Text("item.qty")),
                    ("of", Text("source.id")),
                ],
            ),
        )],
        r#"{"lines":[{"sku":"A","qty":2,"of":17},{"qty":3,"of":17},{"sku":null,"of":17}]}"#,
    );
    check(
        &[("x", Each("source.none", &[("a", Text("1"))]))],
        r#"{"x":[]}"#,
    );
    check(
        &[("x", Each("source.list", &[("v", Text("item"))]))],
        r#"{"x":[{"v":3},{"v":1},{"v":2},{"v":1.0}]}"#,
    );
}

#[test]
fn maps_lists_within_lists() {
    let inner = [
        ("n", Text("item.n")),
        ("id", Text("source.id")),
        ("tag", Text("n{{ item.n }}")),
    ];
    let lines = Each("item.lines", &inner);
    check(
        &[(
            "orders",
            Each(
                "source.orders",
                &[("lines", lines), ("first", Text("item.lines[0].n"))],
            ),
        )],
        concat!(
            r#"{"orders":[{"lines":[{"n":1,"id":17,"tag":"n1"},{"n":2,"id":17,"tag":"n2"}],"#,
            r#""first":1},"#,
            r#"{"lines":[{"n":3,"id":17,"tag":"n3"}],"first":3}]}"#
        ),
    );
}

#[test]
fn a_missing_list_is_left_out_and_anything_else_is_an_error() {
    check(
        &[
            ("x", Each("source.missing", &[])),
            ("y", Each("source.nothing", &[])),
        ],
        "{}",
    );
    let error = write(&[("x.y", Each("source.id", &[]))]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field \"x.y\": given 17: expected a list, found a number, in the expression `source.id`"
    );
}

#[test]
fn an_error_names_the_field_with_its_items() {
    let error = write(&[(
        "a.lines",
        Each("source.lines", &[("price", Text("item.qty | required"))]),
    )])
    .unwrap_err();
    assert_eq!(error.field.as_deref(), Some("a.lines[2].price"));
    assert_eq!(error.expression, "item.qty | required");
    assert_eq!(error.transform, Some("required"));
    assert_eq!(error.value.as_deref(), Some("undefined"));
}

#[test]
fn fields_that_cannot_be_together_are_refused() {
    let conflicts = |names: &[&str]| {
        let one = Expression::parse("1").expect("an expression");
        let fields = names
            .iter()
            .map(|name| ((*name).to_owned(), FieldValue::Expression(one.clone())))
            .collect();
        Mapping::new(fields)
            .map(|_| ())
            .unwrap_err()
            .into_iter()
            .map(|conflict| conflict.message)
            .collect::<Vec<_>>()
    };
    assert_eq!(conflicts(&["a", "a"]), ["the field \"a\" is there twice"]);
    assert_eq!(
        conflicts(&["a", "a.b"]),
        ["the field \"a.b\" cannot be inside \"a\", which is a field itself"]
    );
    assert_eq!(
        conflicts(&["a.b", "a"]),
        ["the field \"a\" cannot also have fields inside"]
    );
    assert_eq!(conflicts(&["a.b", "a.b", "", "x..y"]).len(), 3);
    assert_eq!(
        conflicts(&[&vec!["a"; 65].join(".")]),
        ["fields nest deeper than 64 levels"]
    );
    assert_eq!(conflicts(&[&vec!["a"; 100_000].join(".")]).len(), 1);
}

#[test]
fn output_is_bounded() {
    let source = format!("[{}]", vec!["\"0123456789\""; 20_000].join(","));
    let scope = kanat_mapping::Scope::new(source.as_bytes(), crate::NOW, crate::unbounded());
    let run = |fields: &[(&str, Field)]| {
        mapping(fields)
            .write(&scope, &mut Vec::new())
            .unwrap_err()
            .message
    };
    assert_eq!(
        run(&[("x", Each("source", &[("all", Text("source"))]))]),
        "the result is larger than 16 MiB"
    );
}

#[test]
fn references_are_those_of_all_fields() {
    let mapping = mapping(&[
        ("a", Text("source.x | lookup(one)")),
        ("b", Text("{{ steps.s.output }} {{ item | lookup(two) }}")),
        (
            "c",
            Each(
                "trigger.list",
                &[("d", Text("item | lookup(three, state.x)"))],
            ),
        ),
    ]);
    let references = mapping.references();
    let tables: Vec<_> = references
        .tables
        .iter()
        .map(|table| table.name.as_str())
        .collect();
    assert_eq!(tables, ["one", "two", "three"]);
    let roots: Vec<_> = references.roots.iter().map(|root| root.as_str()).collect();
    assert_eq!(roots, ["source", "steps", "item", "trigger", "state"]);
}

/// Writes the field `lines` of a list with a condition.
fn write_where(
    list: &str,
    condition: &str,
    fields: &[(&str, Field)],
) -> Result<String, EvaluationError> {
    let each = FieldValue::Each {
        list: Expression::parse(list).expect("an expression"),
        filter: Some(Expression::parse(condition).expect("an expression")),
        map: Box::new(mapping(fields)),
    };
    let mapping = Mapping::new(vec![("lines".to_owned(), each)]).expect("one field");
    let mut out = Vec::new();
    mapping.write(&scope(), &mut out)?;
    Ok(String::from_utf8(out).expect("output is text"))
}

#[test]
fn a_condition_leaves_items_out_and_keeps_their_places() {
    let fields: &[(&str, Field)] = &[("at", Text("index")), ("n", Text("item"))];
    assert_eq!(
        write_where("source.list", "item < 3", fields).as_deref(),
        Ok(r#"{"lines":[{"at":1,"n":1},{"at":2,"n":2},{"at":3,"n":1.0}]}"#)
    );
    assert_eq!(
        write_where("source.list", "index == 0 and source.yes", fields).as_deref(),
        Ok(r#"{"lines":[{"at":0,"n":3}]}"#)
    );
    assert_eq!(
        write_where("source.list", "false", fields).as_deref(),
        Ok(r#"{"lines":[]}"#)
    );
    assert_eq!(
        write_where("source.missing", "false", fields).as_deref(),
        Ok("{}")
    );
    let error = write_where("source.list", "item / 0", fields).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("lines[0]"));
    let failing: &[(&str, Field)] = &[("x", Text("item | keys"))];
    let error = write_where("source.list", "item == 2", failing).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("lines[2].x"));
}

#[test]
fn lists_of_expressions_see_those_of_each_around_them() {
    let inner: &[(&str, Field)] = &[
        ("n", Text("item.n")),
        ("of", Text("outer.index")),
        ("count", Text("outer.item.lines | length")),
        (
            "both",
            Text("[item.n] | map(item + outer.item.n + outer.outer.index)"),
        ),
    ];
    check(
        &[(
            "orders",
            Each("source.orders", &[("lines", Each("item.lines", inner))]),
        )],
        concat!(
            r#"{"orders":[{"lines":[{"n":1,"of":0,"count":2,"both":[2]},"#,
            r#"{"n":2,"of":0,"count":2,"both":[4]}]},"#,
            r#"{"lines":[{"n":3,"of":1,"count":1,"both":[7]}]}]}"#
        ),
    );
}

#[test]
fn names_the_fields_that_compare_a_text_with_a_number() {
    let found = mapping(&[
        ("size", Text("if(source.amount > 5, 'big', 'small')")),
        ("same", Text("source.id == 17")),
        ("text.of", Text("is {{ source.amount == 149.505 }}")),
        (
            "lines",
            Each(
                "source.lines | where(item.price > 0)",
                &[("dear", Text("item.price > 1")), ("sku", Text("item.sku"))],
            ),
        ),
    ])
    .remarks(&scope());
    let sentence = |text: &str, path: &str| {
        format!("the expression compares a text ({text:?}) with a number; use {path} | number")
    };
    let expected = [
        ("size", sentence("149.505", "source.amount")),
        ("text.of", sentence("149.505", "source.amount")),
        ("lines", sentence("1.10", "item.price")),
    ];
    assert_eq!(
        found,
        expected.map(|(field, sentence)| (field.to_owned(), sentence))
    );
    let found = mapping(&[(
        "lines",
        Each("source.lines", &[("dear", Text("item.price > 1"))]),
    )])
    .remarks(&scope());
    assert_eq!(
        found,
        [("lines[0].dear".to_owned(), sentence("1.10", "item.price"))]
    );
}

#[test]
fn names_the_fields_whose_template_has_a_part_that_renders_to_nothing() {
    let found = mapping(&[
        ("text", Text("{{ source.id }} of {{ source.nothing }}")),
        ("nested.two", Text("{{ source.none.x }}{{ source.id }}")),
        ("whole", Text("{{ source.nothing }}")),
        ("given", Text("of {{ source.nothing | default('') }}")),
        (
            "lines",
            Each(
                "source.lines",
                &[("label", Text("{{ index }}: {{ item.no }}"))],
            ),
        ),
    ])
    .remarks(&scope());
    let sentence =
        |value: &str| format!("{value} and renders to nothing; `default` gives it a text");
    assert_eq!(
        found,
        [
            ("text", "source.nothing is null"),
            ("nested.two", "source.none.x is undefined"),
            ("lines[0].label", "item.no is undefined"),
        ]
        .map(|(field, value)| (field.to_owned(), sentence(value)))
    );
}
