//! Functions, operators and roots of expressions.

use super::{Example, Function, Operator, RootEntry, argument};

/// The functions.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "if",
        arguments: &[
            argument("condition", "expression", "What decides"),
            argument("then", "expression", "Value where it holds"),
            argument("otherwise", "expression", "Value where it does not"),
        ],
        text: "One of two values; the other one is not evaluated",
        example: Example {
            expression: "if(source.n > 1, 'many', 'one')",
            source: Some(r#"{"n":2}"#),
            value: Some(r#""many""#),
        },
    },
    Function {
        name: "coalesce",
        arguments: &[argument("value", "expression", "Value; up to 100")],
        text: "The first value that is neither null nor undefined",
        example: Example {
            expression: "coalesce(source.nick, source.name)",
            source: Some(r#"{"name":"Ann"}"#),
            value: Some(r#""Ann""#),
        },
    },
    Function {
        name: "now",
        arguments: &[],
        text: "Current time, ISO 8601 with milliseconds, in UTC",
        example: Example {
            expression: "now()",
            source: None,
            value: None,
        },
    },
    Function {
        name: "uuid",
        arguments: &[],
        text: "Identifier that no other is equal to",
        example: Example {
            expression: "uuid()",
            source: None,
            value: None,
        },
    },
];

/// The operators.
pub static OPERATORS: &[Operator] = &[
    Operator {
        name: "|",
        text: "Hands the value on its left to a transform",
        example: "source.name | trim",
    },
    Operator {
        name: "==",
        text: "Whether two values are equal; numbers compare by value, null equals undefined",
        example: "source.total == 10",
    },
    Operator {
        name: "!=",
        text: "Whether two values are not equal",
        example: "source.kind != 'test'",
    },
    Operator {
        name: "<",
        text: "Whether the left number or text is less",
        example: "source.qty < 5",
    },
    Operator {
        name: "<=",
        text: "Whether the left number or text is less or equal",
        example: "source.qty <= 5",
    },
    Operator {
        name: ">",
        text: "Whether the left number or text is greater",
        example: "source.qty > 5",
    },
    Operator {
        name: ">=",
        text: "Whether the left number or text is greater or equal",
        example: "source.qty >= 5",
    },
    Operator {
        name: "in",
        text: "Whether a list has the item, an object the key, or a text the part",
        example: "'new' in source.tags",
    },
    Operator {
        name: "and",
        text: "Whether both sides hold; the right one is left alone when the left decides",
        example: "source.a and source.b",
    },
    Operator {
        name: "or",
        text: "Whether a side holds; the right one is left alone when the left decides",
        example: "source.a or source.b",
    },
    Operator {
        name: "not",
        text: "Whether what follows does not hold",
        example: "not source.test",
    },
    Operator {
        name: "+",
        text: "Sum of two numbers, exact",
        example: "source.a + source.b",
    },
    Operator {
        name: "-",
        text: "Difference of two numbers, exact; stands between blanks after a name",
        example: "source.a - source.b",
    },
    Operator {
        name: "*",
        text: "Product of two numbers, exact",
        example: "source.price * source.qty",
    },
    Operator {
        name: "/",
        text: "Quotient of two numbers, of 34 significant digits",
        example: "source.total / source.qty",
    },
    Operator {
        name: "%",
        text: "Rest of a division, with the sign of the dividend",
        example: "source.n % 2",
    },
];

/// The roots.
pub static ROOTS: &[RootEntry] = &[
    RootEntry {
        name: "source",
        text: "Payload of the message",
        known_in: "wherever a message runs",
    },
    RootEntry {
        name: "trigger",
        text: "Headers, query, method and path parameters that came with the payload",
        known_in: "wherever a message runs",
    },
    RootEntry {
        name: "steps",
        text: "Outputs and statuses of earlier steps, by their names",
        known_in: "after the first step",
    },
    RootEntry {
        name: "target",
        text: "The target's answer under `response`",
        known_in: "in response mappings",
    },
    RootEntry {
        name: "response",
        text: "Status, headers and body of an answer",
        known_in: "in success_when and in response mappings",
    },
    RootEntry {
        name: "instance",
        text: "Fields of the connector instance in whose place the expression stands",
        known_in: "in templates of source, steps and target, and in the mapping",
    },
    RootEntry {
        name: "item",
        text: "Item of the innermost list; `outer.item` is that of the list around",
        known_in: "in each, and in arguments of list transforms",
    },
    RootEntry {
        name: "index",
        text: "Place of the item in its list, from 0",
        known_in: "in each, and in arguments of list transforms",
    },
    RootEntry {
        name: "state",
        text: "Cursor and time of the last success of a poll",
        known_in: "in source.poll",
    },
    RootEntry {
        name: "env",
        text: "Variables of the environment, by their names",
        known_in: "wherever a message runs",
    },
];
