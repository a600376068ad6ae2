//! Functions of expressions.

use super::ParameterKind::Expression;
use super::{Example, Function, Parameter};

/// Greatest number of arguments of `coalesce`.
const MAX_VALUES: usize = 100;

pub(crate) const IF: Function = Function {
    name: "if",
    parameters: &[
        Parameter::required("condition", Expression, "What decides"),
        Parameter::required("then", Expression, "Value where it holds"),
        Parameter::required("otherwise", Expression, "Value where it does not"),
    ],
    text: "One of two values; the other one is not evaluated",
    example: Example::of("if(source.n > 1, 'many', 'one')")
        .on(r#"{"n":2}"#)
        .gives(r#""many""#),
};

pub(crate) const COALESCE: Function = Function {
    name: "coalesce",
    parameters: &[Parameter::required("value", Expression, "Value; up to 100").up_to(MAX_VALUES)],
    text: "The first value that is neither null nor undefined",
    example: Example::of("coalesce(source.nick, source.name)")
        .on(r#"{"name":"Ann"}"#)
        .gives(r#""Ann""#),
};

const NOW: Function = Function {
    name: "now",
    parameters: &[],
    text: "Current time, ISO 8601 with milliseconds, in UTC",
    example: Example::of("now()"),
};

const UUID: Function = Function {
    name: "uuid",
    parameters: &[],
    text: "Identifier that no other is equal to",
    example: Example::of("uuid()"),
};

/// The functions.
pub static FUNCTIONS: &[Function] = &[IF, COALESCE, NOW, UUID];
