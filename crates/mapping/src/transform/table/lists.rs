//! Transforms of lists and objects.

use crate::language::ParameterKind::{Element, Expression, Text};
use crate::language::{Example, Parameter};
use crate::transform::Transform;
use crate::transform::element::Elementwise;
use crate::transform::shape::Shape;

pub(super) static LISTS: &[Shape] = &[
    Shape {
        name: "join",
        parameters: &[Parameter::required(
            "separator",
            Text,
            "Text between the items",
        )],
        text: "Text of the items of a list",
        example: Example::of("source.tags | join('-')")
            .on(r#"{"tags":["a","b"]}"#)
            .gives(r#""a-b""#),
        make: |of| Ok(Transform::Join(of.text(0))),
    },
    Shape {
        name: "length",
        parameters: &[],
        text: "Number of characters of a text, of items of a list, or of members of an object",
        example: Example::of("source.tags | length")
            .on(r#"{"tags":["a","b"]}"#)
            .gives("2"),
        make: |_| Ok(Transform::Length),
    },
    Shape {
        name: "first",
        parameters: &[],
        text: "First item of a list",
        example: Example::of("source.tags | first")
            .on(r#"{"tags":["a","b"]}"#)
            .gives(r#""a""#),
        make: |_| Ok(Transform::First),
    },
    Shape {
        name: "last",
        parameters: &[],
        text: "Last item of a list",
        example: Example::of("source.tags | last")
            .on(r#"{"tags":["a","b"]}"#)
            .gives(r#""b""#),
        make: |_| Ok(Transform::Last),
    },
    Shape {
        name: "sum",
        parameters: &[Parameter::optional(
            "expression",
            Element,
            "What is added up of each item; the item itself when left out",
        )],
        text: "Sum of the items of a list",
        example: Example::of("source.amounts | sum")
            .on(r#"{"amounts":[1.10,2.20]}"#)
            .gives("3.3"),
        make: |of| {
            Ok(if of.has(0) {
                Transform::Each(Elementwise::Sum)
            } else {
                Transform::Sum
            })
        },
    },
    Shape {
        name: "unique",
        parameters: &[],
        text: "List without repeated items",
        example: Example::of("source.tags | unique")
            .on(r#"{"tags":["a","b","a"]}"#)
            .gives(r#"["a","b"]"#),
        make: |_| Ok(Transform::Unique),
    },
    Shape {
        name: "sort",
        parameters: &[],
        text: "List in order",
        example: Example::of("source.numbers | sort")
            .on(r#"{"numbers":[3,1,2]}"#)
            .gives("[1,2,3]"),
        make: |_| Ok(Transform::Sort),
    },
    Shape {
        name: "keys",
        parameters: &[],
        text: "List of the keys of an object",
        example: Example::of("source.sizes | keys")
            .on(r#"{"sizes":{"s":1,"m":2}}"#)
            .gives(r#"["s","m"]"#),
        make: |_| Ok(Transform::Keys),
    },
    Shape {
        name: "values",
        parameters: &[],
        text: "List of the values of an object",
        example: Example::of("source.sizes | values")
            .on(r#"{"sizes":{"s":1,"m":2}}"#)
            .gives("[1,2]"),
        make: |_| Ok(Transform::Values),
    },
    Shape {
        name: "map",
        parameters: &[Parameter::required(
            "expression",
            Element,
            "What becomes of each item",
        )],
        text: "List of what an expression gives for each item",
        example: Example::of("source.lines | map(item.sku)")
            .on(r#"{"lines":[{"sku":"a"},{"sku":"b"}]}"#)
            .gives(r#"["a","b"]"#),
        make: |_| Ok(Transform::Each(Elementwise::Map)),
    },
    Shape {
        name: "where",
        parameters: &[Parameter::required(
            "condition",
            Element,
            "Condition of the items that stay",
        )],
        text: "List of the items for which a condition holds",
        example: Example::of("source.numbers | where(item > 1)")
            .on(r#"{"numbers":[1,2,3]}"#)
            .gives("[2,3]"),
        make: |_| Ok(Transform::Each(Elementwise::Where)),
    },
    Shape {
        name: "sort_by",
        parameters: &[Parameter::required(
            "expression",
            Element,
            "Key of each item",
        )],
        text: "List in the order of a key of its items",
        example: Example::of("source.lines | sort_by(item.n)")
            .on(r#"{"lines":[{"n":2},{"n":1}]}"#)
            .gives(r#"[{"n":1},{"n":2}]"#),
        make: |_| Ok(Transform::Each(Elementwise::SortBy)),
    },
    Shape {
        name: "any",
        parameters: &[Parameter::required("condition", Element, "Condition")],
        text: "Whether a condition holds for an item",
        example: Example::of("source.numbers | any(item > 2)")
            .on(r#"{"numbers":[1,2,3]}"#)
            .gives("true"),
        make: |_| Ok(Transform::Each(Elementwise::Any)),
    },
    Shape {
        name: "all",
        parameters: &[Parameter::required("condition", Element, "Condition")],
        text: "Whether a condition holds for all items",
        example: Example::of("source.numbers | all(item > 2)")
            .on(r#"{"numbers":[1,2,3]}"#)
            .gives("false"),
        make: |_| Ok(Transform::Each(Elementwise::All)),
    },
    Shape {
        name: "min",
        parameters: &[],
        text: "Smallest of the numbers or texts of a list",
        example: Example::of("source.numbers | min")
            .on(r#"{"numbers":[3,1.0,2]}"#)
            .gives("1.0"),
        make: |_| Ok(Transform::Min),
    },
    Shape {
        name: "max",
        parameters: &[],
        text: "Greatest of the numbers or texts of a list",
        example: Example::of("source.numbers | max")
            .on(r#"{"numbers":[3,1.0,2]}"#)
            .gives("3"),
        make: |_| Ok(Transform::Max),
    },
    Shape {
        name: "group_by",
        parameters: &[Parameter::required(
            "expression",
            Element,
            "Key of each item",
        )],
        text: "List of `{key, items}` in order of first appearance",
        example: Example::of("source.lines | group_by(item.k)")
            .on(r#"{"lines":[{"k":1},{"k":2},{"k":1}]}"#)
            .gives(r#"[{"key":1,"items":[{"k":1},{"k":1}]},{"key":2,"items":[{"k":2}]}]"#),
        make: |_| Ok(Transform::Each(Elementwise::GroupBy)),
    },
    Shape {
        name: "flatten",
        parameters: &[],
        text: "List with the items of its lists in their places",
        example: Example::of("source.lists | flatten")
            .on(r#"{"lists":[[1],[2,3],4]}"#)
            .gives("[1,2,3,4]"),
        make: |_| Ok(Transform::Flatten),
    },
    Shape {
        name: "reverse",
        parameters: &[],
        text: "List in reverse order",
        example: Example::of("source.numbers | reverse")
            .on(r#"{"numbers":[1,2,3]}"#)
            .gives("[3,2,1]"),
        make: |_| Ok(Transform::Reverse),
    },
    Shape {
        name: "slice",
        parameters: &[
            Parameter::required(
                "from",
                Expression,
                "Place of the first item, from 0; negative from the end",
            ),
            Parameter::optional(
                "to",
                Expression,
                "Place behind the last item; the end when left out",
            ),
        ],
        text: "Part of a list",
        example: Example::of("source.numbers | slice(1, 3)")
            .on(r#"{"numbers":[1,2,3,4]}"#)
            .gives("[2,3]"),
        make: |_| Ok(Transform::Slice),
    },
    Shape {
        name: "contains",
        parameters: &[Parameter::required(
            "value",
            Expression,
            "Item, key or part that is looked for",
        )],
        text: "Whether a list, an object or a text has a value",
        example: Example::of("source.tags | contains('b')")
            .on(r#"{"tags":["a","b"]}"#)
            .gives("true"),
        make: |_| Ok(Transform::Contains),
    },
];
