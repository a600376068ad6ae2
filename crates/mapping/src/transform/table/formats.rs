//! Transforms that encode, sign, parse and write, patterns, and calculations with dates.

use crate::ParseError;
use crate::language::ParameterKind::{Expression, Number, Pattern, SigningKey, Text, Word};
use crate::transform::shape::Arguments;
use crate::transform::{Transform, csv, date, pattern, sign, xml};

/// Greatest number of characters of `pad_left`.
const MAX_PADDED: usize = 1_000;

shapes! {
    pub(super) static FORMATS:

    "sha256"()
    text "SHA-256 of a text, in hexadecimal"
    example "source.id | sha256" on r#"{"id":"a"}"#
        gives r#""ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb""#
    make() Transform::Sha256;

    "base64"()
    text "Base64 of a text"
    example "source.text | base64" on r#"{"text":"hello"}"# gives r#""aGVsbG8=""#
    make() Transform::Base64;

    "base64_decode"()
    text "Text of its base64"
    example "source.text | base64_decode" on r#"{"text":"aGVsbG8="}"# gives r#""hello""#
    make() Transform::Base64Decode;

    "url_encode"()
    text "Text that is percent-encoded"
    example "source.name | url_encode" on r#"{"name":"a b&c"}"# gives r#""a%20b%26c""#
    make() Transform::UrlEncode;

    "mask"(
        keep: required Number,
            "Number of characters at the end that stay; a text without more is hidden whole";
    )
    text "Text with its beginning hidden"
    example "source.card | mask(4)" on r#"{"card":"4111111111111111"}"#
        gives r#""************1111""#
    make(of) Transform::Mask(of.whole(0, 0, i32::MAX as usize)?);

    "adapter"(name: required Word, "Name of an adapter")
    text "Value that an adapter gives for the value"
    example "source.order | adapter(tidy)" on r#"{"order":{}}"#
    make(of) Transform::Adapter(of.adapter(0)?);

    "parse_csv"(
        separator: optional Text, "One ASCII character; a comma when left out";
        header: optional Word, "`false` for texts without a header";
    )
    text "List of objects of the records of CSV"
    example "source.csv | parse_csv" on r#"{"csv":"id,n\n1,a\n"}"# gives r#"[{"id":"1","n":"a"}]"#
    make(of) parse_csv(of)?;

    "to_csv"(separator: optional Text, "One ASCII character; a comma when left out")
    text "CSV of a list of objects"
    example "source.rows | to_csv" on r#"{"rows":[{"id":1}]}"# gives r#""id\r\n1\r\n""#
    make(of) Transform::ToCsv(separator(of)?);

    "parse_xml"()
    text "Object with the root element of XML"
    example "source.xml | parse_xml" on r#"{"xml":"<a n=\"1\"><b>x</b></a>"}"#
        gives r#"{"a":{"@n":"1","b":"x"}}"#
    make() Transform::ParseXml;

    "to_xml"(root: required Word, "Name of the root element")
    text "XML of an object"
    example "source.order | to_xml(order)" on r#"{"order":{"@id":"1","sku":"a"}}"#
        gives r#""<order id=\"1\"><sku>a</sku></order>""#
    make(of) Transform::ToXml(element_name(of)?);

    "hmac"(
        algorithm: required Word, "sha1, sha256, sha384 or sha512";
        secret: required SigningKey, "Key of the signature";
        encoding: optional Word, "hex, base64 or base64url; hex when left out";
    )
    text "Signature of a text"
    example "source.text | hmac(sha256, 'key')" on r#"{"text":"a"}"#
        gives r#""780c3db4ce3de5b9e55816fba98f590631d96c075271b26976238d5f4444219b""#
    make(of) hmac(of)?;

    "base64url"()
    text "Base64 for URLs of a text, without padding"
    example "source.text | base64url" on r#"{"text":"hello"}"# gives r#""aGVsbG8""#
    make() Transform::Base64Url;

    "title"()
    text "Text whose words begin with capitals"
    example "source.name | title" on r#"{"name":"ann-marie lee"}"# gives r#""Ann-Marie Lee""#
    make() Transform::Title;

    "slug"()
    text "Text of letters, digits and hyphens alone"
    example "source.title | slug" on r#"{"title":"Größe & Co."}"# gives r#""grosse-co""#
    make() Transform::Slug;

    "pad_left"(
        n: required Number, "Number of characters, 0 to 1,000";
        c: required Text, "The character to fill with";
    )
    text "Text that is filled up at its beginning"
    example "source.id | pad_left(5, '0')" on r#"{"id":17}"# gives r#""00017""#
    make(of) pad_left(of)?;

    "matches"(pattern: required Pattern, "Regular expression in quotes")
    text "Whether a pattern is found in a text"
    example "source.code | matches('^[A-Z]+$')" on r#"{"code":"ABC"}"# gives "true"
    make(of) Transform::Matches(pattern(of)?);

    "extract"(pattern: required Pattern, "Regular expression in quotes")
    text "Part of a text that a pattern finds: its first group, or all of it"
    example "source.code | extract('([0-9]+)')" on r#"{"code":"DE-17"}"# gives r#""17""#
    make(of) Transform::Extract(pattern(of)?);

    "date_add"(duration: required Word, "Duration such as 2h, -30m, 1w, 1mo or 1y")
    text "Date that is moved by a duration"
    example "source.at | date_add(1d)" on r#"{"at":"2026-01-31T08:15:00Z"}"#
        gives r#""2026-02-01T08:15:00.000Z""#
    make(of) Transform::DateAdd(shift(of)?);

    "date_diff"(
        other: required Expression, "The other date";
        unit: required Word, "milliseconds, seconds, minutes, hours, days, weeks, months or years";
    )
    text "Whole units from another date to the date"
    example "source.end | date_diff(source.start, days)"
        on r#"{"start":"2026-01-01","end":"2026-01-31"}"# gives "30"
    make(of) Transform::DateDiff(of.one_of(1, date::UNITS, "a unit")?);
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

fn element_name(of: &Arguments) -> Result<String, ParseError> {
    let name = of.text(0);
    if !xml::is_name(&name) {
        return Err(of.unexpected(0, "the name of an element"));
    }
    Ok(name)
}

fn shift(of: &Arguments) -> Result<date::Shift, ParseError> {
    date::Shift::parse(&of.text(0)).map_err(|message| of.error(0, message))
}

fn pattern(of: &Arguments) -> Result<pattern::Pattern, ParseError> {
    pattern::Pattern::new(&of.text(0)).map_err(|message| of.error(0, message))
}
