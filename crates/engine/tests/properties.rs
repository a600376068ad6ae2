//! Properties of every plan and payload: nothing panics, and the output of JSON is JSON.

use bytes::Bytes;
use kanat_engine::{Input, Mask, NoResources, Outcome, Program};
use kanat_mapping::{Effort, json};
use kanat_model::Timestamp;
use kanat_proto::plan::v1::{Each, Field, FlowPlan, Mapping, NamedText, Target, field};
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(vec![
            "source.a",
            "source",
            "item",
            "item.b | string",
            "source.a[*].b | sum",
            "source.b | decimal(2)",
            "now()",
            "source.a | required",
            "not source.a == 1",
            "source.b | lookup(t, x)",
            "trigger.headers.x",
            "instance.y",
            "/x/{{ source.a }}?q={{ source.b }}",
            "{{ item }}",
            "a{{ source.a | trim }}b",
            "",
        ]).prop_map(str::to_owned),
        1 => r#"[ -~]{0,20}"#,
        1 => any::<String>(),
    ]
}

fn mapping() -> impl Strategy<Value = Mapping> {
    let leaf = (0..3_u8, text()).prop_map(|(kind, text)| match kind {
        0 => Some(field::Value::Expression(text)),
        1 => Some(field::Value::Template(text)),
        _ => Some(field::Value::Expression("source.a".to_owned())),
    });
    leaf.prop_recursive(3, 12, 3, |inner| {
        (text(), prop::collection::vec(("[a-c.]{1,3}", inner), 0..3)).prop_map(|(list, fields)| {
            let fields = fields
                .into_iter()
                .map(|(name, value)| Field { name, value })
                .collect();
            Some(field::Value::Each(Each {
                list,
                r#where: String::new(),
                map: Some(Mapping { fields }),
            }))
        })
    })
    .prop_map(|value| Mapping {
        fields: vec![Field {
            name: "f".to_owned(),
            value,
        }],
    })
}

fn plan() -> impl Strategy<Value = FlowPlan> {
    let target =
        (text(), "GET|POST|X", text(), text()).prop_map(|(endpoint, method, name, text)| Target {
            endpoint,
            method,
            headers: vec![NamedText { name, text }],
            ..Target::default()
        });
    let texts = (
        prop::option::of(text()),
        prop::option::of(text()),
        prop::option::of(text()),
    );
    (texts, prop::option::of(mapping()), prop::option::of(target)).prop_map(
        |((when, one, two), mapping, target)| FlowPlan {
            when: when.unwrap_or_default(),
            ordering_key: one.unwrap_or_default(),
            idempotency_key: two.unwrap_or_default(),
            mapping,
            target,
            ..FlowPlan::default()
        },
    )
}

fn payload() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "null",
            "1e400",
            "[]",
            r#"{"a": [{"b": 1}, {"b": 2}], "b": "x"}"#,
            r#"{"a": "", "b": 1}"#,
            r#""text""#,
            "",
        ])
        .prop_map(str::to_owned),
        r#"[\[\]{}:," ab1]{0,20}"#,
    ]
}

proptest! {
    #[test]
    fn no_plan_and_no_payload_panics(plan in plan(), payload in payload()) {
        let effort = Effort::default();
        let input = Input {
            payload: payload.as_bytes(),
            trigger: b"{}",
            steps: b"",
            now: Timestamp::from_millis(0),
            mask: Mask::none(),
            effort: &effort,
        };
        if let Ok(program) = Program::compile(plan.clone()) {
            program.keys(&input, &NoResources);
            let first = program.run(&input, &NoResources);
            prop_assert_eq!(&first, &program.run(&input, &NoResources));
            if let Ok(Outcome::Mapped(body)) = first {
                let was_json = json::check(payload.as_bytes(), json::MAX_DEPTH).is_ok();
                prop_assert!(!was_json || json::check(&body, 2 * json::MAX_DEPTH).is_ok());
                prop_assert!(plan.mapping.is_some() || body == payload);
                let _ = program.request(&input, body, &NoResources);
            }
            let _ = program.request(&input, Bytes::new(), &NoResources);
        }
    }
}
