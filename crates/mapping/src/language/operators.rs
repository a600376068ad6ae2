//! Operators of expressions.

/// Operator of expressions.
#[derive(Debug, Clone, Copy)]
pub struct OperatorEntry {
    /// As it is written.
    pub name: &'static str,
    /// Sentence on its behaviour.
    pub text: &'static str,
    /// An expression with it.
    pub example: &'static str,
}

/// The operators.
pub static OPERATORS: &[OperatorEntry] = &[
    OperatorEntry {
        name: "|",
        text: "Hands the value on its left to a transform",
        example: "source.name | trim",
    },
    OperatorEntry {
        name: "==",
        text: "Whether two values are equal; numbers compare by value, null equals undefined",
        example: "source.total == 10",
    },
    OperatorEntry {
        name: "!=",
        text: "Whether two values are not equal",
        example: "source.kind != 'test'",
    },
    OperatorEntry {
        name: "<",
        text: "Whether the left number or text is less",
        example: "source.qty < 5",
    },
    OperatorEntry {
        name: "<=",
        text: "Whether the left number or text is less or equal",
        example: "source.qty <= 5",
    },
    OperatorEntry {
        name: ">",
        text: "Whether the left number or text is greater",
        example: "source.qty > 5",
    },
    OperatorEntry {
        name: ">=",
        text: "Whether the left number or text is greater or equal",
        example: "source.qty >= 5",
    },
    OperatorEntry {
        name: "in",
        text: "Whether a list has the item, an object the key, or a text the part",
        example: "'new' in source.tags",
    },
    OperatorEntry {
        name: "and",
        text: "Whether both sides hold; the right one is left alone when the left decides",
        example: "source.a and source.b",
    },
    OperatorEntry {
        name: "or",
        text: "Whether a side holds; the right one is left alone when the left decides",
        example: "source.a or source.b",
    },
    OperatorEntry {
        name: "not",
        text: "Whether what follows does not hold",
        example: "not source.test",
    },
    OperatorEntry {
        name: "+",
        text: "Sum of two numbers, exact",
        example: "source.a + source.b",
    },
    OperatorEntry {
        name: "-",
        text: "Difference of two numbers, exact; stands between blanks after a name",
        example: "source.a - source.b",
    },
    OperatorEntry {
        name: "*",
        text: "Product of two numbers, exact",
        example: "source.price * source.qty",
    },
    OperatorEntry {
        name: "/",
        text: "Quotient of two numbers, of 34 significant digits",
        example: "source.total / source.qty",
    },
    OperatorEntry {
        name: "%",
        text: "Rest of a division, with the sign of the dividend",
        example: "source.n % 2",
    },
];
