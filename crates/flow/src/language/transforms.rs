//! Transforms of texts, numbers and dates, and those of any value, with their arguments and an
//! example each.

mod lists;

use super::{Example, Function, argument, optional};
pub(super) use lists::LISTS;

/// Transforms of single values.
pub(super) static VALUES: &[Function] = &[
    Function {
        name: "decimal",
        arguments: &[argument("n", "number", "Number of decimals, 0 to 30")],
        text: "Text with n decimals of a number or a numeric text, half away from zero",
        example: Example {
            expression: "source.amount | decimal(2)",
            source: Some(r#"{"amount":149.505}"#),
            value: Some(r#""149.51""#),
        },
    },
    Function {
        name: "uppercase",
        arguments: &[],
        text: "Text in capitals",
        example: Example {
            expression: "source.country | uppercase",
            source: Some(r#"{"country":"de"}"#),
            value: Some(r#""DE""#),
        },
    },
    Function {
        name: "lowercase",
        arguments: &[],
        text: "Text in small letters",
        example: Example {
            expression: "source.email | lowercase",
            source: Some(r#"{"email":"Ann@Shop.example"}"#),
            value: Some(r#""ann@shop.example""#),
        },
    },
    Function {
        name: "trim",
        arguments: &[],
        text: "Text without blanks at its ends",
        example: Example {
            expression: "source.name | trim",
            source: Some(r#"{"name":" Ann "}"#),
            value: Some(r#""Ann""#),
        },
    },
    Function {
        name: "now",
        arguments: &[],
        text: "Current time in UTC; the piped value is ignored",
        example: Example {
            expression: "'' | now",
            source: None,
            value: None,
        },
    },
    Function {
        name: "date",
        arguments: &[
            argument(
                "format",
                "text",
                "Tokens such as YYYY-MM-DD HH:mm; `[...]` stands for itself",
            ),
            optional("zone", "text", "IANA time zone; UTC when left out"),
        ],
        text: "Date of ISO 8601 or of epoch seconds or milliseconds, in another form",
        example: Example {
            expression: "source.at | date(DD.MM.YYYY)",
            source: Some(r#"{"at":"2026-01-31T08:15:00Z"}"#),
            value: Some(r#""31.01.2026""#),
        },
    },
    Function {
        name: "required",
        arguments: &[],
        text: "Value itself; null and undefined are mapping errors",
        example: Example {
            expression: "source.id | required",
            source: Some(r#"{"id":17}"#),
            value: Some("17"),
        },
    },
    Function {
        name: "lookup",
        arguments: &[
            argument("table", "word", "Name of a lookup table"),
            optional("default", "value", "Value where the table has none"),
        ],
        text: "Entry of a lookup table for the value",
        example: Example {
            expression: "source.country | lookup(country_codes, ZZ)",
            source: Some(r#"{"country":"DE"}"#),
            value: None,
        },
    },
    Function {
        name: "default",
        arguments: &[argument(
            "value",
            "value",
            "Value in the place of null and undefined",
        )],
        text: "Value itself, or another where it is missing",
        example: Example {
            expression: "source.currency | default(EUR)",
            source: Some("{}"),
            value: Some(r#""EUR""#),
        },
    },
    Function {
        name: "string",
        arguments: &[],
        text: "Value as a text",
        example: Example {
            expression: "source.id | string",
            source: Some(r#"{"id":17}"#),
            value: Some(r#""17""#),
        },
    },
    Function {
        name: "number",
        arguments: &[],
        text: "Number of a numeric text",
        example: Example {
            expression: "source.qty | number",
            source: Some(r#"{"qty":"1.5"}"#),
            value: Some("1.5"),
        },
    },
    Function {
        name: "integer",
        arguments: &[],
        text: "Whole number of a number or a numeric text; others are mapping errors",
        example: Example {
            expression: "source.qty | integer",
            source: Some(r#"{"qty":"2"}"#),
            value: Some("2"),
        },
    },
    Function {
        name: "boolean",
        arguments: &[],
        text: "Boolean of a boolean, of 0 and 1, or of words such as yes and no",
        example: Example {
            expression: "source.active | boolean",
            source: Some(r#"{"active":"yes"}"#),
            value: Some("true"),
        },
    },
    Function {
        name: "json",
        arguments: &[],
        text: "JSON text of a value",
        example: Example {
            expression: "source.tags | json",
            source: Some(r#"{"tags":["a"]}"#),
            value: Some(r#""[\"a\"]""#),
        },
    },
    Function {
        name: "parse_json",
        arguments: &[],
        text: "Value of a JSON text",
        example: Example {
            expression: "source.text | parse_json",
            source: Some(r#"{"text":"[1]"}"#),
            value: Some("[1]"),
        },
    },
    Function {
        name: "split",
        arguments: &[argument("separator", "text", "Text between the parts")],
        text: "List of the parts of a text",
        example: Example {
            expression: "source.tags | split(',')",
            source: Some(r#"{"tags":"a,b"}"#),
            value: Some(r#"["a","b"]"#),
        },
    },
    Function {
        name: "replace",
        arguments: &[
            argument("text", "text", "Text to look for"),
            argument("by", "text", "Text in its place"),
        ],
        text: "Text with another text in the place of each occurrence",
        example: Example {
            expression: "source.phone | replace(' ', '')",
            source: Some(r#"{"phone":"12 34"}"#),
            value: Some(r#""1234""#),
        },
    },
    Function {
        name: "substring",
        arguments: &[
            argument("start", "number", "Place of the first character, from 0"),
            optional(
                "length",
                "number",
                "Number of characters; all when left out",
            ),
        ],
        text: "Part of a text",
        example: Example {
            expression: "source.code | substring(0, 2)",
            source: Some(r#"{"code":"DE-17"}"#),
            value: Some(r#""DE""#),
        },
    },
    Function {
        name: "concat",
        arguments: &[argument(
            "value",
            "value",
            "Value that is appended; more may follow",
        )],
        text: "Text of the value and the arguments, one after another",
        example: Example {
            expression: "source.first | concat(' ', source.last)",
            source: Some(r#"{"first":"Ann","last":"Lee"}"#),
            value: Some(r#""Ann Lee""#),
        },
    },
    Function {
        name: "round",
        arguments: &[optional(
            "n",
            "number",
            "Number of decimals; 0 when left out",
        )],
        text: "Number rounded half away from zero",
        example: Example {
            expression: "source.price | round(1)",
            source: Some(r#"{"price":1.25}"#),
            value: Some("1.3"),
        },
    },
    Function {
        name: "abs",
        arguments: &[],
        text: "Number without its sign",
        example: Example {
            expression: "source.change | abs",
            source: Some(r#"{"change":-5}"#),
            value: Some("5"),
        },
    },
    Function {
        name: "sha256",
        arguments: &[],
        text: "SHA-256 of a text, in hexadecimal",
        example: Example {
            expression: "source.id | sha256",
            source: Some(r#"{"id":"a"}"#),
            value: Some(r#""ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb""#),
        },
    },
    Function {
        name: "base64",
        arguments: &[],
        text: "Base64 of a text",
        example: Example {
            expression: "source.text | base64",
            source: Some(r#"{"text":"hello"}"#),
            value: Some(r#""aGVsbG8=""#),
        },
    },
    Function {
        name: "base64_decode",
        arguments: &[],
        text: "Text of its base64",
        example: Example {
            expression: "source.text | base64_decode",
            source: Some(r#"{"text":"aGVsbG8="}"#),
            value: Some(r#""hello""#),
        },
    },
    Function {
        name: "url_encode",
        arguments: &[],
        text: "Text that is percent-encoded",
        example: Example {
            expression: "source.name | url_encode",
            source: Some(r#"{"name":"a b&c"}"#),
            value: Some(r#""a%20b%26c""#),
        },
    },
    Function {
        name: "mask",
        arguments: &[argument(
            "keep",
            "number",
            "Number of characters at the end that stay",
        )],
        text: "Text with its beginning hidden",
        example: Example {
            expression: "source.card | mask(4)",
            source: Some(r#"{"card":"4111111111111111"}"#),
            value: Some(r#""************1111""#),
        },
    },
    Function {
        name: "adapter",
        arguments: &[argument("name", "word", "Name of an adapter")],
        text: "Value that an adapter gives for the value",
        example: Example {
            expression: "source.order | adapter(tidy)",
            source: Some(r#"{"order":{}}"#),
            value: None,
        },
    },
    Function {
        name: "parse_csv",
        arguments: &[
            optional(
                "separator",
                "text",
                "One ASCII character; a comma when left out",
            ),
            optional("header", "word", "`false` for texts without a header"),
        ],
        text: "List of objects of the records of CSV",
        example: Example {
            expression: "source.csv | parse_csv",
            source: Some(r#"{"csv":"id,n\n1,a\n"}"#),
            value: Some(r#"[{"id":"1","n":"a"}]"#),
        },
    },
    Function {
        name: "to_csv",
        arguments: &[optional(
            "separator",
            "text",
            "One ASCII character; a comma when left out",
        )],
        text: "CSV of a list of objects",
        example: Example {
            expression: "source.rows | to_csv",
            source: Some(r#"{"rows":[{"id":1}]}"#),
            value: Some(r#""id\r\n1\r\n""#),
        },
    },
    Function {
        name: "parse_xml",
        arguments: &[],
        text: "Object with the root element of XML",
        example: Example {
            expression: "source.xml | parse_xml",
            source: Some(r#"{"xml":"<a n=\"1\"><b>x</b></a>"}"#),
            value: Some(r#"{"a":{"@n":"1","b":"x"}}"#),
        },
    },
    Function {
        name: "to_xml",
        arguments: &[argument("root", "word", "Name of the root element")],
        text: "XML of an object",
        example: Example {
            expression: "source.order | to_xml(order)",
            source: Some(r#"{"order":{"@id":"1","sku":"a"}}"#),
            value: Some(r#""<order id=\"1\"><sku>a</sku></order>""#),
        },
    },
    Function {
        name: "hmac",
        arguments: &[
            argument("algorithm", "word", "sha1, sha256, sha384 or sha512"),
            argument("secret", "expression", "Key of the signature"),
            optional(
                "encoding",
                "word",
                "hex, base64 or base64url; hex when left out",
            ),
        ],
        text: "Signature of a text",
        example: Example {
            expression: "source.text | hmac(sha256, 'key')",
            source: Some(r#"{"text":"a"}"#),
            value: Some(r#""780c3db4ce3de5b9e55816fba98f590631d96c075271b26976238d5f4444219b""#),
        },
    },
    Function {
        name: "base64url",
        arguments: &[],
        text: "Base64 for URLs of a text, without padding",
        example: Example {
            expression: "source.text | base64url",
            source: Some(r#"{"text":"hello"}"#),
            value: Some(r#""aGVsbG8""#),
        },
    },
    Function {
        name: "title",
        arguments: &[],
        text: "Text whose words begin with capitals",
        example: Example {
            expression: "source.name | title",
            source: Some(r#"{"name":"ann-marie lee"}"#),
            value: Some(r#""Ann-Marie Lee""#),
        },
    },
    Function {
        name: "slug",
        arguments: &[],
        text: "Text of letters, digits and hyphens alone",
        example: Example {
            expression: "source.title | slug",
            source: Some(r#"{"title":"Größe & Co."}"#),
            value: Some(r#""grosse-co""#),
        },
    },
    Function {
        name: "pad_left",
        arguments: &[
            argument("n", "number", "Number of characters, 0 to 1,000"),
            argument("c", "text", "The character to fill with"),
        ],
        text: "Text that is filled up at its beginning",
        example: Example {
            expression: "source.id | pad_left(5, '0')",
            source: Some(r#"{"id":17}"#),
            value: Some(r#""00017""#),
        },
    },
    Function {
        name: "matches",
        arguments: &[argument(
            "pattern",
            "pattern",
            "Regular expression in quotes",
        )],
        text: "Whether a pattern is found in a text",
        example: Example {
            expression: "source.code | matches('^[A-Z]+$')",
            source: Some(r#"{"code":"ABC"}"#),
            value: Some("true"),
        },
    },
    Function {
        name: "extract",
        arguments: &[argument(
            "pattern",
            "pattern",
            "Regular expression in quotes",
        )],
        text: "Part of a text that a pattern finds: its first group, or all of it",
        example: Example {
            expression: "source.code | extract('([0-9]+)')",
            source: Some(r#"{"code":"DE-17"}"#),
            value: Some(r#""17""#),
        },
    },
    Function {
        name: "date_add",
        arguments: &[argument(
            "duration",
            "word",
            "Duration such as 2h, -30m, 1w, 1mo or 1y",
        )],
        text: "Date that is moved by a duration",
        example: Example {
            expression: "source.at | date_add(1d)",
            source: Some(r#"{"at":"2026-01-31T08:15:00Z"}"#),
            value: Some(r#""2026-02-01T08:15:00.000Z""#),
        },
    },
    Function {
        name: "date_diff",
        arguments: &[
            argument("other", "expression", "The other date"),
            argument(
                "unit",
                "word",
                "milliseconds, seconds, minutes, hours, days, weeks, months or years",
            ),
        ],
        text: "Whole units from another date to the date",
        example: Example {
            expression: "source.end | date_diff(source.start, days)",
            source: Some(r#"{"start":"2026-01-01","end":"2026-01-31"}"#),
            value: Some("30"),
        },
    },
];
