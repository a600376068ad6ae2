//! Comma-separated values, as RFC 4180 has them.

use std::collections::{HashMap, HashSet};

use csv::{ReaderBuilder, StringRecord, Terminator, WriterBuilder};

use super::{BoundedList, MAX_BYTES, TransformResult, list, refused, too_large};
use crate::value::Value;
use crate::{Effort, EvaluationError, json};

/// Greatest number of records, without the header.
const MAX_RECORDS: usize = 100_000;

/// How a text of CSV is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Dialect {
    pub separator: u8,
    pub has_header: bool,
}

impl Dialect {
    /// Returns the separator that a text is: one ASCII character that has no other meaning.
    pub fn separator(text: &str) -> Option<u8> {
        match text.as_bytes() {
            [b'"' | b'\r' | b'\n'] => None,
            [separator] if separator.is_ascii() => Some(*separator),
            _ => None,
        }
    }
}

/// Reads records: objects of texts by the names of the header, or lists of texts.
pub(super) fn parse<'s>(
    value: &Value<'s>,
    dialect: Dialect,
    effort: &Effort,
) -> TransformResult<'s> {
    let Value::String(text) = value else {
        return Err(refused(value, "a string"));
    };
    let text = text.decode();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    check_quotes(text, dialect.separator)?;
    let mut reader = ReaderBuilder::new()
        .delimiter(dialect.separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes());
    let mut header: Option<Vec<Vec<u8>>> = None;
    let mut result = BoundedList::new(effort);
    let mut count = 0;
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(unreadable)? {
        if dialect.has_header && header.is_none() {
            header = Some(names(&record)?);
            continue;
        }
        count += 1;
        if count > MAX_RECORDS {
            return Err(EvaluationError::mapping("more than 100,000 records"));
        }
        if let Some(header) = &header
            && header.len() != record.len()
        {
            let line = record
                .position()
                .map_or(0, |start| line(text, start.byte()));
            return Err(EvaluationError::mapping(format!(
                "line {line} has {} fields, the header has {}",
                record.len(),
                header.len()
            )));
        }
        result.push_json(&written(&record, header.as_deref())?)?;
    }
    Ok(result.into_value())
}

fn unreadable(error: csv::Error) -> EvaluationError {
    EvaluationError::mapping(format!("the text is not CSV: {error}"))
}

/// Returns the names of a header as JSON.
fn names(header: &StringRecord) -> Result<Vec<Vec<u8>>, EvaluationError> {
    let mut known = HashSet::new();
    let mut names = Vec::new();
    for name in header {
        if name.is_empty() {
            return Err(EvaluationError::mapping("the header has an empty name"));
        }
        if !known.insert(name) {
            let shown: String = name.chars().take(40).collect();
            return Err(EvaluationError::mapping(format!(
                "the header has the name {shown:?} twice"
            )));
        }
        let mut written = Vec::new();
        json::write_string(name, &mut written);
        names.push(written);
    }
    Ok(names)
}

/// Writes a record as an object with the names of a header, else as a list.
fn written(record: &StringRecord, header: Option<&[Vec<u8>]>) -> Result<String, EvaluationError> {
    let (open, close) = if header.is_some() {
        (b'{', b'}')
    } else {
        (b'[', b']')
    };
    let mut out = vec![open];
    for (index, field) in record.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if let Some(name) = header.and_then(|header| header.get(index)) {
            out.extend_from_slice(name);
            out.push(b':');
        }
        json::write_string(field, &mut out);
    }
    out.push(close);
    String::from_utf8(out).map_err(|_| EvaluationError::mapping("the text is not CSV"))
}

/// Returns the line, from 1, of a record that the reader began at a byte, which may be among the
/// line ends before it.
fn line(text: &str, byte: u64) -> usize {
    let bytes = text.as_bytes();
    let start = usize::try_from(byte).unwrap_or(usize::MAX).min(bytes.len());
    let rest = bytes[start..].iter();
    let start = start
        + rest
            .take_while(|byte| matches!(byte, b'\r' | b'\n'))
            .count();
    let ends = (0..start).filter(|index| ends_line(bytes, *index));
    ends.count() + 1
}

/// Returns whether a line ends with the byte at `index`: LF, CR, or CRLF.
fn ends_line(bytes: &[u8], index: usize) -> bool {
    match bytes[index] {
        b'\n' => true,
        b'\r' => bytes.get(index + 1) != Some(&b'\n'),
        _ => false,
    }
}

/// Fails for quotes that the reader would pass over: one that does not end, text after one that has
/// ended, and one within a field without quotes.
fn check_quotes(text: &str, separator: u8) -> Result<(), EvaluationError> {
    #[derive(PartialEq)]
    enum State {
        Start,
        Plain,
        Quoted,
        Ended,
    }
    let fault =
        |line: usize, what: &str| Err(EvaluationError::mapping(format!("line {line} has {what}")));
    let mut state = State::Start;
    let mut line = 1;
    let mut opened = 1;
    let bytes = text.as_bytes();
    for (index, byte) in bytes.iter().enumerate() {
        state = match (state, *byte) {
            (State::Quoted, b'"') => State::Ended,
            (State::Quoted, _) => State::Quoted,
            (State::Ended, b'"') => State::Quoted,
            (_, b'\r' | b'\n') => State::Start,
            (_, byte) if byte == separator => State::Start,
            (State::Ended, _) => return fault(line, "text after a closing quote"),
            (State::Start, b'"') => {
                opened = line;
                State::Quoted
            }
            (State::Plain, b'"') => return fault(line, "a quote in a field without quotes"),
            (State::Start | State::Plain, _) => State::Plain,
        };
        line += usize::from(ends_line(bytes, index));
    }
    if state == State::Quoted {
        return fault(opened, "a quote that does not end");
    }
    Ok(())
}

/// Writes objects as records under a header of all their keys.
pub(super) fn write<'s>(value: &Value<'s>, separator: u8, effort: &Effort) -> TransformResult<'s> {
    let list = list::of(value)?;
    let header = header(list, effort)?;
    let mut writer = WriterBuilder::new()
        .delimiter(separator)
        .terminator(Terminator::CRLF)
        .from_writer(Vec::new());
    let unwritable = |error: csv::Error| EvaluationError::mapping(error.to_string());
    if !header.is_empty() {
        writer.write_record(&header).map_err(unwritable)?;
        for item in effort.items(list) {
            let members = effort.members(item).into_iter();
            let members: HashMap<_, _> = members
                .map(|(key, value)| (json::decode(key), value))
                .collect();
            effort.spend(header.len() as u64);
            for name in &header {
                let found = members.get(name.as_str());
                let field = found.map_or(Value::Undefined, |value| Value::from_json(value));
                writer
                    .write_field(field.rendered().as_bytes())
                    .map_err(unwritable)?;
            }
            writer.write_record(None::<&[u8]>).map_err(unwritable)?;
            if writer.get_ref().len() > MAX_BYTES {
                return Err(too_large());
            }
        }
        effort.check()?;
    }
    let bytes = writer
        .into_inner()
        .map_err(|error| EvaluationError::mapping(error.to_string()))?;
    Ok(Value::plain(String::from_utf8(bytes).unwrap_or_default()))
}

/// Returns the keys of all objects in order of first appearance. Fails for what is no record.
fn header(list: &str, effort: &Effort) -> Result<Vec<String>, EvaluationError> {
    let mut known = HashSet::new();
    let mut header = Vec::new();
    for item in effort.items(list) {
        let element = Value::from_json(item);
        if !matches!(element, Value::Object(_)) {
            let mut error = refused(&element, "objects in the list");
            error
                .message
                .push_str("; `json` makes a text of other values");
            return Err(error);
        }
        for (key, member) in effort.members(item) {
            let member = Value::from_json(member);
            if matches!(member, Value::List(_) | Value::Object(_)) {
                let message = format!(
                    "the field {key} is {}; `json` makes a text of it",
                    member.type_name()
                );
                return Err(EvaluationError::mapping(message));
            }
            let name = json::decode(key);
            if !known.contains(&*name) {
                known.insert(name.clone().into_owned());
                header.push(name.into_owned());
            }
        }
    }
    effort.check()?;
    Ok(header)
}
