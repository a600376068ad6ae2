//! Transforms of text. Numbers and booleans are taken as their text.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::{BoundedText, TransformResult, refused};
use crate::EvaluationError;
use crate::environment::Environment;
use crate::node::Node;
use crate::value::Value;

/// Returns the text of a value that has one.
pub(super) fn of<'v>(value: &'v Value) -> Result<Cow<'v, str>, EvaluationError> {
    value
        .text()
        .ok_or_else(|| refused(value, "a string, a number or a boolean"))
}

pub(super) fn replace<'s>(value: &Value<'s>, from: &str, to: &str) -> TransformResult<'s> {
    let text = of(value)?;
    let mut replaced = BoundedText::default();
    let mut end = 0;
    for (index, found) in text.match_indices(from) {
        replaced.push(&text[end..index])?;
        replaced.push(to)?;
        end = index + found.len();
    }
    replaced.push(&text[end..])?;
    Ok(Value::plain(replaced.into_text()))
}

/// Takes a part of a text by its characters. A negative start counts from the end.
pub(super) fn substring<'s>(
    value: &Value<'s>,
    start: i64,
    length: Option<usize>,
) -> TransformResult<'s> {
    let text = of(value)?;
    let skipped = match usize::try_from(start) {
        Ok(start) => start,
        Err(_) => {
            let from_end = usize::try_from(start.unsigned_abs()).unwrap_or(usize::MAX);
            text.chars().count().saturating_sub(from_end)
        }
    };
    Ok(Value::plain(
        text.chars()
            .skip(skipped)
            .take(length.unwrap_or(usize::MAX))
            .collect::<String>(),
    ))
}

/// Appends operands to a text. Missing values add nothing.
pub(super) fn concat<'s>(
    value: &Value<'s>,
    operands: &'s [Node],
    environment: &Environment<'s>,
) -> TransformResult<'s> {
    let mut text = BoundedText::default();
    text.push(&of(value)?)?;
    let mut held = environment.effort.hold(value)?;
    held.add(text.len())?;
    for operand in operands {
        let operand = environment.argument(Some(operand))?;
        if !operand.is_missing() {
            environment.effort.read(operand.size());
            environment.effort.check()?;
            let before = text.len();
            text.push(&of(&operand)?)?;
            held.add(text.len() - before)?;
        }
    }
    Ok(Value::plain(text.into_text()))
}

/// Masks all but the last `keep` characters. A text that has no more than those is masked whole.
pub(super) fn mask<'s>(value: &Value<'s>, keep: usize) -> TransformResult<'s> {
    let text = of(value)?;
    let count = text.chars().count();
    let masked = if count > keep { count - keep } else { count };
    let mut out = "*".repeat(masked);
    out.extend(text.chars().skip(masked));
    Ok(Value::plain(out))
}

/// Makes the first letter of every word upper-case and the rest lower-case.
pub(super) fn title<'s>(value: &Value<'s>) -> TransformResult<'s> {
    let text = of(value)?;
    let mut title = String::with_capacity(text.len());
    for word in text.split_inclusive(|letter: char| letter.is_whitespace() || letter == '-') {
        let first = word.find(char::is_alphabetic).unwrap_or(word.len());
        title.push_str(&word[..first]);
        let mut letters = word[first..].chars();
        title.extend(letters.next().into_iter().flat_map(char::to_uppercase));
        title.push_str(&letters.as_str().to_lowercase());
    }
    Ok(Value::plain(title))
}

/// Makes a name for addresses: lower-case letters without accents and digits, with one `-` for each
/// run of others.
pub(super) fn slug<'s>(value: &Value<'s>) -> TransformResult<'s> {
    let text = of(value)?;
    let plain: String = text
        .nfkd()
        .filter(|letter| !is_combining_mark(*letter))
        .collect();
    let mut slug = BoundedText::default();
    let mut gap = false;
    for letter in plain.to_lowercase().chars() {
        if !letter.is_alphanumeric() {
            gap = slug.len() > 0;
            continue;
        }
        if std::mem::take(&mut gap) {
            slug.push("-")?;
        }
        match letter {
            'ß' => slug.push("ss")?,
            'ø' => slug.push("o")?,
            'æ' => slug.push("ae")?,
            'ł' => slug.push("l")?,
            'đ' => slug.push("d")?,
            other => slug.push(other.encode_utf8(&mut [0; 4]))?,
        }
    }
    Ok(Value::plain(slug.into_text()))
}

/// Puts a character before a text until it has `count` characters.
pub(super) fn pad_left<'s>(value: &Value<'s>, count: usize, with: char) -> TransformResult<'s> {
    let text = of(value)?;
    let missing = count.saturating_sub(text.chars().count());
    let mut padded: String = std::iter::repeat_n(with, missing).collect();
    padded.push_str(&text);
    Ok(Value::plain(padded))
}
