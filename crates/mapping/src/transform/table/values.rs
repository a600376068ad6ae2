//! Transforms of single values: numbers, texts, dates as texts, and those of any value.

use crate::ParseError;
use crate::language::ParameterKind::{Number, Operand, Text, Word};
use crate::language::{Example, Parameter};
use crate::transform::shape::{Arguments, Shape};
use crate::transform::{Transform, date};

/// Greatest number of decimals of `decimal` and `round`.
const MAX_PLACES: u32 = 30;

/// Greatest number of arguments of `concat`.
const MAX_CONCATENATED: usize = 100;

pub(super) static VALUES: &[Shape] = &[
    Shape {
        name: "decimal",
        parameters: &[Parameter::required(
            "n",
            Number,
            "Number of decimals, 0 to 30",
        )],
        text: "Text with n decimals of a number or a numeric text, half away from zero",
        example: Example::of("source.amount | decimal(2)")
            .on(r#"{"amount":149.505}"#)
            .gives(r#""149.51""#),
        make: |of| Ok(Transform::Decimal(of.whole(0, 0, MAX_PLACES)?)),
    },
    Shape {
        name: "uppercase",
        parameters: &[],
        text: "Text in capitals",
        example: Example::of("source.country | uppercase")
            .on(r#"{"country":"de"}"#)
            .gives(r#""DE""#),
        make: |_| Ok(Transform::Uppercase),
    },
    Shape {
        name: "lowercase",
        parameters: &[],
        text: "Text in small letters",
        example: Example::of("source.email | lowercase")
            .on(r#"{"email":"Ann@Shop.example"}"#)
            .gives(r#""ann@shop.example""#),
        make: |_| Ok(Transform::Lowercase),
    },
    Shape {
        name: "trim",
        parameters: &[],
        text: "Text without blanks at its ends",
        example: Example::of("source.name | trim")
            .on(r#"{"name":" Ann "}"#)
            .gives(r#""Ann""#),
        make: |_| Ok(Transform::Trim),
    },
    Shape {
        name: "now",
        parameters: &[],
        text: "Current time in UTC; the piped value is ignored",
        example: Example::of("'' | now"),
        make: |_| Ok(Transform::Now),
    },
    Shape {
        name: "date",
        parameters: &[
            Parameter::required(
                "format",
                Text,
                "Tokens such as YYYY-MM-DD HH:mm; `[...]` stands for itself",
            ),
            Parameter::optional("zone", Text, "IANA time zone; UTC when left out"),
        ],
        text: "Date of ISO 8601 or of epoch seconds or milliseconds, in another form",
        example: Example::of("source.at | date(DD.MM.YYYY)")
            .on(r#"{"at":"2026-01-31T08:15:00Z"}"#)
            .gives(r#""31.01.2026""#),
        make: |of| Ok(Transform::Date(date_format(of)?)),
    },
    Shape {
        name: "required",
        parameters: &[],
        text: "Value itself; null and undefined are mapping errors",
        example: Example::of("source.id | required")
            .on(r#"{"id":17}"#)
            .gives("17"),
        make: |_| Ok(Transform::Required),
    },
    Shape {
        name: "lookup",
        parameters: &[
            Parameter::required("table", Word, "Name of a lookup table"),
            Parameter::optional("default", Operand, "Value where the table has none"),
        ],
        text: "Entry of a lookup table for the value",
        example: Example::of("source.country | lookup(country_codes, ZZ)")
            .on(r#"{"country":"DE"}"#),
        make: |of| Ok(Transform::Lookup(of.table(0)?)),
    },
    Shape {
        name: "default",
        parameters: &[Parameter::required(
            "value",
            Operand,
            "Value in the place of null and undefined",
        )],
        text: "Value itself, or another where it is missing",
        example: Example::of("source.currency | default(EUR)")
            .on("{}")
            .gives(r#""EUR""#),
        make: |_| Ok(Transform::Default),
    },
    Shape {
        name: "string",
        parameters: &[],
        text: "Value as a text",
        example: Example::of("source.id | string")
            .on(r#"{"id":17}"#)
            .gives(r#""17""#),
        make: |_| Ok(Transform::String),
    },
    Shape {
        name: "number",
        parameters: &[],
        text: "Number of a numeric text",
        example: Example::of("source.qty | number")
            .on(r#"{"qty":"1.5"}"#)
            .gives("1.5"),
        make: |_| Ok(Transform::Number),
    },
    Shape {
        name: "integer",
        parameters: &[],
        text: "Whole number of a number or a numeric text; others are mapping errors",
        example: Example::of("source.qty | integer")
            .on(r#"{"qty":"2"}"#)
            .gives("2"),
        make: |_| Ok(Transform::Integer),
    },
    Shape {
        name: "boolean",
        parameters: &[],
        text: "Boolean of a boolean, of a number (false for 0 alone), or of a text: true, yes, on, \
               y, t, 1; false, no, off, n, f, 0; another text is a mapping error",
        example: Example::of("source.active | boolean")
            .on(r#"{"active":"yes"}"#)
            .gives("true"),
        make: |_| Ok(Transform::Boolean),
    },
    Shape {
        name: "json",
        parameters: &[],
        text: "JSON text of a value",
        example: Example::of("source.tags | json")
            .on(r#"{"tags":["a"]}"#)
            .gives(r#""[\"a\"]""#),
        make: |_| Ok(Transform::Json),
    },
    Shape {
        name: "parse_json",
        parameters: &[],
        text: "Value of a JSON text",
        example: Example::of("source.text | parse_json")
            .on(r#"{"text":"[1]"}"#)
            .gives("[1]"),
        make: |_| Ok(Transform::ParseJson),
    },
    Shape {
        name: "split",
        parameters: &[Parameter::required(
            "separator",
            Text,
            "Text between the parts",
        )],
        text: "List of the parts of a text",
        example: Example::of("source.tags | split(',')")
            .on(r#"{"tags":"a,b"}"#)
            .gives(r#"["a","b"]"#),
        make: |of| Ok(Transform::Split(of.text(0))),
    },
    Shape {
        name: "replace",
        parameters: &[
            Parameter::required("text", Text, "Text to look for"),
            Parameter::required("by", Text, "Text in its place"),
        ],
        text: "Text with another text in the place of each occurrence",
        example: Example::of("source.phone | replace(' ', '')")
            .on(r#"{"phone":"12 34"}"#)
            .gives(r#""1234""#),
        make: |of| {
            let text = of.not_empty(0, "a text to look for")?;
            Ok(Transform::Replace(text, of.text(1)))
        },
    },
    Shape {
        name: "substring",
        parameters: &[
            Parameter::required("start", Number, "Place of the first character, from 0"),
            Parameter::optional("length", Number, "Number of characters; all when left out"),
        ],
        text: "Part of a text",
        example: Example::of("source.code | substring(0, 2)")
            .on(r#"{"code":"DE-17"}"#)
            .gives(r#""DE""#),
        make: substring,
    },
    Shape {
        name: "concat",
        parameters: &[Parameter::required(
            "value",
            Operand,
            "Value that is appended; more may follow",
        )
        .up_to(MAX_CONCATENATED)],
        text: "Text of the value and the arguments, one after another",
        example: Example::of("source.first | concat(' ', source.last)")
            .on(r#"{"first":"Ann","last":"Lee"}"#)
            .gives(r#""Ann Lee""#),
        make: |_| Ok(Transform::Concat),
    },
    Shape {
        name: "round",
        parameters: &[Parameter::optional(
            "n",
            Number,
            "Number of decimals; 0 when left out",
        )],
        text: "Number rounded half away from zero",
        example: Example::of("source.price | round(1)")
            .on(r#"{"price":1.25}"#)
            .gives("1.3"),
        make: |of| {
            let places = if of.has(0) {
                of.whole(0, 0, MAX_PLACES)?
            } else {
                0
            };
            Ok(Transform::Round(places))
        },
    },
    Shape {
        name: "abs",
        parameters: &[],
        text: "Number without its sign",
        example: Example::of("source.change | abs")
            .on(r#"{"change":-5}"#)
            .gives("5"),
        make: |_| Ok(Transform::Abs),
    },
];

fn substring(of: &mut Arguments) -> Result<Transform, ParseError> {
    let length = if of.has(1) {
        Some(of.whole(1, 0, i32::MAX as usize)?)
    } else {
        None
    };
    Ok(Transform::Substring {
        start: of.whole(0, i64::from(i32::MIN), i64::from(i32::MAX))?,
        length,
    })
}

fn date_format(of: &mut Arguments) -> Result<date::Format, ParseError> {
    let zone = if of.has(1) {
        date::zone(&of.text(1)).map_err(|message| of.error(1, message))?
    } else {
        date::utc()
    };
    let format = of.text(0);
    if let Some(fault) = date::unknown_letters(&format) {
        of.definition_fault(0, fault);
    }
    date::Format::parse(&format, zone).map_err(|message| of.error(0, message))
}
