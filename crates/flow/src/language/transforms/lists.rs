//! Transforms of lists and objects, with their arguments and an example each.

use crate::language::{Example, Function, argument, optional};

/// Transforms of lists and objects.
pub static LISTS: &[Function] = &[
    Function {
        name: "join",
        arguments: &[argument("separator", "text", "Text between the items")],
        text: "Text of the items of a list",
        example: Example {
            expression: "source.tags | join('-')",
            source: Some(r#"{"tags":["a","b"]}"#),
            value: Some(r#""a-b""#),
        },
    },
    Function {
        name: "length",
        arguments: &[],
        text: "Number of characters of a text, of items of a list, or of members of an object",
        example: Example {
            expression: "source.tags | length",
            source: Some(r#"{"tags":["a","b"]}"#),
            value: Some("2"),
        },
    },
    Function {
        name: "first",
        arguments: &[],
        text: "First item of a list",
        example: Example {
            expression: "source.tags | first",
            source: Some(r#"{"tags":["a","b"]}"#),
            value: Some(r#""a""#),
        },
    },
    Function {
        name: "last",
        arguments: &[],
        text: "Last item of a list",
        example: Example {
            expression: "source.tags | last",
            source: Some(r#"{"tags":["a","b"]}"#),
            value: Some(r#""b""#),
        },
    },
    Function {
        name: "sum",
        arguments: &[optional(
            "expression",
            "expression",
            "What is added up of each item; the item itself when left out",
        )],
        text: "Sum of the items of a list",
        example: Example {
            expression: "source.amounts | sum",
            source: Some(r#"{"amounts":[1.10,2.20]}"#),
            value: Some("3.3"),
        },
    },
    Function {
        name: "unique",
        arguments: &[],
        text: "List without repeated items",
        example: Example {
            expression: "source.tags | unique",
            source: Some(r#"{"tags":["a","b","a"]}"#),
            value: Some(r#"["a","b"]"#),
        },
    },
    Function {
        name: "sort",
        arguments: &[],
        text: "List in order",
        example: Example {
            expression: "source.numbers | sort",
            source: Some(r#"{"numbers":[3,1,2]}"#),
            value: Some("[1,2,3]"),
        },
    },
    Function {
        name: "keys",
        arguments: &[],
        text: "List of the keys of an object",
        example: Example {
            expression: "source.sizes | keys",
            source: Some(r#"{"sizes":{"s":1,"m":2}}"#),
            value: Some(r#"["s","m"]"#),
        },
    },
    Function {
        name: "values",
        arguments: &[],
        text: "List of the values of an object",
        example: Example {
            expression: "source.sizes | values",
            source: Some(r#"{"sizes":{"s":1,"m":2}}"#),
            value: Some("[1,2]"),
        },
    },
    Function {
        name: "map",
        arguments: &[argument(
            "expression",
            "expression",
            "What becomes of each item",
        )],
        text: "List of what an expression gives for each item",
        example: Example {
            expression: "source.lines | map(item.sku)",
            source: Some(r#"{"lines":[{"sku":"a"},{"sku":"b"}]}"#),
            value: Some(r#"["a","b"]"#),
        },
    },
    Function {
        name: "where",
        arguments: &[argument(
            "condition",
            "expression",
            "Condition of the items that stay",
        )],
        text: "List of the items for which a condition holds",
        example: Example {
            expression: "source.numbers | where(item > 1)",
            source: Some(r#"{"numbers":[1,2,3]}"#),
            value: Some("[2,3]"),
        },
    },
    Function {
        name: "sort_by",
        arguments: &[argument("expression", "expression", "Key of each item")],
        text: "List in the order of a key of its items",
        example: Example {
            expression: "source.lines | sort_by(item.n)",
            source: Some(r#"{"lines":[{"n":2},{"n":1}]}"#),
            value: Some(r#"[{"n":1},{"n":2}]"#),
        },
    },
    Function {
        name: "any",
        arguments: &[argument("condition", "expression", "Condition")],
        text: "Whether a condition holds for an item",
        example: Example {
            expression: "source.numbers | any(item > 2)",
            source: Some(r#"{"numbers":[1,2,3]}"#),
            value: Some("true"),
        },
    },
    Function {
        name: "all",
        arguments: &[argument("condition", "expression", "Condition")],
        text: "Whether a condition holds for all items",
        example: Example {
            expression: "source.numbers | all(item > 2)",
            source: Some(r#"{"numbers":[1,2,3]}"#),
            value: Some("false"),
        },
    },
    Function {
        name: "min",
        arguments: &[],
        text: "Smallest of the numbers or texts of a list",
        example: Example {
            expression: "source.numbers | min",
            source: Some(r#"{"numbers":[3,1.0,2]}"#),
            value: Some("1.0"),
        },
    },
    Function {
        name: "max",
        arguments: &[],
        text: "Greatest of the numbers or texts of a list",
        example: Example {
            expression: "source.numbers | max",
            source: Some(r#"{"numbers":[3,1.0,2]}"#),
            value: Some("3"),
        },
    },
    Function {
        name: "group_by",
        arguments: &[argument("expression", "expression", "Key of each item")],
        text: "List of `{key, items}` in order of first appearance",
        example: Example {
            expression: "source.lines | group_by(item.k)",
            source: Some(r#"{"lines":[{"k":1},{"k":2},{"k":1}]}"#),
            value: Some(r#"[{"key":1,"items":[{"k":1},{"k":1}]},{"key":2,"items":[{"k":2}]}]"#),
        },
    },
    Function {
        name: "flatten",
        arguments: &[],
        text: "List with the items of its lists in their places",
        example: Example {
            expression: "source.lists | flatten",
            source: Some(r#"{"lists":[[1],[2,3],4]}"#),
            value: Some("[1,2,3,4]"),
        },
    },
    Function {
        name: "reverse",
        arguments: &[],
        text: "List in reverse order",
        example: Example {
            expression: "source.numbers | reverse",
            source: Some(r#"{"numbers":[1,2,3]}"#),
            value: Some("[3,2,1]"),
        },
    },
    Function {
        name: "slice",
        arguments: &[
            argument(
                "from",
                "expression",
                "Place of the first item, from 0; negative from the end",
            ),
            optional(
                "to",
                "expression",
                "Place behind the last item; the end when left out",
            ),
        ],
        text: "Part of a list",
        example: Example {
            expression: "source.numbers | slice(1, 3)",
            source: Some(r#"{"numbers":[1,2,3,4]}"#),
            value: Some("[2,3]"),
        },
    },
    Function {
        name: "contains",
        arguments: &[argument(
            "value",
            "expression",
            "Item, key or part that is looked for",
        )],
        text: "Whether a list, an object or a text has a value",
        example: Example {
            expression: "source.tags | contains('b')",
            source: Some(r#"{"tags":["a","b"]}"#),
            value: Some("true"),
        },
    },
];
