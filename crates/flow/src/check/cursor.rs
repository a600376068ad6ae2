//! Cursors into the tree, and reads at one: a text, a map, a number. A value of another kind is
//! reported.

use std::time::Duration;

use super::Checker;
use crate::diagnostic::{MAX_DIAGNOSTICS, Position};
use crate::nearest;
use crate::yaml::{Member, Node, Text, Value, locate, member_path};
use crate::{definition::LocatedName, duration, language};

/// A node and the path that leads to it.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'n> {
    pub(super) node: &'n Node,
    pub(super) path: String,
}

/// A map, and the path that leads to it.
#[derive(Debug, Clone)]
pub(super) struct Members<'n> {
    members: &'n [Member],
    path: String,
    at: Position,
}

impl<'n> Cursor<'n> {
    pub(super) fn item(&self, index: usize, node: &'n Node) -> Cursor<'n> {
        Cursor {
            node,
            path: format!("{}[{index}]", self.path),
        }
    }

    /// Returns the position of byte `offset` of its text, or else that of the node.
    pub(super) fn at_offset(&self, offset: usize) -> Position {
        match &self.node.value {
            Value::Text(Text { text, anchors, .. }) => {
                locate(anchors, text, offset).unwrap_or(self.node.at)
            }
            _ => self.node.at,
        }
    }
}

impl<'n> Members<'n> {
    pub(super) fn get(&self, name: &str) -> Option<Cursor<'n>> {
        let member = self.members.iter().find(|member| member.name == name)?;
        Some(self.cursor(member))
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'n Member, Cursor<'n>)> {
        self.members
            .iter()
            .map(|member| (member, self.cursor(member)))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Returns the position and the path of a key.
    pub(super) fn key(&self, name: &str) -> (Position, String) {
        let at = self
            .members
            .iter()
            .find(|member| member.name == name)
            .map_or(self.at, |member| member.at);
        (at, member_path(&self.path, name))
    }

    fn cursor(&self, member: &'n Member) -> Cursor<'n> {
        Cursor {
            node: &member.value,
            path: member_path(&self.path, &member.name),
        }
    }
}

/// Reads a key that may be left out; `None` when it is there and wrong.
pub(super) fn optional<'n, T>(
    cursor: Option<Cursor<'n>>,
    read: impl FnOnce(&Cursor<'n>) -> Option<T>,
) -> Option<Option<T>> {
    match cursor {
        Some(cursor) => read(&cursor).map(Some),
        None => Some(None),
    }
}

impl Checker {
    pub(super) fn error(&mut self, cursor: &Cursor, message: impl Into<String>) {
        self.report(cursor.node.at, &cursor.path, message);
    }

    /// `found <what is there>, expected <expected>`; nothing when it is reported already.
    pub(super) fn type_error(&mut self, cursor: &Cursor, expected: &str) {
        let hint = match &cursor.node.value {
            Value::Invalid => return,
            Value::Number(_) | Value::Bool(_) if expected.starts_with("a text") => {
                "; put it in quotes"
            }
            Value::Number(_)
            | Value::Bool(_)
            | Value::Null
            | Value::Text(_)
            | Value::List(_)
            | Value::Map(_) => "",
        };
        self.error(
            cursor,
            format!(
                "found {}, expected {expected}{hint}",
                cursor.node.described()
            ),
        );
    }

    /// A map whose keys are all among those that the language has at `path`.
    pub(super) fn members<'n>(&mut self, cursor: &Cursor<'n>, path: &str) -> Option<Members<'n>> {
        if self.is_full() {
            return None;
        }
        let known: Vec<_> = language::names(path).collect();
        let members = self.any_members(cursor, &format!("a map with {}", known.join(", ")))?;
        let unknown = members
            .iter()
            .filter(|(member, _)| !known.contains(&member.name.as_str()));
        for (member, inner) in unknown.take(MAX_DIAGNOSTICS) {
            let near = nearest::suggestion(&member.name, known.iter().copied());
            let hint = match near.is_empty() {
                true => language::place_hint(&member.name),
                false => near,
            };
            let name = duration::quoted(&member.name);
            let message = format!(
                "found the unknown key {name}, expected {}{hint}",
                known.join(", ")
            );
            self.report(member.at, &inner.path, message);
        }
        Some(members)
    }

    /// A map with keys of the user's own.
    pub(super) fn any_members<'n>(
        &mut self,
        cursor: &Cursor<'n>,
        expected: &str,
    ) -> Option<Members<'n>> {
        match &cursor.node.value {
            Value::Map(members) => Some(Members {
                members,
                path: cursor.path.clone(),
                at: cursor.node.at,
            }),
            _ => {
                self.type_error(cursor, expected);
                None
            }
        }
    }

    /// A member that must be there.
    pub(super) fn required<'n>(&mut self, members: &Members<'n>, name: &str) -> Option<Cursor<'n>> {
        let cursor = members.get(name);
        if cursor.is_none() {
            self.report(members.at, &members.path, format!("lacks the key {name:?}"));
        }
        cursor
    }

    /// A text that is not blank.
    pub(super) fn text<'n>(&mut self, cursor: &Cursor<'n>, expected: &str) -> Option<&'n str> {
        let is_blank =
            matches!(&cursor.node.value, Value::Text(text) if text.text.trim().is_empty());
        if is_blank {
            self.type_error(cursor, expected);
            return None;
        }
        self.any_text(cursor, expected)
    }

    /// A text that may be empty.
    pub(super) fn any_text<'n>(&mut self, cursor: &Cursor<'n>, expected: &str) -> Option<&'n str> {
        match &cursor.node.value {
            Value::Text(text) => Some(&text.text),
            _ => {
                self.type_error(cursor, expected);
                None
            }
        }
    }

    /// A name of something outside the definition.
    pub(super) fn named(&mut self, cursor: &Cursor, expected: &str) -> Option<LocatedName> {
        let name = self.text(cursor, expected)?.to_owned();
        Some(LocatedName {
            name,
            path: cursor.path.clone(),
            at: cursor.at_offset(0),
        })
    }

    /// One of the words that are known.
    pub(super) fn one_of<'w>(&mut self, cursor: &Cursor, words: &[&'w str]) -> Option<&'w str> {
        if self.is_full() {
            return None;
        }
        let expected = match words {
            [word] => (*word).to_owned(),
            _ => format!("one of {}", words.join(", ")),
        };
        let found = match &cursor.node.value {
            Value::Text(text) => text.text.as_str(),
            _ => {
                self.type_error(cursor, &expected);
                return None;
            }
        };
        let word = words.iter().find(|word| **word == found).copied();
        if word.is_none() {
            let near = nearest::suggestion(found, words.iter().copied());
            self.type_error(cursor, &format!("{expected}{near}"));
        }
        word
    }

    /// A whole number within bounds.
    pub(super) fn whole(&mut self, cursor: &Cursor, least: u32, most: u32) -> Option<u32> {
        let number = match &cursor.node.value {
            Value::Number(number) => number.json.as_ref().and_then(|json| json.parse().ok()),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            self.type_error(cursor, &format!("a whole number from {least} to {most}"));
        }
        number
    }

    /// A duration within bounds.
    pub(super) fn duration(
        &mut self,
        cursor: &Cursor,
        least: Duration,
        most: Duration,
    ) -> Option<Duration> {
        let text = self.text(cursor, "a duration such as 30s or 1m30s")?;
        match duration::parse(text) {
            Ok(duration) if (least..=most).contains(&duration) => Some(duration),
            Ok(_) => {
                let bounds = format!("{} to {}", duration::format(least), duration::format(most));
                self.type_error(cursor, &format!("a duration from {bounds}"));
                None
            }
            Err(message) => {
                self.error(cursor, message);
                None
            }
        }
    }

    /// A text that `read` understands; its errors are whole sentences.
    pub(super) fn read<T>(
        &mut self,
        cursor: &Cursor,
        expected: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<T> {
        let text = self.text(cursor, expected).filter(|_| !self.is_full())?;
        read(text)
            .map_err(|message| self.error(cursor, message))
            .ok()
    }
}
