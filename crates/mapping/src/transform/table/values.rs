//! Transforms of single values: numbers, texts, dates as texts, and those of any value.

use crate::ParseError;
use crate::language::ParameterKind::{Number, Operand, Text, Word};
use crate::transform::shape::Arguments;
use crate::transform::{Transform, date};

/// Greatest number of decimals of `decimal` and `round`.
const MAX_PLACES: u32 = 30;

/// Greatest number of arguments of `concat`.
const MAX_CONCATENATED: usize = 100;

shapes! {
    pub(super) static VALUES:

    "decimal"(n: required Number, "Number of decimals, 0 to 30")
    text "Text with n decimals of a number or a numeric text, half away from zero"
    example "source.amount | decimal(2)" on r#"{"amount":149.505}"# gives r#""149.51""#
    make(of) Transform::Decimal(of.whole(0, 0, MAX_PLACES)?);

    "uppercase"()
    text "Text in capitals"
    example "source.country | uppercase" on r#"{"country":"de"}"# gives r#""DE""#
    make() Transform::Uppercase;

    "lowercase"()
    text "Text in small letters"
    example "source.email | lowercase" on r#"{"email":"Ann@Shop.example"}"#
        gives r#""ann@shop.example""#
    make() Transform::Lowercase;

    "trim"()
    text "Text without blanks at its ends"
    example "source.name | trim" on r#"{"name":" Ann "}"# gives r#""Ann""#
    make() Transform::Trim;

    "now"()
    text "Current time in UTC; the piped value is ignored"
    example "'' | now"
    make() Transform::Now;

    "date"(
        format: required Text, "Tokens such as YYYY-MM-DD HH:mm; `[...]` stands for itself";
        zone: optional Text, "IANA time zone; UTC when left out";
    )
    text "Date of ISO 8601 or of epoch seconds or milliseconds, in another form"
    example "source.at | date(DD.MM.YYYY)" on r#"{"at":"2026-01-31T08:15:00Z"}"#
        gives r#""31.01.2026""#
    make(of) Transform::Date(date_format(of)?);

    "required"()
    text "Value itself; null and undefined are mapping errors"
    example "source.id | required" on r#"{"id":17}"# gives "17"
    make() Transform::Required;

    "lookup"(
        table: required Word, "Name of a lookup table";
        default: optional Operand, "Value where the table has none; undefined when left out";
    )
    text "Entry of a lookup table for the value"
    example "source.country | lookup(country_codes, ZZ)" on r#"{"country":"DE"}"#
    make(of) Transform::Lookup(of.table(0)?);

    "default"(value: required Operand, "Value in the place of null and undefined")
    text "Value itself, or another where it is missing"
    example "source.currency | default(EUR)" on "{}" gives r#""EUR""#
    make() Transform::Default;

    "string"()
    text "Value as a text"
    example "source.id | string" on r#"{"id":17}"# gives r#""17""#
    make() Transform::String;

    "number"()
    text "Number of a numeric text"
    example "source.qty | number" on r#"{"qty":"1.5"}"# gives "1.5"
    make() Transform::Number;

    "integer"()
    text "Whole number of a number or a numeric text; others are mapping errors"
    example "source.qty | integer" on r#"{"qty":"2"}"# gives "2"
    make() Transform::Integer;

    "boolean"()
    text "Boolean of a boolean, of a number (false for 0 alone), or of a text: true, yes, on, y, \
           t, 1; false, no, off, n, f, 0; another text is a mapping error"
    example "source.active | boolean" on r#"{"active":"yes"}"# gives "true"
    make() Transform::Boolean;

    "json"()
    text "JSON text of a value"
    example "source.tags | json" on r#"{"tags":["a"]}"# gives r#""[\"a\"]""#
    make() Transform::Json;

    "parse_json"()
    text "Value of a JSON text"
    example "source.text | parse_json" on r#"{"text":"[1]"}"# gives "[1]"
    make() Transform::ParseJson;

    "split"(separator: required Text, "Text between the parts")
    text "List of the parts of a text"
    example "source.tags | split(',')" on r#"{"tags":"a,b"}"# gives r#"["a","b"]"#
    make(of) Transform::Split(of.text(0));

    "replace"(
        text: required Text, "Text to look for";
        by: required Text, "Text in its place";
    )
    text "Text with another text in the place of each occurrence"
    example "source.phone | replace(' ', '')" on r#"{"phone":"12 34"}"# gives r#""1234""#
    make(of) Transform::Replace(of.not_empty(0, "a text to look for")?, of.text(1));

    "substring"(
        start: required Number, "Place of the first character, from 0";
        length: optional Number, "Number of characters; all when left out";
    )
    text "Part of a text"
    example "source.code | substring(0, 2)" on r#"{"code":"DE-17"}"# gives r#""DE""#
    make(of) substring(of)?;

    "concat"(
        value: required Operand up_to MAX_CONCATENATED, "Value that is appended; more may follow";
    )
    text "Text of the value and the arguments, one after another"
    example "source.first | concat(' ', source.last)" on r#"{"first":"Ann","last":"Lee"}"#
        gives r#""Ann Lee""#
    make() Transform::Concat;

    "round"(n: optional Number, "Number of decimals; 0 when left out")
    text "Number rounded half away from zero"
    example "source.price | round(1)" on r#"{"price":1.25}"# gives "1.3"
    make(of) Transform::Round(if of.has(0) { of.whole(0, 0, MAX_PLACES)? } else { 0 });

    "abs"()
    text "Number without its sign"
    example "source.change | abs" on r#"{"change":-5}"# gives "5"
    make() Transform::Abs;
}

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
    if let Some(fault) = date::misspelt(&format) {
        of.definition_fault(0, fault);
    }
    date::Format::parse(&format, zone).map_err(|message| of.error(0, message))
}
