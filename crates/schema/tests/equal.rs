//! Random schemas and documents: the verdict is that of the crate `jsonschema`, and nothing panics.

use kanat_schema::Schema;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..8_i64).prop_map(Value::from),
        (-6..12_i64).prop_map(|half| json!(half as f64 / 2.0)),
        "[abä]{0,3}".prop_map(Value::from),
        Just(json!("2026-02-28")),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a".to_owned()),
        Just("b".to_owned()),
        Just("c".to_owned()),
        Just("ab".to_owned())
    ]
}

fn document() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

fn keyword() -> impl Strategy<Value = (&'static str, Value)> {
    let count = || (0..4_u64).prop_map(Value::from);
    let name = || prop::collection::btree_set(key(), 0..3).prop_map(|names| json!(names));
    let types = prop::sample::subsequence(
        vec![
            "null", "boolean", "integer", "number", "string", "array", "object",
        ],
        1..4,
    );
    prop_oneof![
        types.prop_map(|types| ("type", json!(types))),
        prop::collection::vec(document(), 1..4).prop_map(|values| ("enum", json!(values))),
        document().prop_map(|value| ("const", value)),
        (-2..5_i64).prop_map(|limit| ("minimum", json!(limit))),
        (-2..5_i64).prop_map(|limit| ("exclusiveMaximum", json!(limit as f64 / 2.0))),
        prop_oneof![Just(2.0), Just(0.5), Just(1.5)]
            .prop_map(|divisor| ("multipleOf", json!(divisor))),
        count().prop_map(|limit| ("minLength", limit)),
        count().prop_map(|limit| ("maxLength", limit)),
        prop_oneof![Just("^a"), Just("b$"), Just("^[ab]{1,2}$"), Just("ä")]
            .prop_map(|pattern| ("pattern", json!(pattern))),
        Just(("format", json!("date"))),
        count().prop_map(|limit| ("minItems", limit)),
        count().prop_map(|limit| ("maxItems", limit)),
        any::<bool>().prop_map(|unique| ("uniqueItems", json!(unique))),
        count().prop_map(|limit| ("minContains", limit)),
        count().prop_map(|limit| ("maxProperties", limit)),
        name().prop_map(|names| ("required", names)),
        (key(), name()).prop_map(|(key, names)| ("dependentRequired", json!({ key: names }))),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let flat = prop::collection::vec(keyword(), 0..4);
    let leaf = prop_oneof![
        4 => flat.prop_map(|keywords| {
            keywords
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()
        }),
        1 => any::<bool>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..4);
        let named = || prop::collection::vec((key(), inner.clone()), 1..4);
        let object =
            |members: Vec<(String, Value)>| Value::from(members.into_iter().collect::<Map<_, _>>());
        let applied = prop_oneof![
            named().prop_map(move |members| ("properties", object(members))),
            named().prop_map(move |members| ("patternProperties", object(members))),
            named().prop_map(move |members| ("dependentSchemas", object(members))),
            inner
                .clone()
                .prop_map(|schema| ("additionalProperties", schema)),
            inner.clone().prop_map(|schema| ("propertyNames", schema)),
            inner.clone().prop_map(|schema| ("items", schema)),
            some().prop_map(|schemas| ("prefixItems", json!(schemas))),
            inner.clone().prop_map(|schema| ("contains", schema)),
            some().prop_map(|schemas| ("allOf", json!(schemas))),
            some().prop_map(|schemas| ("anyOf", json!(schemas))),
            some().prop_map(|schemas| ("oneOf", json!(schemas))),
            inner.clone().prop_map(|schema| ("not", schema)),
            inner.clone().prop_map(|schema| ("if", schema)),
            inner.clone().prop_map(|schema| ("then", schema)),
            inner.clone().prop_map(|schema| ("else", schema)),
            inner
                .clone()
                .prop_map(|schema| ("unevaluatedProperties", schema)),
            inner
                .clone()
                .prop_map(|schema| ("unevaluatedItems", schema)),
            keyword(),
        ];
        let keywords = prop::collection::vec(applied, 1..6);
        keywords.prop_map(|keywords| {
            keywords
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Map<_, _>>()
                .into()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_verdict_is_that_of_the_crate(
        schema in schema(),
        documents in prop::collection::vec(document(), 4),
    ) {
        let theirs = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema)
            .unwrap();
        let ours = Schema::compile(&schema.to_string()).unwrap();
        for document in documents {
            let found = ours.validate(document.to_string().as_bytes());
            prop_assert_eq!(
                found.is_ok(),
                theirs.is_valid(&document),
                "{} {}: {:?}",
                schema,
                document,
                found
            );
            prop_assert!(
                found.is_ok_and(|()| true)
                    || ours
                        .validate(document.to_string().as_bytes())
                        .is_err_and(|found| !found.is_empty())
            );
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), bytes in any::<Vec<u8>>()) {
        let _ = Schema::compile(&text);
        let _ = Schema::compile(&format!("{{\"pattern\":{}}}", Value::from(text.as_str())));
        let _ = Schema::compile(&format!(
            "{{\"$ref\":{0},\"$id\":{0},\"items\":{{\"$id\":{0},\"$anchor\":{0}}}}}",
            Value::from(text.as_str())
        ));
        let schema =
            Schema::compile(r#"{"type":"object","properties":{"a":{"type":"integer"}}}"#).unwrap();
        prop_assert!(schema.validate(&bytes).is_err() || std::str::from_utf8(&bytes).is_ok());
        let read = schema.read_parameters([("a", text.as_str()), (text.as_str(), "1"), ("a", "2")]);
        prop_assert!(serde_json::from_str::<Value>(&read).is_ok());
    }

    #[test]
    fn reads_as_json_what_is_json(
        text in "[\\[\\]{}\",:0-9a-z\\\\.\\-+eE \n]{0,20}",
        document in document(),
    ) {
        let schema = Schema::compile("true").unwrap();
        for text in [
            text,
            document.to_string(),
            serde_json::to_string_pretty(&document).unwrap(),
        ] {
            let is_json = kanat_json::check(text.as_bytes(), kanat_json::MAX_DEPTH).is_ok();
            prop_assert_eq!(
                schema.validate(text.as_bytes()).is_ok(),
                is_json,
                "{}",
                text
            );
        }
    }
}
