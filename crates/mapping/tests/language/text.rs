//! Transforms of text, and those that deal with what is missing.

use crate::{check, fails};

#[test]
fn case_and_blanks() {
    check("source.name | trim | uppercase", r#""GRÜSSE""#);
    check("'ÀB' | lowercase", r#""àb""#);
    check("source.id | uppercase", r#""17""#);
    check("source.yes | uppercase", r#""TRUE""#);
    check("source.nothing | trim", "null");
    check("source.missing | trim", "undefined");
    fails(
        "source.list | trim",
        "expected a string, a number or a boolean, found a list",
    );
}

#[test]
fn required_takes_all_but_null_and_undefined() {
    check("source.empty | required", r#""""#);
    check("source.no | required", "false");
    check("source.missing | default(1) | required", "1");
    fails(
        "source.missing | required",
        "a value is required, found undefined at source.missing",
    );
    fails(
        "source.nothing | trim | required",
        "a value is required, found null at source.nothing",
    );
    fails(
        "source.list[9].a['odd name'] | required",
        "a value is required, found undefined at source.list[9]",
    );
    fails(
        "source.list | map(item.x.y | required)",
        "a value is required, found undefined at item.x",
    );
    fails(
        "source.country | lookup(countries) | uppercase | lookup(countries) | required",
        "a value is required, found undefined: the lookup table \"countries\" has no such key",
    );
}

#[test]
fn lookup_replaces_by_the_table() {
    check("source.country | lookup(countries)", r#""Germany""#);
    check(
        "source.country | uppercase | lookup(countries)",
        "undefined",
    );
    check(
        "source.country | uppercase | lookup(countries, ZZ)",
        r#""ZZ""#,
    );
    check("source.missing | lookup(countries, 'none')", r#""none""#);
    check("source.nothing | lookup(countries)", "undefined");
    check("source.nothing | lookup(countries, null)", "null");
    check("source.missing | lookup(countries, 0)", "0");
    check("source.missing | lookup(countries, source.id)", "17");
    check("source.empty | lookup('countries', x)", r#""empty""#);
    check("source.id | lookup(countries)", r#""by its text""#);
    check("source.yes | lookup(countries)", r#""by its text""#);
    fails(
        "source.country | lookup(planets)",
        "there is no lookup table named \"planets\"",
    );
    fails(
        "source.list | lookup(countries)",
        "expected a string, a number or a boolean, found a list",
    );
}

#[test]
fn default_stands_in_for_what_is_missing() {
    check("source.missing | default(x)", r#""x""#);
    check("source.nothing | default(-1.50)", "-1.50");
    check("source.empty | default(x)", r#""""#);
    check("source.missing | default(source.object.b)", "1");
    check(
        "source.missing | default('source.object.b')",
        r#""source.object.b""#,
    );
    check("source.missing | default(007)", r#""007""#);
    check("source.missing | default(true)", "true");
}

#[test]
fn pieces_of_text() {
    check("'a-b-c' | replace('-', '+')", r#""a+b+c""#);
    check("'a.b' | replace('.', '')", r#""ab""#);
    check("source.name | trim | substring(1, 3)", r#""rüß""#);
    check("'abc' | substring(-2)", r#""bc""#);
    check("'abc' | substring(-9, 1)", r#""a""#);
    check("'abc' | substring(5, 1)", r#""""#);
    check(
        "'a' | concat('-', source.id, source.missing, b)",
        r#""a-17b""#,
    );
    check("source.missing | concat(x)", "undefined");
    check("'4111111111111111' | mask(4)", r#""************1111""#);
    check("'123' | mask(4)", r#""***""#);
    check("'äöü' | mask(0)", r#""***""#);
    fails(
        "'a' | concat(source.list)",
        "expected a string, a number or a boolean, found a list",
    );
}

#[test]
fn text_and_json() {
    check("source.price | string", r#""1.10""#);
    check("source.object.a | string", r#""{\"c\": 2}""#);
    check("source.escaped | json", r#""\"a\\/b\\u00e9\"""#);
    check("source.nothing | json", "null");
    check(r#"' {"a": [1.10]} ' | parse_json"#, r#"{"a": [1.10]}"#);
    fails(
        "'{' | parse_json",
        "the string is not JSON: line 1, column 2: found the end, expected a key in double quotes",
    );
    fails("1 | parse_json", "expected a string, found a number");
}

#[test]
fn encodings() {
    check(
        "'abc' | sha256",
        r#""ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad""#,
    );
    check("'Grüße?>' | base64", r#""R3LDvMOfZT8+""#);
    check("'R3LDvMOfZT8-' | base64_decode", r#""Grüße?>""#);
    check("'YQ' | base64_decode", r#""a""#);
    check("'YQ==' | base64_decode", r#""a""#);
    check("'a b/ü?-._~' | url_encode", r#""a%20b%2F%C3%BC%3F-._~""#);
    fails("'/w==' | base64_decode", "expected Base64 of UTF-8 text");
}

#[test]
fn an_adapter_that_is_not_there_fails() {
    fails(
        "source.id | adapter(tidy)",
        "there is no adapter named \"tidy\"",
    );
}

#[test]
fn no_value_grows_beyond_16_mib() {
    let tenfold = "| replace(a, aaaaaaaaaa) ".repeat(8);
    fails(
        &format!("'a' {tenfold}"),
        "the result is larger than 16 MiB",
    );
}
