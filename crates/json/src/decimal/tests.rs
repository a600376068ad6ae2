//! Decimals against integers, and what is written of them.

use proptest::prelude::*;

use super::*;

fn decimal(text: &str) -> Decimal {
    Decimal::parse_bounded(text).unwrap()
}

#[test]
fn reads_what_people_write() {
    for (text, plain) in [
        ("0", "0"),
        ("-0.0", "0"),
        ("+007.50", "7.5"),
        (" .5 ", "0.5"),
        ("5.", "5"),
        ("1E3", "1000"),
    ] {
        assert_eq!(decimal(text).plain(), plain, "{text}");
    }
    for text in [
        "", "-", ".", "1e", "1e+", "1.2.3", "0x10", "1 2", "Infinity", "NaN", "1,5", "--1", "é",
    ] {
        assert_eq!(Decimal::parse(text), None, "{text}");
    }
}

#[test]
fn rounds_halves_away_from_zero() {
    for (text, places, expected) in [
        ("149.5", 2, "149.50"),
        ("2.345", 2, "2.35"),
        ("-2.345", 2, "-2.35"),
        ("1.005", 2, "1.01"),
        ("0.5", 0, "1"),
        ("0.49", 0, "0"),
        ("-0.004", 2, "0.00"),
        ("999.999", 2, "1000.00"),
        ("0.05", 1, "0.1"),
        ("0.0005", 2, "0.00"),
        ("5e-1", 0, "1"),
        ("1e3", 1, "1000.0"),
        ("100", 0, "100"),
        (
            "12345678901234567890123.456",
            1,
            "12345678901234567890123.5",
        ),
    ] {
        assert_eq!(decimal(text).fixed(places), expected, "{text}");
    }
    assert_eq!(
        decimal("1e400").fixed(2),
        format!("1{}.00", "0".repeat(400))
    );
}

#[test]
fn caps_exponents_in_arithmetic_only() {
    assert_eq!(decimal("1e10000").plain().len(), 10_001);
    assert!(Decimal::parse_bounded("1e10001").is_err());
    assert!(Decimal::parse_bounded("1e-99999999999999999999").is_err());
    assert!(Decimal::parse("1e10001") > Decimal::parse("9e9999"));
    assert!(Decimal::parse("-1e99999999999999999999") < Decimal::parse("-1"));
}

#[test]
fn counts_up_to_the_largest_integer() {
    let count = |text| Decimal::parse(text).unwrap().to_count();
    assert_eq!(count("0"), Some(0));
    assert_eq!(count("2.0"), Some(2));
    assert_eq!(count("1e3"), Some(1000));
    assert_eq!(count("1e30"), Some(u64::MAX));
    assert_eq!(count("-1"), None);
    assert_eq!(count("1.5"), None);
}

#[test]
fn equal_numbers_have_one_canonical_text() {
    let canonical = |text| {
        let mut out = Vec::new();
        Decimal::parse(text).unwrap().write_canonical(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(canonical("-150.0"), canonical("-1.5e2"));
    assert_eq!(canonical("-0.0"), canonical("0"));
    assert_ne!(canonical("9007199254740993"), canonical("9007199254740992"));
}

#[test]
fn adds_exactly() {
    let sum = |texts: &[&str]| {
        Decimal::sum(&texts.iter().map(|text| decimal(text)).collect::<Vec<_>>()).plain()
    };
    assert_eq!(sum(&[]), "0");
    assert_eq!(sum(&["0.1", "0.2"]), "0.3");
    assert_eq!(sum(&["1", "-1.5"]), "-0.5");
    assert_eq!(sum(&["99", "1", "-100"]), "0");
    assert_eq!(sum(&["-60", "-60"]), "-120");
    assert_eq!(sum(&["-58", "-969.9"]), "-1027.9");
    assert_eq!(sum(&["9007199254740993", "1"]), "9007199254740994");
    assert_eq!(sum(&["1e20", "-1"]), "99999999999999999999");
    assert_eq!(sum(&["1e-10000", "0", "-1e-10000"]), "0");
    assert_eq!(sum(&["9e33", "0.1"]), format!("9{}.1", "0".repeat(33)));
    let nines = "9".repeat(34);
    let sum_of_nines = sum(&vec![nines.as_str(); 1_024]);
    assert_eq!(sum_of_nines, format!("1023{}8976", "9".repeat(30)));
}

proptest! {
    #[test]
    fn agrees_with_integers(a in -1_000_000_i128.., b in any::<i64>(), places in 0_u32..6) {
        let (x, y) = (decimal(&a.to_string()), decimal(&b.to_string()));
        prop_assert_eq!(x.cmp(&y), a.cmp(&i128::from(b)));
        if let Some(sum) = a.checked_add(i128::from(b)) {
            prop_assert_eq!(Decimal::sum(&[x.clone(), y]).plain(), sum.to_string());
        }
        let (fixed, whole) = (x.fixed(places), a.to_string());
        prop_assert_eq!(fixed.split('.').next(), Some(whole.as_str()));
    }

    #[test]
    fn multiplies_as_integers(a in any::<i64>(), b in any::<i64>(), c in any::<i64>()) {
        let product = decimal(&a.to_string()).product(&decimal(&b.to_string()));
        prop_assert_eq!(product.plain(), (i128::from(a) * i128::from(b)).to_string());
        let c = decimal(&c.to_string());
        let sum = Decimal::sum(&[product.clone(), c.clone()]);
        let difference = Decimal::sum(&[sum, c.negated()]);
        prop_assert_eq!(difference, product);
    }

    #[test]
    fn rounds_as_integer_division_does(units in any::<i32>(), places in 0_u32..4) {
        let text = format!("{units}e-4");
        let scale = 10_i64.pow(4 - places);
        let half = if units < 0 { -scale / 2 } else { scale / 2 };
        let expected = (i64::from(units) + half) / scale;
        prop_assert_eq!(
            decimal(&text).round(places),
            decimal(&format!("{expected}e-{places}"))
        );
    }
}

#[test]
fn multiplies_exactly() {
    let product = |left, right| decimal(left).product(&decimal(right)).plain();
    assert_eq!(product("1.10", "-3"), "-3.3");
    assert_eq!(product("-1", "0"), "0");
    assert_eq!(product("2e5", "5e-6"), "1");
    let nines = "9".repeat(20);
    let square = format!("{}8{}1", "9".repeat(19), "0".repeat(19));
    assert_eq!(product(&nines, &nines), square);
    assert_eq!(
        product("9007199254740993", "9007199254740993"),
        "81129638414606699710187514626049"
    );
}

#[test]
fn divides_to_34_digits_and_rounds_halves_to_the_even_digit() {
    let quotient = |left, right| {
        let quotient = decimal(left).quotient(&decimal(right));
        quotient.map(|quotient| quotient.plain())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(quotient("1", "3"), some(&format!("0.{}", "3".repeat(34))));
    assert_eq!(quotient("2", "3"), some(&format!("0.{}7", "6".repeat(33))));
    assert_eq!(quotient("-6", "2"), some("-3"));
    assert_eq!(quotient("1", "8"), some("0.125"));
    assert_eq!(quotient("0", "7"), some("0"));
    assert_eq!(quotient("7", "0"), None);
    let nines = "9".repeat(35);
    assert_eq!(quotient(&nines, "1"), some(&format!("1{}", "0".repeat(35))));
    let (even, odd) = (
        format!("{}25", "1".repeat(33)),
        format!("{}35", "1".repeat(33)),
    );
    assert_eq!(quotient(&even, "1"), some(&format!("{}20", "1".repeat(33))));
    assert_eq!(quotient(&odd, "1"), some(&format!("{}40", "1".repeat(33))));
    let above = format!("{}250001", "1".repeat(33));
    assert_eq!(
        quotient(&above, "1"),
        some(&format!("{}300000", "1".repeat(33)))
    );
    let one = format!("1{}1", "0".repeat(39));
    assert_eq!(quotient(&one, "1"), some(&format!("1{}", "0".repeat(40))));
}

#[test]
fn the_remainder_has_the_sign_of_the_dividend_and_is_exact() {
    let remainder = |left, right| {
        let remainder = decimal(left).remainder(&decimal(right));
        remainder.map(|remainder| remainder.plain())
    };
    for (left, right, expected) in [
        ("-5.5", "2", "-1.5"),
        ("5", "-2", "1"),
        ("1e900", "7", "1"),
        ("1e10000", "7", "4"),
        ("7", "1e10000", "7"),
        ("-4", "2", "0"),
        ("0", "3", "0"),
        ("1e-10000", "1", &format!("0.{}1", "0".repeat(9_999))),
    ] {
        assert_eq!(
            remainder(left, right).as_deref(),
            Some(expected),
            "{left} % {right}"
        );
    }
    assert_eq!(remainder("1", "0"), None);
}

#[test]
fn counts_the_digits_that_would_be_written() {
    for (text, count) in [
        ("0", 0),
        ("0.5", 1),
        ("1.25", 3),
        ("1e999", 1000),
        ("1e-1000", 1000),
        ("1e-1001", 1001),
        ("12.5e1", 3),
    ] {
        assert_eq!(decimal(text).written_digits(), count, "{text}");
    }
}
