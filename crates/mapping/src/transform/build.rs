//! Builds a transform from its name and arguments.

use super::{Transform, date};
use crate::ParseError;
use crate::node::{Call, Literal};
use crate::parse::{Argument, ArgumentKind, Parser, suggestion};
use crate::references::{Reference, References};

/// Greatest number of decimals of `decimal` and `round`.
const MAX_PLACES: u32 = 30;

/// Name of a transform, the least and greatest number of its arguments, and their spelling.
struct Shape(&'static str, usize, usize, &'static str);

const SHAPES: [Shape; 36] = [
    Shape("decimal", 1, 1, "decimal(n)"),
    Shape("uppercase", 0, 0, "uppercase"),
    Shape("lowercase", 0, 0, "lowercase"),
    Shape("trim", 0, 0, "trim"),
    Shape("now", 0, 0, "now"),
    Shape("date", 1, 2, "date(format) or date(format, zone)"),
    Shape("required", 0, 0, "required"),
    Shape("lookup", 1, 2, "lookup(table) or lookup(table, default)"),
    Shape("default", 1, 1, "default(value)"),
    Shape("string", 0, 0, "string"),
    Shape("number", 0, 0, "number"),
    Shape("integer", 0, 0, "integer"),
    Shape("boolean", 0, 0, "boolean"),
    Shape("json", 0, 0, "json"),
    Shape("parse_json", 0, 0, "parse_json"),
    Shape("split", 1, 1, "split(separator)"),
    Shape("join", 1, 1, "join(separator)"),
    Shape("replace", 2, 2, "replace(text, by)"),
    Shape(
        "substring",
        1,
        2,
        "substring(start) or substring(start, length)",
    ),
    Shape("concat", 1, 100, "concat(value, ...)"),
    Shape("length", 0, 0, "length"),
    Shape("first", 0, 0, "first"),
    Shape("last", 0, 0, "last"),
    Shape("sum", 0, 0, "sum"),
    Shape("round", 0, 1, "round or round(n)"),
    Shape("abs", 0, 0, "abs"),
    Shape("unique", 0, 0, "unique"),
    Shape("sort", 0, 0, "sort"),
    Shape("keys", 0, 0, "keys"),
    Shape("values", 0, 0, "values"),
    Shape("sha256", 0, 0, "sha256"),
    Shape("base64", 0, 0, "base64"),
    Shape("base64_decode", 0, 0, "base64_decode"),
    Shape("url_encode", 0, 0, "url_encode"),
    Shape("mask", 1, 1, "mask(keep)"),
    Shape("adapter", 1, 1, "adapter(name)"),
];

/// Builds the transform whose name stands at `offset`.
pub(crate) fn build(
    name: &str,
    offset: usize,
    arguments: &[Argument],
    parser: &mut Parser,
) -> Result<Call, ParseError> {
    let Some(Shape(name, fewest, most, usage)) = SHAPES.iter().find(|shape| shape.0 == name) else {
        let names: Vec<_> = SHAPES.iter().map(|shape| shape.0).collect();
        let suggestion = suggestion(name, &names);
        let name: String = name.chars().take(40).collect();
        return Err(ParseError::new(
            offset,
            format!("there is no transform `{name}`{suggestion}"),
        ));
    };
    if !(*fewest..=*most).contains(&arguments.len()) {
        let found = arguments.len();
        let plural = if found == 1 { "" } else { "s" };
        return Err(ParseError::new(
            offset,
            format!("found {found} argument{plural}, expected `{usage}`"),
        ));
    }
    let transform = match *name {
        "decimal" => Transform::Decimal(whole(&arguments[0], 0, MAX_PLACES)?),
        "uppercase" => Transform::Uppercase,
        "lowercase" => Transform::Lowercase,
        "trim" => Transform::Trim,
        "now" => Transform::Now,
        "date" => Transform::Date(date_format(arguments, &mut parser.references)?),
        "required" => Transform::Required,
        "lookup" => Transform::Lookup {
            table: named(
                &arguments[0],
                "the name of a table",
                &mut parser.references.tables,
            )?,
            default: arguments
                .get(1)
                .map(|default| parser.operand(default))
                .transpose()?,
        },
        "default" => Transform::Default(parser.operand(&arguments[0])?),
        "string" => Transform::String,
        "number" => Transform::Number,
        "integer" => Transform::Integer,
        "boolean" => Transform::Boolean,
        "json" => Transform::Json,
        "parse_json" => Transform::ParseJson,
        "split" => Transform::Split(arguments[0].text()),
        "join" => Transform::Join(arguments[0].text()),
        "replace" => Transform::Replace(
            not_empty(&arguments[0], "a text to look for")?,
            arguments[1].text(),
        ),
        "substring" => Transform::Substring {
            start: whole(&arguments[0], i64::from(i32::MIN), i64::from(i32::MAX))?,
            length: arguments
                .get(1)
                .map(|length| whole(length, 0, i32::MAX as usize))
                .transpose()?,
        },
        "concat" => Transform::Concat(
            arguments
                .iter()
                .map(|value| parser.operand(value))
                .collect::<Result<_, _>>()?,
        ),
        "length" => Transform::Length,
        "first" => Transform::First,
        "last" => Transform::Last,
        "sum" => Transform::Sum,
        "round" => Transform::Round(
            arguments
                .first()
                .map_or(Ok(0), |places| whole(places, 0, MAX_PLACES))?,
        ),
        "abs" => Transform::Abs,
        "unique" => Transform::Unique,
        "sort" => Transform::Sort,
        "keys" => Transform::Keys,
        "values" => Transform::Values,
        "sha256" => Transform::Sha256,
        "base64" => Transform::Base64,
        "base64_decode" => Transform::Base64Decode,
        "url_encode" => Transform::UrlEncode,
        "mask" => Transform::Mask(whole(&arguments[0], 0, i32::MAX as usize)?),
        "adapter" => Transform::Adapter(named(
            &arguments[0],
            "the name of an adapter",
            &mut parser.references.adapters,
        )?),
        other => {
            return Err(ParseError::new(
                offset,
                format!("there is no transform `{other}`"),
            ));
        }
    };
    Ok(Call { name, transform })
}

fn whole<N>(argument: &Argument, least: N, most: N) -> Result<N, ParseError>
where
    N: std::str::FromStr + PartialOrd + std::fmt::Display,
{
    let number = match &argument.kind {
        ArgumentKind::Literal(Literal::Number(digits)) => digits.parse().ok(),
        ArgumentKind::Literal(_) | ArgumentKind::Word(_) => None,
    };
    number
        .filter(|number| (&least..=&most).contains(&number))
        .ok_or_else(|| {
            let found = shown(argument);
            ParseError::new(
                argument.offset,
                format!("found `{found}`, expected a whole number from {least} to {most}"),
            )
        })
}

fn not_empty(argument: &Argument, expected: &str) -> Result<String, ParseError> {
    let text = argument.text();
    if text.is_empty() {
        return Err(ParseError::new(
            argument.offset,
            format!("found an empty text, expected {expected}"),
        ));
    }
    Ok(text)
}

fn named(
    argument: &Argument,
    expected: &str,
    names: &mut Vec<Reference>,
) -> Result<String, ParseError> {
    let name = not_empty(argument, expected)?;
    names.push(Reference {
        name: name.clone(),
        offset: argument.offset,
    });
    Ok(name)
}

fn date_format(
    arguments: &[Argument],
    references: &mut References,
) -> Result<date::Format, ParseError> {
    let at = |argument: &Argument| {
        let offset = argument.offset;
        move |message: String| ParseError::new(offset, message)
    };
    let zone = match arguments.get(1) {
        Some(zone) => date::zone(&zone.text()).map_err(at(zone))?,
        None => date::utc(),
    };
    let format = &arguments[0];
    let fault = date::unknown_letters(&format.text()).map(at(format));
    references.definition_faults.extend(fault);
    date::Format::parse(&format.text(), zone).map_err(at(format))
}

fn shown(argument: &Argument) -> String {
    argument.text().chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use crate::parse::expression;

    #[track_caller]
    fn refuses(text: &str, offset: usize, message: &str) {
        let errors = expression(&format!("1 | {text}")).map(|_| ()).unwrap_err();
        assert_eq!(errors[0].offset - 4, offset, "{text}");
        assert_eq!(errors[0].message.as_str(), message, "{text}");
    }

    #[test]
    fn checks_arguments() {
        refuses("decimal", 0, "found 0 arguments, expected `decimal(n)`");
        refuses("trim(1)", 0, "found 1 argument, expected `trim`");
        refuses(
            "decimal(31)",
            8,
            "found `31`, expected a whole number from 0 to 30",
        );
        refuses(
            "decimal(-1)",
            8,
            "found `-1`, expected a whole number from 0 to 30",
        );
        refuses(
            "decimal(1.0)",
            8,
            "found `1.0`, expected a whole number from 0 to 30",
        );
        refuses(
            "decimal('2')",
            8,
            "found `2`, expected a whole number from 0 to 30",
        );
        refuses(
            "mask(x)",
            5,
            "found `x`, expected a whole number from 0 to 2147483647",
        );
        refuses(
            "lookup('')",
            7,
            "found an empty text, expected the name of a table",
        );
        refuses(
            "replace('', x)",
            8,
            "found an empty text, expected a text to look for",
        );
        refuses("concat(source.)", 14, "found `)`, expected a name");
        refuses(
            "concat(source.a b)",
            16,
            "found `b`, expected `.`, `[` or the end of the path",
        );
        refuses("split(", 6, "found the end, expected an argument");
        refuses("split(,)", 6, "found `,`, expected an argument");
        refuses("split('a' b)", 10, "found `b`, expected `,` or `)`");
        refuses(
            "date(YYYY, Mars/Olympus)",
            11,
            "there is no time zone `Mars/Olympus`",
        );
        refuses(
            "date(YYYY, Europe/Berln)",
            11,
            "there is no time zone `Europe/Berln`; did you mean `Europe/Berlin`?",
        );
    }
}
