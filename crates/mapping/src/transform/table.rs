//! The transforms that there are, each with its arguments.

use super::element::Elementwise;
use super::shape::{Arguments, Shape};
use super::{Transform, csv, date, pattern, sign, xml};
use crate::ParseError;
use crate::parse::Kind::{Element, Expression, Operand, Pattern, SigningKey, Text, Word};

/// Greatest number of decimals of `decimal` and `round`.
const MAX_PLACES: u32 = 30;
/// Greatest number of arguments of `concat`.
const MAX_CONCATENATED: usize = 100;

/// Greatest number of characters of `pad_left`.
const MAX_PADDED: usize = 1_000;

pub(super) static SHAPES: &[Shape] = &[
    Shape::new("decimal", "decimal(n)", [1, 1], &[Word], |of| {
        Ok(Transform::Decimal(of.whole(0, 0, MAX_PLACES)?))
    }),
    Shape::plain("uppercase", |_| Ok(Transform::Uppercase)),
    Shape::plain("lowercase", |_| Ok(Transform::Lowercase)),
    Shape::plain("trim", |_| Ok(Transform::Trim)),
    Shape::plain("now", |_| Ok(Transform::Now)),
    Shape::new(
        "date",
        "date(format) or date(format, zone)",
        [1, 2],
        &[Text],
        |of| Ok(Transform::Date(date_format(of)?)),
    ),
    Shape::plain("required", |_| Ok(Transform::Required)),
    Shape::new(
        "lookup",
        "lookup(table) or lookup(table, default)",
        [1, 2],
        &[Word, Operand],
        |of| Ok(Transform::Lookup(of.table(0)?)),
    ),
    Shape::new("default", "default(value)", [1, 1], &[Operand], |_| {
        Ok(Transform::Default)
    }),
    Shape::plain("string", |_| Ok(Transform::String)),
    Shape::plain("number", |_| Ok(Transform::Number)),
    Shape::plain("integer", |_| Ok(Transform::Integer)),
    Shape::plain("boolean", |_| Ok(Transform::Boolean)),
    Shape::plain("json", |_| Ok(Transform::Json)),
    Shape::plain("parse_json", |_| Ok(Transform::ParseJson)),
    Shape::new("split", "split(separator)", [1, 1], &[Text], |of| {
        Ok(Transform::Split(of.text(0)))
    }),
    Shape::new("join", "join(separator)", [1, 1], &[Text], |of| {
        Ok(Transform::Join(of.text(0)))
    }),
    Shape::new("replace", "replace(text, by)", [2, 2], &[Text], |of| {
        let text = of.not_empty(0, "a text to look for")?;
        Ok(Transform::Replace(text, of.text(1)))
    }),
    Shape::new(
        "substring",
        "substring(start) or substring(start, length)",
        [1, 2],
        &[Word],
        substring,
    ),
    Shape::new(
        "concat",
        "concat(value, ...)",
        [1, MAX_CONCATENATED],
        &[Operand],
        |_| Ok(Transform::Concat),
    ),
    Shape::plain("length", |_| Ok(Transform::Length)),
    Shape::plain("first", |_| Ok(Transform::First)),
    Shape::plain("last", |_| Ok(Transform::Last)),
    Shape::new("sum", "sum or sum(expression)", [0, 1], &[Element], |of| {
        Ok(if of.has(0) {
            Transform::Each(Elementwise::Sum)
        } else {
            Transform::Sum
        })
    }),
    Shape::new("round", "round or round(n)", [0, 1], &[Word], |of| {
        let places = if of.has(0) {
            of.whole(0, 0, MAX_PLACES)?
        } else {
            0
        };
        Ok(Transform::Round(places))
    }),
    Shape::plain("abs", |_| Ok(Transform::Abs)),
    Shape::plain("unique", |_| Ok(Transform::Unique)),
    Shape::plain("sort", |_| Ok(Transform::Sort)),
    Shape::plain("keys", |_| Ok(Transform::Keys)),
    Shape::plain("values", |_| Ok(Transform::Values)),
    Shape::new("map", "map(expression)", [1, 1], &[Element], |_| {
        Ok(Transform::Each(Elementwise::Map))
    }),
    Shape::new("where", "where(condition)", [1, 1], &[Element], |_| {
        Ok(Transform::Each(Elementwise::Where))
    }),
    Shape::new("sort_by", "sort_by(expression)", [1, 1], &[Element], |_| {
        Ok(Transform::Each(Elementwise::SortBy))
    }),
    Shape::new(
        "group_by",
        "group_by(expression)",
        [1, 1],
        &[Element],
        |_| Ok(Transform::Each(Elementwise::GroupBy)),
    ),
    Shape::new("any", "any(condition)", [1, 1], &[Element], |_| {
        Ok(Transform::Each(Elementwise::Any))
    }),
    Shape::new("all", "all(condition)", [1, 1], &[Element], |_| {
        Ok(Transform::Each(Elementwise::All))
    }),
    Shape::plain("min", |_| Ok(Transform::Min)),
    Shape::plain("max", |_| Ok(Transform::Max)),
    Shape::plain("flatten", |_| Ok(Transform::Flatten)),
    Shape::plain("reverse", |_| Ok(Transform::Reverse)),
    Shape::new(
        "slice",
        "slice(from) or slice(from, to)",
        [1, 2],
        &[Expression],
        |_| Ok(Transform::Slice),
    ),
    Shape::new("contains", "contains(value)", [1, 1], &[Expression], |_| {
        Ok(Transform::Contains)
    }),
    Shape::plain("sha256", |_| Ok(Transform::Sha256)),
    Shape::plain("base64", |_| Ok(Transform::Base64)),
    Shape::plain("base64_decode", |_| Ok(Transform::Base64Decode)),
    Shape::plain("url_encode", |_| Ok(Transform::UrlEncode)),
    Shape::plain("base64url", |_| Ok(Transform::Base64Url)),
    Shape::new(
        "hmac",
        "hmac(algorithm, secret) or hmac(algorithm, secret, encoding)",
        [2, 3],
        &[Word, SigningKey, Word],
        hmac,
    ),
    Shape::plain("title", |_| Ok(Transform::Title)),
    Shape::plain("slug", |_| Ok(Transform::Slug)),
    Shape::new(
        "pad_left",
        "pad_left(n, character)",
        [2, 2],
        &[Word],
        pad_left,
    ),
    Shape::new("matches", "matches('regex')", [1, 1], &[Pattern], |of| {
        Ok(Transform::Matches(pattern(of)?))
    }),
    Shape::new("extract", "extract('regex')", [1, 1], &[Pattern], |of| {
        Ok(Transform::Extract(pattern(of)?))
    }),
    Shape::new("date_add", "date_add(duration)", [1, 1], &[Word], |of| {
        let shift = date::Shift::parse(&of.text(0));
        Ok(Transform::DateAdd(
            shift.map_err(|message| of.error(0, message))?,
        ))
    }),
    Shape::new(
        "date_diff",
        "date_diff(other, unit)",
        [2, 2],
        &[Expression, Word],
        |of| Ok(Transform::DateDiff(of.one_of(1, date::UNITS, "a unit")?)),
    ),
    Shape::new(
        "parse_csv",
        "parse_csv, parse_csv(separator) or parse_csv(separator, false)",
        [0, 2],
        &[Word],
        parse_csv,
    ),
    Shape::new(
        "to_csv",
        "to_csv or to_csv(separator)",
        [0, 1],
        &[Word],
        |of| Ok(Transform::ToCsv(separator(of)?)),
    ),
    Shape::plain("parse_xml", |_| Ok(Transform::ParseXml)),
    Shape::new("to_xml", "to_xml(root)", [1, 1], &[Word], |of| {
        let root = of.text(0);
        if !xml::is_name(&root) {
            return Err(of.unexpected(0, "the name of an element"));
        }
        Ok(Transform::ToXml(root))
    }),
    Shape::new("mask", "mask(keep)", [1, 1], &[Word], |of| {
        Ok(Transform::Mask(of.whole(0, 0, i32::MAX as usize)?))
    }),
    Shape::new("adapter", "adapter(name)", [1, 1], &[Word], |of| {
        Ok(Transform::Adapter(of.adapter(0)?))
    }),
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

fn hmac(of: &mut Arguments) -> Result<Transform, ParseError> {
    let encoding = if of.has(2) {
        of.one_of(2, sign::ENCODINGS, "an encoding")?
    } else {
        sign::Encoding::Hexadecimal
    };
    let algorithm = of.one_of(0, sign::ALGORITHMS, "an algorithm")?;
    Ok(Transform::Hmac(algorithm, encoding))
}

fn pad_left(of: &mut Arguments) -> Result<Transform, ParseError> {
    let count = of.whole(0, 0, MAX_PADDED)?;
    let text = of.text(1);
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok(Transform::PadLeft(count, letter)),
        _ => Err(of.unexpected(1, "one character")),
    }
}

fn parse_csv(of: &mut Arguments) -> Result<Transform, ParseError> {
    let has_header = match of.text(1).as_str() {
        "" | "true" => true,
        "false" => false,
        _ => return Err(of.unexpected(1, "true or false: whether there is a header")),
    };
    let separator = separator(of)?;
    Ok(Transform::ParseCsv(csv::Dialect {
        separator,
        has_header,
    }))
}

fn separator(of: &Arguments) -> Result<u8, ParseError> {
    if !of.has(0) {
        return Ok(b',');
    }
    csv::Dialect::separator(&of.text(0))
        .ok_or_else(|| of.unexpected(0, "one ASCII character that separates fields"))
}

fn pattern(of: &mut Arguments) -> Result<pattern::Pattern, ParseError> {
    pattern::Pattern::new(&of.text(0)).map_err(|message| of.error(0, message))
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
