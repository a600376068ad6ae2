//! Equality and order of values: numbers by value, strings by their characters, types never equal
//! to each other.

use std::cmp::Ordering;

use super::Value;
use crate::{Effort, json};
use kanat_json::Decimal;

/// Returns whether two values are equal. Null equals undefined; objects are equal in any order of
/// their keys. The result, like the others of this module, means nothing when no effort is left.
pub(crate) fn equal(left: &Value, right: &Value, effort: &Effort) -> bool {
    match (left, right) {
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => {
            left == right || {
                effort.read(left.len() + right.len());
                Decimal::parse(left) == Decimal::parse(right)
            }
        }
        (Value::String(one), Value::String(other)) => {
            effort.read(left.size() + right.size());
            one.decode() == other.decode()
        }
        (Value::List(_), Value::List(_)) | (Value::Object(_), Value::Object(_)) => {
            canonical(left, effort) == canonical(right, effort)
        }
        _ => left.is_missing() && right.is_missing(),
    }
}

/// Returns the order of two numbers or two strings; there is none between other values.
pub(crate) fn order(left: &Value, right: &Value, effort: &Effort) -> Option<Ordering> {
    effort.read(left.size() + right.size());
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            Some(Decimal::parse(left)?.cmp(&Decimal::parse(right)?))
        }
        (Value::String(left), Value::String(right)) => Some(left.decode().cmp(&right.decode())),
        _ => None,
    }
}

/// Returns a text that equal values have in common, and no others.
pub(crate) fn canonical(value: &Value, effort: &Effort) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.size() + 2);
    write_canonical(value, json::MAX_DEPTH, &mut out, effort);
    out
}

/// Appends the canonical text. Values deeper than `depth` levels, which no checked document has,
/// stay as they are.
fn write_canonical(value: &Value, depth: usize, out: &mut Vec<u8>, effort: &Effort) {
    match value {
        Value::Number(digits) => {
            effort.read(digits.len());
            match Decimal::parse(digits) {
                Some(number) => number.write_canonical(out),
                None => out.extend_from_slice(digits.as_bytes()),
            }
        }
        Value::String(text) => {
            effort.read(value.size());
            json::write_string(&text.decode(), out);
        }
        Value::List(list) if depth > 0 => {
            out.push(b'[');
            for item in effort.items(list) {
                write_canonical(&Value::from_json(item), depth - 1, out, effort);
                out.push(b',');
            }
            out.push(b']');
        }
        Value::Object(object) if depth > 0 => {
            let mut members = effort.members(object);
            members.sort_by_cached_key(|(key, _)| json::decode(key));
            out.push(b'{');
            for (key, member) in members {
                json::write_string(&json::decode(key), out);
                out.push(b':');
                write_canonical(&Value::from_json(member), depth - 1, out, effort);
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Undefined | Value::Null | Value::Bool(_) | Value::List(_) | Value::Object(_) => {
            value.write_json(out)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(left: &str, right: &str, expected: bool) {
        assert_eq!(
            equal(
                &Value::from_json(left),
                &Value::from_json(right),
                &Effort::default()
            ),
            expected,
            "{left} == {right}"
        );
    }

    #[test]
    fn compares_by_value() {
        check("1", "1.0", true);
        check("100", "1e2", true);
        check("-0", "0", true);
        check("9007199254740993", "9007199254740992", false);
        check(r#""\u0061""#, r#""a""#, true);
        check(r#""1""#, "1", false);
        check("null", "", true);
        check("null", "false", false);
        check("[1, [2]]", "[1.0,[2]]", true);
        check("[1]", "[1,2]", false);
        check(r#"{"a":1,"b":2}"#, r#"{"b":2.0,"a":1}"#, true);
        check(r#"{"a":1}"#, r#"{"a":2}"#, false);
        check("[]", "{}", false);
    }

    #[test]
    fn orders_numbers_and_strings_only() {
        let effort = Effort::default();
        let order = |left, right| order(&Value::from_json(left), &Value::from_json(right), &effort);
        assert_eq!(order("2", "10"), Some(Ordering::Less));
        assert_eq!(order(r#""2""#, r#""10""#), Some(Ordering::Greater));
        assert_eq!(order("1", r#""1""#), None);
        assert_eq!(order("true", "false"), None);
    }
}
