//! Transforms of numbers and dates.

use crate::{check, fails};

const NOT_A_NUMBER: &str = "expected a number or a numeric string: it is not a number";

#[test]
fn decimal_formats_exactly() {
    check("source.total | decimal(2)", r#""149.50""#);
    check("source.amount | decimal(2)", r#""149.51""#);
    check("source.big | decimal(0)", r#""9007199254740993""#);
    check("source.big | decimal(1)", r#""9007199254740993.0""#);
    check("'-2.5' | decimal(0)", r#""-3""#);
    check(
        "' 1e-3 ' | decimal(30)",
        r#""0.001000000000000000000000000000""#,
    );
    check("source.id | decimal(2)", r#""17.00""#);
    check("source.nothing | decimal(2)", "null");
    check("source.missing | decimal(2)", "undefined");
    fails("source.name | decimal(2)", NOT_A_NUMBER);
    fails("source.empty | decimal(2)", NOT_A_NUMBER);
    fails("'1,5' | decimal(2)", NOT_A_NUMBER);
    fails(
        "'1e10001' | decimal(2)",
        "expected a number or a numeric string: its exponent is beyond 10000",
    );
    fails(
        "source.yes | decimal(2)",
        "expected a number or a numeric string, found a boolean",
    );
    fails(
        "source.list | decimal(2)",
        "expected a number or a numeric string, found a list",
    );
}

#[test]
fn number_makes_a_number() {
    check("source.amount | number", "149.505");
    check("source.price | number", "1.10");
    check("'+007.50' | number", "7.5");
    check("' 1e5 ' | number", "1e5");
    check("'.5' | number", "0.5");
    fails("'x' | number", NOT_A_NUMBER);
}

#[test]
fn integer_takes_whole_numbers_only() {
    check("'42' | integer", "42");
    check("42.0 | integer", "42");
    check("1e3 | integer", "1000");
    fails(
        "source.total | integer",
        "expected a whole number; `round` makes one",
    );
}

#[test]
fn boolean_reads_the_usual_words() {
    check("'Yes' | boolean", "true");
    check("'off' | boolean", "false");
    check("source.zero | boolean", "false");
    check("2 | boolean", "true");
    check("source.no | boolean", "false");
    fails(
        "'maybe' | boolean",
        "expected a boolean, a number, or a string such as true, false, yes, no, on, off, 1 or 0",
    );
}

#[test]
fn round_abs_and_sum_are_exact() {
    check("source.total | round", "150");
    check("2.345 | round(2)", "2.35");
    check("2.30 | round(2)", "2.3");
    check("-0.4 | round", "0");
    check("'-1.50' | abs", "1.5");
    check("source.lines[*].price | sum", "3.15");
    check("source.none | sum", "0");
    check("source.missing | sum", "undefined");
    fails(
        "source.mixed | sum",
        "item 3 of the list: expected a number or a numeric string, found a boolean",
    );
    fails(
        "source.id | sum",
        "expected a list of numbers, found a number",
    );
}

#[test]
fn date_formats_in_utc_or_a_zone() {
    check(
        "'2026-01-31T23:30:00Z' | date(YYYY-MM-DD)",
        r#""2026-01-31""#,
    );
    check(
        "'2026-01-31T23:30:00Z' | date(DD.MM.YYYY HH:mm, Europe/Berlin)",
        r#""01.02.2026 00:30""#,
    );
    check(
        "1769847300 | date('D MMM YYYY, h:mm A')",
        r#""31 Jan 2026, 8:15 AM""#,
    );
    check("1769847300123 | date(X)", r#""1769847300""#);
    check(
        "'2026-01-31 08:15' | date(YYYY-MM-DDTHH:mm:ss.SSS[Z])",
        r#""2026-01-31T08:15:00.000Z""#,
    );
    check("now() | date(dddd[, ]D)", r#""Saturday, 31""#);
    check("source.nothing | date(YYYY)", "null");
    fails(
        "source.name | date(YYYY)",
        "expected a date in ISO 8601, or seconds or milliseconds since 1970, from the year -9999 \
         to 9999",
    );
    fails(
        "source.yes | date(YYYY)",
        "expected a date in ISO 8601, or seconds or milliseconds since 1970, found a boolean",
    );
}
