//! Shapes of samples, and their differences.

use serde_json::json;

use super::*;

fn shape(samples: &[Value]) -> Shape {
    let mut whole = Shape::default();
    for sample in samples {
        whole.merge(Shape::of(&sample.to_string()));
    }
    whole
}

/// `+ path types`, `- path types`, `~ path before -> after`.
fn changes(before: &[Value], after: &[Value]) -> Vec<String> {
    let shown = |change| match change {
        Change::Added { path, to } => format!("+ {path} {to}"),
        Change::Removed { path, from } => format!("- {path} {from}"),
        Change::TypeChanged { path, from, to } => format!("~ {path} {from} -> {to}"),
    };
    compare(&shape(before), &shape(after))
        .into_iter()
        .map(shown)
        .collect()
}

#[test]
fn keeps_types_and_members_that_are_always_there() {
    let samples = [
        json!({"id": 1, "total": 1.5, "tags": ["a"], "buyer": {"name": "Ada"}, "note": null}),
        json!({"id": 2, "total": 2, "tags": [], "buyer": {"name": "Bob", "vat": "x"}}),
    ];
    assert_eq!(
        shape(&samples).to_schema(),
        json!({
            "type": "object",
            "required": ["buyer", "id", "tags", "total"],
            "properties": {
                "buyer": {
                    "type": "object", "required": ["name"],
                    "properties": {"name": {"type": "string"}, "vat": {"type": "string"}},
                },
                "id": {"type": "integer"},
                "note": {"type": "null"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "total": {"type": "number"},
            },
        })
    );
    assert_eq!(Shape::default().to_schema(), json!({}));
    assert_eq!(
        shape(&[json!([1, "a", null])]).to_schema()["items"]["type"],
        json!(["integer", "null", "string"])
    );
}

#[test]
fn names_additions_removals_and_changes_of_type_by_path() {
    let before = [json!({
        "orders": [{"id": 1, "total": "9.50", "by": {"name": "Ada"}, "é x": 1}],
        "next": null,
    })];
    let after = [json!({
        "orders": [{"id": "1", "by": {"name": "Ada", "mail": "a"}, "é x": true}],
        "next": null,
    })];
    assert_eq!(
        changes(&before, &after),
        [
            "+ orders[*].by.mail string",
            "~ orders[*].id integer -> string",
            "- orders[*].total string",
            "~ orders[*][\"é x\"] integer -> boolean",
        ]
    );
    assert_eq!(
        changes(&[json!([1])], &[json!({"a": 1})]),
        ["~  array -> object"]
    );
}

#[test]
fn what_varies_anyway_is_no_change() {
    let varied = [json!({"a": 1, "b": 1.5}), json!({"a": null, "c": "x"})];
    assert_eq!(changes(&varied, &[json!({"a": 2, "b": 7})]), [""; 0]);
    assert_eq!(changes(&varied, &varied), [""; 0]);
    assert_eq!(changes(&varied, &[]), [""; 0]);
    assert_eq!(
        changes(&[json!({"list": []})], &[json!({"list": [1]})]),
        [""; 0]
    );
}

#[test]
fn objects_with_any_names_are_maps() {
    let by_id = |from: usize, value: Value| -> Value {
        (from..from + 300)
            .map(|id| (format!("id-{id}"), value.clone()))
            .collect::<Map<_, _>>()
            .into()
    };
    let map = shape(&[by_id(0, json!({"n": 1}))]);
    assert_eq!(
        map.to_schema()["additionalProperties"]["properties"]["n"]["type"],
        "integer"
    );
    assert_eq!(map.to_schema().get("properties"), None);
    let before = by_id(0, json!({"n": 1}));
    let after = by_id(1000, json!({"n": "x"}));
    assert_eq!(changes(&[before], &[after]), ["~ [*].n integer -> string"]);
}

#[test]
fn a_sample_of_any_size_and_depth_makes_a_bounded_shape() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    assert!(serde_json::to_string(&Shape::of(&deep)).unwrap().len() < 2_000);
    let wide: Value = (0..50)
        .map(|row| {
            (0..190)
                .map(|n| (format!("{row}-{n}"), n.into()))
                .collect::<Map<_, _>>()
                .into()
        })
        .collect::<Vec<Value>>()
        .into();
    assert!(
        serde_json::to_string(&Shape::of(&wide.to_string()))
            .unwrap()
            .len()
            < 1_000
    );
    let long = json!({"x".repeat(1_000): 1});
    assert_eq!(
        Shape::of(&long.to_string()).to_schema(),
        json!({"type": "object"})
    );
    assert!(Shape::of("").is_empty());
}

#[test]
fn a_shape_holds_no_value_and_is_read_as_it_is_written() {
    let shape = shape(&[json!({"token": "hush", "n": [4711, {"deep": null}]})]);
    let text = serde_json::to_string(&shape).unwrap();
    assert!(!text.contains("hush") && !text.contains("4711"), "{text}");
    assert_eq!(serde_json::from_str::<Shape>(&text).unwrap(), shape);
}
