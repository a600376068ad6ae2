//! Digits that come back, and digits that do not.

use proptest::prelude::*;

use super::*;

fn check(input: &str, output: &str, expected: &str) {
    assert_eq!(
        Digits::of(input).restore(output.to_owned()).as_deref(),
        Ok(expected),
        "{input}"
    );
}

#[test]
fn what_is_handed_on_keeps_its_digits() {
    check(
        r#"{"id":9007199254740993}"#,
        r#"{"id":9007199254740992}"#,
        r#"{"id":9007199254740993}"#,
    );
    check("[1.10,-2.50,7]", "[-2.5,1.1,7]", "[-2.50,1.10,7]");
    check(
        "[1e400,-1e400]",
        r#"["\u0000Infinity","\u0000-Infinity"]"#,
        "[1e400,-1e400]",
    );
    check(
        "[0.12345678901234567891]",
        r#"{"else":0.12345678901234568}"#,
        r#"{"else":0.12345678901234567891}"#,
    );
    check("[1E-7, 1e21]", "[1e-7,1e+21]", "[1E-7,1e21]");
}

#[test]
fn computed_numbers_stay_as_javascript_writes_them() {
    check(
        r#"{"lat":19.989999999999998436805981327779591083526611328125,
            "price":0.1000000000000000055511151231257827,"items":[1.00000000000000001]}"#,
        r#"{"lat":19.99,"count":1,"price":0.1}"#,
        r#"{"lat":19.99,"count":1,"price":0.1}"#,
    );
    check(
        r#"{"qty":2,"rows":[0.99999999999999999,2]}"#,
        r#"{"half":1}"#,
        r#"{"half":1}"#,
    );
    check(
        r#"{"qty":5,"rows":[2.50]}"#,
        r#"{"half":2.5}"#,
        r#"{"half":2.5}"#,
    );
    // No number is refused for what could not be told from it either.
    check("[0.1,0.10000000000000001]", "[0.1]", "[0.1]");
}

#[test]
fn a_spelling_belongs_to_a_name() {
    let input = r#"{"total":2.50,"lines":[{"price" : 1.10,"x":[3.30,{"y":0}]},{"price":1.1}]}"#;
    check(
        input,
        r#"{"total":2.5,"half":2.5,"lines":[{"x":[3.3,{},3.3]},{"price":1.1}]}"#,
        r#"{"total":2.50,"half":2.5,"lines":[{"x":[3.30,{},3.30]},{"price":1.1}]}"#,
    );
    check("1.10", "1.1", "1.10");
    check("1.10", r#"{"a":1.1}"#, r#"{"a":1.1}"#);
}

#[test]
fn whole_numbers_stay_as_javascript_writes_them() {
    check(
        "[100.00, 1e3, -0, 0.00]",
        "[100,1000,0,0,100]",
        "[100,1000,0,0,100]",
    );
}

#[test]
fn texts_are_no_numbers() {
    check(
        r#"{"a":1.10,"1.1":"1.1"}"#,
        r#"{"1.1":"1.1","b":"x \"1.1\" y","a":1.1}"#,
        r#"{"1.1":"1.1","b":"x \"1.1\" y","a":1.10}"#,
    );
}

#[test]
fn equal_numbers_are_written_alike() {
    check("[1.10,1.1]", "[1.1,1.1]", "[1.1,1.1]");
    check("[1.10,1.100,1.1]", "[1.1]", "[1.1]");
    check(
        "[9007199254740993,9007199254740993.0]",
        "[9007199254740992]",
        "[9007199254740993]",
    );
}

#[test]
fn numbers_that_become_one_are_an_error_and_no_guess() {
    for input in [
        "[1186254901612281857,1186254901612281858]",
        "[9007199254740992,9007199254740993]",
        "[9007199254740993,9007199254740992]",
        "[9007199254740993,9007199254740992.0]",
        "[1e400,1e401]",
    ] {
        let output = Digits::of(input).originals.keys().next().cloned().unwrap();
        let error = Digits::of(input)
            .restore(format!("[{output}]"))
            .unwrap_err();
        assert!(error.contains("cannot tell"), "{error}");
        assert_eq!(
            Digits::of(input).restore("[5]".to_owned()).as_deref(),
            Ok("[5]")
        );
    }
}

#[test]
fn doubles_are_written_as_javascript_writes_them() {
    for (value, text) in [
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123.456, "123.456"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1.5e-9, "1.5e-9"),
        (-1.25e30, "-1.25e+30"),
        (5e-324, "5e-324"),
        (0.1, "0.1"),
        (-0.0, "0"),
    ] {
        assert_eq!(written(value), text);
    }
}

proptest! {
    #[test]
    fn a_written_double_reads_back(
        value in any::<f64>().prop_filter("JSON has none", |value| value.is_finite()),
    ) {
        let text = written(value);
        prop_assert_eq!(text.parse::<f64>().unwrap(), value);
        prop_assert_eq!(written_otherwise(&text), None);
    }

    #[test]
    fn no_text_breaks_it(input in ".{0,40}", output in ".{0,40}") {
        let _ = Digits::of(&input).restore(output);
    }

    #[test]
    fn a_number_alone_comes_back(
        whole in "-?[1-9][0-9]{0,30}",
        fraction in "(\\.[0-9]{1,20}[1-9])?",
    ) {
        let number = format!("{whole}{fraction}");
        let value: f64 = number.parse().unwrap();
        let javascript = written(value);
        let is_short = value.abs() <= EXACT && significant(&javascript) <= SHORT;
        let expected = if is_short && !equal(&number, &javascript) {
            &javascript
        } else {
            &number
        };
        prop_assert_eq!(&Digits::of(&number).restore(javascript.clone()).unwrap(), expected);
    }
}
