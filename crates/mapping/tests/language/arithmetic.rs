//! Arithmetic against Python's `decimal`, and its errors.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write as _};
use std::process::{Command, Stdio};

use crate::{check, evaluate, fails};

const PAIRS: u64 = 10_000;

/// Reads a pair and its operator a line, and writes what each gives.
const PYTHON: &str = "
import decimal, sys
exact = decimal.Context(prec=100000, Emax=999999, Emin=-999999)
short = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN, Emax=999999, Emin=-999999)
for line in sys.stdin:
    left, sign, right = line.split()
    left, right = exact.create_decimal(left), exact.create_decimal(right)
    if sign in '/%' and right == 0:
        print('zero')
        continue
    result = {'+': exact.add, '-': exact.subtract, '*': exact.multiply, '/': short.divide,
              '%': exact.remainder}[sign](left, right)
    text = format(result, 'f')
    if '.' in text:
        text = text.rstrip('0').rstrip('.')
    if text.strip('-0') == '':
        text = '0'
    digits = len(text.lstrip('-').removeprefix('0').replace('.', ''))
    print('long' if digits > 1000 else text)
";

const WRITES: &str = "a text takes all that is written";

/// Numbers of all lengths, near each other and far apart.
fn number(random: &mut impl FnMut(u64) -> u64) -> String {
    let digits = |random: &mut dyn FnMut(u64) -> u64, count: u64| -> String {
        (0..count)
            .map(|_| char::from(b'0' + u8::try_from(random(10)).expect("a digit")))
            .collect()
    };
    let length = [1, 2, 3, 17, 34, 35, 60, 400][usize::try_from(random(8)).expect("an index")];
    let whole = digits(random, length);
    let whole = whole.trim_start_matches('0');
    let mut text = if random(3) == 0 { "-" } else { "" }.to_owned();
    text.push_str(if whole.is_empty() { "0" } else { whole });
    if random(2) == 0 {
        let length = [1, 2, 5, 34, 80][usize::try_from(random(5)).expect("an index")];
        write!(text, ".{}", digits(random, length)).expect(WRITES);
    }
    match random(8) {
        0 => write!(text, "e{}", random(900)).expect(WRITES),
        1 => write!(text, "e-{}", random(900)).expect(WRITES),
        2 => write!(text, "E+{}", random(40)).expect(WRITES),
        _ => {}
    }
    text
}

#[test]
fn agrees_with_the_decimals_of_python() {
    let seed = RandomState::new().hash_one(0) | 1;
    println!("seed {seed}");
    let mut state = seed;
    let mut random = move |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % bound
    };
    let pairs: Vec<_> = (0..PAIRS)
        .map(|index| {
            let sign = ["+", "-", "*", "/", "%"][usize::try_from(index % 5).unwrap()];
            format!("{} {sign} {}", number(&mut random), number(&mut random))
        })
        .collect();
    let Some(results) = of_python(&pairs) else {
        println!("there is no python3 to compare with");
        return;
    };
    for (pair, expected) in pairs.iter().zip(results) {
        match expected.as_str() {
            "zero" => assert_eq!(message(pair), "a division by zero", "{pair}"),
            "long" => assert_eq!(
                message(pair),
                "the result has more than 1,000 digits",
                "{pair}"
            ),
            expected => check(pair, expected),
        }
    }
}

/// Returns what Python gives; nothing on a machine without it.
fn of_python(pairs: &[String]) -> Option<Vec<String>> {
    let started = Command::new("python3")
        .args(["-c", PYTHON])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut python = match started {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        started => started.expect("python3 runs"),
    };
    let mut input = python.stdin.take().expect("it is piped");
    let text = pairs.join("\n");
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = python.wait_with_output().expect("python3 ends");
    let written = writer.join().expect("the writer does not panic");
    written.expect("python3 reads");
    let text = String::from_utf8(output.stdout).expect("the output is text");
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), pairs.len());
    Some(lines)
}

fn message(expression: &str) -> String {
    match evaluate(expression) {
        Ok(value) => panic!("{expression} gives {value}"),
        Err(error) => error.message,
    }
}

#[test]
fn operators_want_numbers_and_say_which_side_is_none() {
    fails(
        "'5' + 1",
        "the left side of `+` is a string, expected a number; `number` makes one of a text; texts \
         are joined with `concat`",
    );
    fails(
        "1 * source.name",
        "the right side of `*` is a string, expected a number; `number` makes one of a text",
    );
    fails(
        "1 + 2 - source.missing",
        "the right side of `-` is undefined, expected a number; `default` gives one where there \
         is none",
    );
    fails(
        "source.nothing / 2",
        "the left side of `/` is null, expected a number; `default` gives one where there is none",
    );
    fails(
        "source.list % 2",
        "the left side of `%` is a list, expected a number",
    );
    fails(
        "-source.yes",
        "the value after `-` is a boolean, expected a number",
    );
    fails("1 / source.zero", "a division by zero");
    fails("1 % -0.0", "a division by zero");
}

#[test]
fn an_error_names_operator_operand_and_expression() {
    let error = evaluate("source.id + source.id / source.zero | decimal(2)").unwrap_err();
    assert_eq!(error.transform, Some("/"));
    assert_eq!(error.value.as_deref(), Some("0"));
    assert_eq!(
        error.expression,
        "source.id + source.id / source.zero | decimal(2)"
    );
    let error = evaluate("1 + (source.name | trim)").unwrap_err();
    assert_eq!(error.transform, Some("+"));
    assert_eq!(error.value.as_deref(), Some("\"Grüße\""));
}

#[test]
fn results_and_operands_are_bound() {
    const LONG: &str = "the result has more than 1,000 digits";
    assert_eq!(evaluate("1e999 * 1").unwrap().len(), 1_000);
    fails("1e999 * 10", LONG);
    assert_eq!(evaluate("1e-1000 * 1").unwrap().len(), 1_002);
    fails("1e-1001 * 1", LONG);
    fails("1e999 / 0.1", LONG);
    check("1e900 % 7", "1");
    check("1e10000 - 1e10000", "0");
    check("1e10000 / 1e10000", "1");
    fails(
        "1e10001 % 7",
        "the left side of `%`: its exponent is beyond 10000",
    );
    fails(
        "1 - 1e-99999999999999999999",
        "the right side of `-`: its exponent is beyond 10000",
    );
    fails(
        &format!("{} * 0", "1".repeat(10_001)),
        "the left side of `*` has more than 10,000 digits",
    );
    fails("[1e999, 1e999] | sum(item * 5)", LONG);
    fails("[9e999, 9e999] | sum", LONG);
}
