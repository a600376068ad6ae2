//! Properties of every input: nothing panics, output is JSON, digits stay.

use kanat_mapping::{
    Effort, Expression, FieldValue, JsonTemplate, Mapping, NoTables, Scope, Template, json,
};
use kanat_model::Timestamp;
use proptest::prelude::*;

const NOW: Timestamp = Timestamp::from_millis(1_769_847_300_123);

thread_local! {
    /// Effort of the tests of one thread, which run one after another.
    static UNBOUNDED: &'static Effort = Box::leak(Box::new(Effort::new(u64::MAX)));
}

fn unbounded() -> &'static Effort {
    UNBOUNDED.with(|effort| *effort)
}

/// JSON of every shape, with odd spacing, escapes, long numbers and equal keys.
fn any_json() -> impl Strategy<Value = String> {
    let string = prop_oneof![
        r#"[a-c]{0,3}"#.prop_map(|text| format!("\"{text}\"")),
        Just(r#""\ud83d\u0000\"\\é""#.to_owned()),
        Just("\"2026-01-31T08:15:00Z\"".to_owned()),
        Just("\"-12.345\"".to_owned()),
    ];
    let scalar = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,6})?",
        string.clone(),
    ];
    scalar.prop_recursive(4, 40, 5, move |inner| {
        let member = (
            prop_oneof![string.clone(), "[a-c]".prop_map(|key| format!("\"{key}\""))],
            inner.clone(),
        );
        prop_oneof![
            prop::collection::vec(inner, 0..5)
                .prop_map(|items| format!("[ {} ]", items.join(" , "))),
            prop::collection::vec(member, 0..5).prop_map(|members| {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| format!("{key} :\t{value}"))
                    .collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
}

/// Expressions, most of which parse.
fn any_expression() -> impl Strategy<Value = String> {
    let path = prop::collection::vec(
        prop::sample::select(vec![".a", ".b", ".c", "[0]", "[1]", "[*]", "['a b']"]),
        0..4,
    )
    .prop_map(|steps| format!("source{}", steps.concat()));
    let transform = prop::sample::select(vec![
        "decimal(2)",
        "decimal(0)",
        "uppercase",
        "lowercase",
        "trim",
        "now",
        "date(YYYY-MM-DD)",
        "required",
        "date('dddd D MMMM YY hh:mm:ss.SSS A Z X x', America/New_York)",
        "lookup(t)",
        "lookup(t, source.a)",
        "default(source.b)",
        "default(1)",
        "string",
        "number",
        "integer",
        "boolean",
        "json",
        "parse_json",
        "split(a)",
        "split('')",
        "join(',')",
        "replace(a, bb)",
        "substring(1, 2)",
        "substring(-2)",
        "concat(x, source.c)",
        "length",
        "first",
        "last",
        "sum",
        "round(3)",
        "abs",
        "unique",
        "sort",
        "keys",
        "values",
        "sha256",
        "base64",
        "base64_decode",
        "url_encode",
        "mask(2)",
        "adapter(x)",
        "nonsense",
    ]);
    let pipe = (path, prop::collection::vec(transform, 0..4)).prop_map(|(path, transforms)| {
        [
            vec![path],
            transforms.into_iter().map(str::to_owned).collect(),
        ]
        .concat()
        .join(" | ")
    });
    pipe.prop_recursive(3, 12, 3, |inner| {
        let operator =
            prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">=", "in", "and", "or"]);
        prop_oneof![
            (inner.clone(), operator, inner.clone())
                .prop_map(|(left, sign, right)| format!("({left}) {sign} ({right})")),
            inner.clone().prop_map(|inner| format!("not ({inner})")),
            inner.prop_map(|inner| format!("({inner}) | json")),
        ]
    })
}

fn is_json(text: &[u8]) -> bool {
    json::check(text, 4 * json::MAX_DEPTH).is_ok()
        && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok()
}

proptest! {
    #[test]
    fn no_text_panics_the_parsers(
        text in ".{0,60}",
        braces in r#"[{}|.'"\[\]() a-z0-9,*\\-]{0,60}"#,
    ) {
        for text in [&text, &braces] {
            let _ = Expression::parse(text);
            let _ = Template::parse(text);
            let _ = JsonTemplate::parse(text);
            if let Err(errors) = Template::parse(&format!("{{{{{text}")) {
                prop_assert!(errors.iter().all(|error| error.offset <= text.len() + 2));
            }
        }
    }

    #[test]
    fn checking_agrees_with_another_parser(
        text in r#"[\[\]{}:," 0-9a\\untrefls.eE+-]{0,12}"#,
        json in any_json(),
    ) {
        prop_assert!(json::check(json.as_bytes(), 10).is_ok());
        let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        prop_assert_eq!(
            json::check(text.as_bytes(), 100).is_ok(),
            theirs,
            "{}",
            text
        );
    }

    #[test]
    fn no_bytes_panic_the_checker(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = json::check(&bytes, 8);
    }

    #[test]
    fn what_parses_evaluates(source in any_json(), text in any_expression()) {
        let scope = Scope {
            tables: &NoTables,
            ..Scope::new(source.as_bytes(), NOW, unbounded())
        };
        if let Ok(expression) = Expression::parse(&text)
            && let Ok(value) = expression.evaluate(&scope)
        {
            let mut out = Vec::new();
            value.write_json(&mut out);
            prop_assert!(
                is_json(&out),
                "{} gave {}",
                text,
                String::from_utf8_lossy(&out)
            );
        }
    }

    #[test]
    fn what_parses_does_not_panic_on_bytes_that_are_no_json(
        source in prop::collection::vec(prop::sample::select(b"[]{}:,\"\\a1 -n".to_vec()), 0..30),
        texts in prop::collection::vec(any_expression(), 1..4),
    ) {
        let scope = Scope::new(&source, NOW, unbounded());
        let expressions: Vec<_> = texts
            .iter()
            .filter_map(|text| Expression::parse(text).ok())
            .collect();
        for expression in &expressions {
            let _ = expression.evaluate(&scope);
        }
        let fields = expressions.into_iter().enumerate();
        let fields = fields
            .map(|(index, field)| (format!("f{index}"), FieldValue::Expression(field)))
            .collect();
        let _ = Mapping::new(fields)
            .expect("the names differ")
            .write(&scope, &mut Vec::new());
    }

    #[test]
    fn a_mapping_writes_json_and_what_its_expressions_give(
        source in any_json(),
        texts in prop::collection::vec(any_expression(), 0..6),
    ) {
        let scope = Scope::new(source.as_bytes(), NOW, unbounded());
        let expressions: Vec<_> = texts
            .iter()
            .filter_map(|text| Expression::parse(text).ok())
            .collect();
        let field =
            |(index, expression): (usize, &Expression)| (format!("f{index}.x"), expression.clone());
        let mut fields: Vec<_> = expressions
            .iter()
            .enumerate()
            .map(field)
            .map(|(name, expression)| (name, FieldValue::Expression(expression)))
            .collect();
        let items = expressions
            .iter()
            .enumerate()
            .map(field)
            .map(|(name, expression)| {
                (
                    name,
                    FieldValue::Expression(
                        Expression::parse(&expression.text().replace("source", "item"))
                            .expect("same form"),
                    ),
                )
            });
        let map = Mapping::new(items.collect()).expect("the names differ");
        fields.push((
            "items".to_owned(),
            FieldValue::Each {
                list: Expression::parse("source").expect("a path"),
                filter: None,
                map: Box::new(map),
            },
        ));
        let mut out = Vec::new();
        let written = Mapping::new(fields)
            .expect("the names differ")
            .write(&scope, &mut out);
        prop_assert_eq!(written.is_err(), out.is_empty());
        prop_assert!(out.is_empty() || is_json(&out));
        if written.is_ok() {
            for (index, expression) in expressions
                .iter()
                .enumerate()
                .filter(|(_, one)| !one.text().contains("now"))
            {
                let mut alone = Vec::new();
                expression
                    .evaluate(&scope)
                    .expect("the mapping did")
                    .write_json(&mut alone);
                let path = format!("source.f{index}.x");
                let output = Scope::new(&out, NOW, unbounded());
                let path = Expression::parse(&path).expect("a path");
                let mut found = Vec::new();
                path.evaluate(&output)
                    .expect("a path")
                    .write_json(&mut found);
                prop_assert_eq!(found, alone);
            }
        }
    }

    #[test]
    fn untouched_values_keep_every_byte(source in any_json()) {
        let scope = Scope::new(source.as_bytes(), NOW, unbounded());
        let copy = Expression::parse("source").expect("a path");
        let mapping =
            Mapping::new(vec![("x".to_owned(), FieldValue::Expression(copy))]).expect("one field");
        let mut out = Vec::new();
        mapping.write(&scope, &mut out).expect("a copy");
        prop_assert_eq!(String::from_utf8_lossy(&out), format!("{{\"x\":{source}}}"));
    }

    #[test]
    fn decimal_agrees_with_integers(number in any::<i64>(), places in 0_u32..5) {
        let text = format!("'{number}e-2' | decimal({places})");
        let expression = Expression::parse(&text).expect("an expression");
        let scope = Scope::new(b"", NOW, unbounded());
        let value = expression.evaluate(&scope).expect("a number");
        let written = value.text().expect("a string").replace('.', "");
        let scale = 10_i128.pow(places.abs_diff(2));
        let number = i128::from(number);
        let expected = if places >= 2 {
            number * scale
        } else {
            (number + number.signum() * scale / 2) / scale
        };
        prop_assert_eq!(written.parse::<i128>(), Ok(expected));
    }
}
