//! Reads XML with quick-xml, which takes tags apart. What it lets pass and XML does not is refused
//! here: a second root, text outside of it, names, characters, references, any DTD.

use std::borrow::Cow;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::element::Element;
use super::{is_allowed, is_name};
use crate::effort::Held;
use crate::transform::{MAX_BYTES, TransformResult, refused, too_large};
use crate::value::Value;
use crate::{Effort, EvaluationError};

/// Greatest depth to which elements nest.
const MAX_DEPTH: usize = 100;
/// Greatest number of attributes of an element.
const MAX_ATTRIBUTES: usize = 1_000;

/// Reads a document as an object with one member, which has the name of the root.
pub(in crate::transform) fn parse<'s>(value: &Value<'s>, effort: &Effort) -> TransformResult<'s> {
    let Value::String(text) = value else {
        return Err(refused(value, "a string"));
    };
    let text = text.decode();
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = with_plain_line_ends(text);
    let mut document = Document {
        open: Vec::new(),
        root: None,
        held: effort.hold_nothing(),
        effort,
    };
    document.held.add(text.len())?;
    let root = document.read(&text)?;
    let mut out = b"{".to_vec();
    crate::json::write_string(&root.name, &mut out);
    out.push(b':');
    root.write(&mut out);
    out.push(b'}');
    if out.len() > MAX_BYTES {
        return Err(too_large());
    }
    Ok(String::from_utf8(out).map_or(Value::Undefined, Value::from_owned_json))
}

/// Returns the text with line feeds alone at the ends of lines, as XML is read.
fn with_plain_line_ends(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Elements of a document that is read.
struct Document<'e> {
    open: Vec<Element>,
    root: Option<Element>,
    held: Held<'e>,
    effort: &'e Effort,
}

/// What is wrong with a document.
enum Fault {
    /// The document, at this place.
    Document(String),
    /// A bound of the evaluation.
    Evaluation(EvaluationError),
}

impl From<EvaluationError> for Fault {
    fn from(error: EvaluationError) -> Self {
        Self::Evaluation(error)
    }
}

fn fault<T>(message: impl Into<String>) -> Result<T, Fault> {
    Err(Fault::Document(message.into()))
}

impl Document<'_> {
    fn read(mut self, text: &str) -> Result<Element, EvaluationError> {
        let mut reader = Reader::from_str(text);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.check_comments = true;
        loop {
            let start = position(reader.buffer_position());
            let event = reader.read_event().map_err(|error| {
                let at = position(reader.error_position());
                at_place(text, at, &error.to_string())
            })?;
            if event == Event::Eof {
                break;
            }
            self.take(event, start).map_err(|fault| match fault {
                Fault::Document(message) => at_place(text, start, &message),
                Fault::Evaluation(error) => error,
            })?;
        }
        match (self.open.last(), self.root) {
            (Some(element), _) => {
                let message = format!("the element `{}` does not end", shown(&element.name));
                Err(at_place(text, text.len(), &message))
            }
            (None, Some(root)) => Ok(root),
            (None, None) => Err(at_place(text, text.len(), "there is no element")),
        }
    }

    fn take(&mut self, event: Event, start: usize) -> Result<(), Fault> {
        if !self.effort.walk() {
            return Err(Fault::Evaluation(self.effort.error()));
        }
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(_) => self.end(),
            // Empty elements are expanded.
            Event::Empty(_) | Event::Eof => Ok(()),
            Event::Text(text) => {
                if text.contains("]]>") {
                    return fault("found `]]>` in a text");
                }
                self.text(&text)
            }
            Event::CData(text) => {
                if self.open.is_empty() {
                    return fault("found text outside of the root element");
                }
                self.text(&text)
            }
            Event::GeneralRef(reference) => {
                if self.open.is_empty() {
                    return fault("found text outside of the root element");
                }
                let letter = referred(&reference)?;
                self.text(letter.encode_utf8(&mut [0; 4]))
            }
            Event::DocType(_) => fault("found a DTD (`<!DOCTYPE`), which is not read"),
            Event::Decl(_) if start > 0 => {
                fault("found a declaration (`<?xml`) that is not at the start")
            }
            Event::Comment(text) => check_characters(&text),
            Event::PI(instruction) => check_characters(&instruction),
            Event::Decl(_) => Ok(()),
        }
    }

    fn start(&mut self, tag: &BytesStart) -> Result<(), Fault> {
        if self.open.is_empty() && self.root.is_some() {
            return fault("found a second root element");
        }
        if self.open.len() == MAX_DEPTH {
            return fault(format!("elements nest deeper than {MAX_DEPTH} levels"));
        }
        let mut element = Element::new(named(tag.name().0)?);
        let mut count = 0;
        for attribute in tag.attributes() {
            let attribute = match attribute {
                Ok(attribute) => attribute,
                Err(error) => return fault(error.to_string()),
            };
            count += 1;
            if count > MAX_ATTRIBUTES {
                return fault(format!(
                    "an element has more than {MAX_ATTRIBUTES} attributes"
                ));
            }
            let value = attribute_value(&attribute.value)?;
            let name = named(attribute.key.0)?;
            self.held.add(name.len() + value.len())?;
            element.attribute(name, &value);
        }
        self.open.push(element);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Fault> {
        let Some(element) = self.open.pop() else {
            return fault("found the end of an element that did not begin");
        };
        match self.open.last_mut() {
            Some(outer) => outer.push(&element, &mut self.held, self.effort)?,
            None => self.root = Some(element),
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), Fault> {
        check_characters(text)?;
        match self.open.last_mut() {
            Some(element) => Ok(element.push_text(text, &mut self.held)?),
            None if text.trim().is_empty() => Ok(()),
            None => fault("found text outside of the root element"),
        }
    }
}

fn named(name: &str) -> Result<&str, Fault> {
    if is_name(name) {
        Ok(name)
    } else {
        fault(format!("found `{}`, expected a name", shown(name)))
    }
}

fn check_characters(text: &str) -> Result<(), Fault> {
    match text.chars().find(|letter| !is_allowed(*letter)) {
        Some(letter) => fault(format!(
            "found the character U+{:04X}, which XML does not allow",
            u32::from(letter)
        )),
        None => Ok(()),
    }
}

/// Returns the value of an attribute: references replaced, line ends and tabs as blanks.
fn attribute_value(raw: &str) -> Result<String, Fault> {
    check_characters(raw)?;
    let mut value = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(index) = rest.find(['&', '<', '\t', '\n']) {
        value.push_str(&rest[..index]);
        let after = &rest[index + 1..];
        rest = match rest.as_bytes()[index] {
            b'&' => match after.split_once(';') {
                Some((name, after)) => {
                    value.push(referred(name)?);
                    after
                }
                None => return fault("found `&` without a reference"),
            },
            b'<' => return fault("found `<` in the value of an attribute"),
            _ => {
                value.push(' ');
                after
            }
        };
    }
    value.push_str(rest);
    Ok(value)
}

/// Returns the character that a reference stands for.
fn referred(name: &str) -> Result<char, Fault> {
    let number = |digits: &str, radix: u32| {
        let is_number = digits.chars().all(|digit| digit.is_digit(radix));
        let code = u32::from_str_radix(digits, radix)
            .ok()
            .filter(|_| is_number);
        code.and_then(char::from_u32)
            .filter(|letter| is_allowed(*letter))
    };
    let letter = match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match (name.strip_prefix("#x"), name.strip_prefix('#')) {
            (Some(digits), _) => number(digits, 16),
            (None, Some(digits)) => number(digits, 10),
            (None, None) => None,
        },
    };
    match letter {
        Some(letter) => Ok(letter),
        None => fault(format!(
            "found the entity `&{};`, expected one of amp, lt, gt, quot, apos or the number of a \
             character",
            shown(name)
        )),
    }
}

fn shown(text: &str) -> String {
    text.chars().take(40).collect()
}

fn position(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX)
}

/// Returns an error with line and column of a place in the text.
fn at_place(text: &str, offset: usize, message: &str) -> EvaluationError {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line = before.matches('\n').count() + 1;
    let column = before
        .chars()
        .rev()
        .take_while(|letter| *letter != '\n')
        .count()
        + 1;
    EvaluationError::mapping(format!(
        "the text is not XML: line {line}, column {column}: {message}"
    ))
}
