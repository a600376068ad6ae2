//! JSON as a tree that keeps what a float would lose: numbers stay the text they were, members stay
//! in order.

use kanat_json::Kind;
use serde::ser::{Error, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// A JSON document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Json {
    /// A number, `true`, `false` or `null`, as it was written.
    Bare(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Reads a document; the error is that of serde_json, with line and column.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        let raw: &RawValue = serde_json::from_str(text)?;
        Ok(Self::read(raw.get()))
    }

    /// Reads a text that is JSON.
    fn read(text: &str) -> Self {
        let decode = |text| kanat_json::decode(text).into_owned();
        match Kind::of(text) {
            Kind::Object => {
                let members = kanat_json::occurrences(text);
                let members = members.map(|(name, value)| (decode(name), Self::read(value)));
                Self::Object(members.collect())
            }
            Kind::List => Self::List(kanat_json::items(text).map(Self::read).collect()),
            Kind::String => Self::Text(decode(text)),
            Kind::Number | Kind::Boolean | Kind::Null => Self::Bare(text.to_owned()),
        }
    }

    /// The member at a dotted path such as `error.message`; the document itself at an empty one.
    pub fn at(&self, path: &str) -> Option<&Self> {
        let names = path.split('.').filter(|name| !name.is_empty());
        names.into_iter().try_fold(self, |value, name| match value {
            Self::Object(members) => members
                .iter()
                .find(|(member, _)| member == name)
                .map(|(_, value)| value),
            Self::Bare(_) | Self::Text(_) | Self::List(_) => None,
        })
    }

    /// The items of the list at `path`; none when it is no list.
    pub fn list(&self, path: &str) -> &[Self] {
        match self.at(path) {
            Some(Self::List(items)) => items,
            _ => &[],
        }
    }

    /// The items of the list at `path` that are texts.
    pub fn texts(&self, path: &str) -> Vec<&str> {
        self.list(path).iter().filter_map(Self::as_text).collect()
    }

    /// The members of the object at `path`; none when it is no object.
    pub fn members(&self, path: &str) -> impl Iterator<Item = (&str, &Self)> {
        let members = match self.at(path) {
            Some(Self::Object(members)) => members.as_slice(),
            _ => &[],
        };
        members.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Returns the value at `path` as text for people; empty when it is missing or null.
    pub fn text(&self, path: &str) -> String {
        match self.at(path).filter(|value| !value.is_null()) {
            None => String::new(),
            Some(Self::Bare(text) | Self::Text(text)) => text.clone(),
            Some(tree) => tree.compact(),
        }
    }

    /// The text that it is.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bare(_) | Self::List(_) | Self::Object(_) => None,
        }
    }

    /// Returns whether something other than null stands at `path`.
    pub fn has(&self, path: &str) -> bool {
        self.at(path).is_some_and(|value| !value.is_null())
    }

    /// Returns the object of a request, of the members that are not null.
    pub fn given(members: Value) -> Self {
        match Self::from(members) {
            Self::Object(mut members) => {
                members.retain(|(_, value)| !value.is_null());
                Self::Object(members)
            }
            other => other,
        }
    }

    /// Returns the object with these members, in the place of its own ones of the same names; what
    /// is no object stays as it is.
    pub fn with<'n>(mut self, more: impl IntoIterator<Item = (&'n str, Option<Self>)>) -> Self {
        if let Self::Object(members) = &mut self {
            for (name, value) in more {
                if let Some(value) = value {
                    members.retain(|(member, _)| member != name);
                    members.push((name.to_owned(), value));
                }
            }
        }
        self
    }

    /// Returns whether it is an object without members.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Object(members) if members.is_empty())
    }

    fn is_null(&self) -> bool {
        matches!(self, Self::Bare(bare) if bare == "null")
    }

    /// The document on one line.
    pub fn compact(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The document indented by two spaces.
    pub fn pretty(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The document in lines of at most `width` characters where that can be, each as full as it
    /// gets.
    pub fn within(&self, width: usize) -> String {
        let mut out = String::new();
        self.fill(&mut out, 0, width);
        out
    }

    fn fill(&self, out: &mut String, depth: usize, width: usize) {
        // The brackets that are open may follow, or a comma.
        let fits =
            |out: &str, text: &str| column(out) + text.chars().count() + 2 * (depth + 1) <= width;
        let line = self.spaced();
        let (open, close) = match self {
            Self::List(_) if !fits(out, &line) => ("[", "]"),
            Self::Object(_) if !fits(out, &line) => ("{ ", " }"),
            Self::Bare(_) | Self::Text(_) | Self::List(_) | Self::Object(_) => {
                return out.push_str(&line);
            }
        };
        out.push_str(open);
        for (index, (name, value)) in self.children().enumerate() {
            let name = name
                .map(|name| format!("{}: ", quote(name)))
                .unwrap_or_default();
            let fits = fits(out, &format!(", {name}{}", value.spaced()));
            match index {
                0 if fits || !name.is_empty() => {}
                0 => new_line(out, depth + 1),
                _ if fits => out.push_str(", "),
                _ => {
                    out.push(',');
                    new_line(out, depth + 1);
                }
            }
            out.push_str(&name);
            value.fill(out, depth + 1, width);
        }
        out.push_str(close);
    }

    /// The document on one line, with spaces where a reader wants them.
    fn spaced(&self) -> String {
        let part = |(name, value): (Option<&str>, &Self)| match name {
            Some(name) => format!("{}: {}", quote(name), value.spaced()),
            None => value.spaced(),
        };
        let parts: Vec<String> = self.children().map(part).collect();
        match self {
            Self::Bare(_) | Self::Text(_) => self.compact(),
            Self::List(_) => format!("[{}]", parts.join(", ")),
            Self::Object(_) if parts.is_empty() => "{}".to_owned(),
            Self::Object(_) => format!("{{ {} }}", parts.join(", ")),
        }
    }

    fn children(&self) -> Box<dyn Iterator<Item = (Option<&str>, &Self)> + '_> {
        match self {
            Self::Bare(_) | Self::Text(_) => Box::new(std::iter::empty()),
            Self::List(items) => Box::new(items.iter().map(|item| (None, item))),
            Self::Object(members) => Box::new(
                members
                    .iter()
                    .map(|(name, value)| (Some(name.as_str()), value)),
            ),
        }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
            bare => Self::Bare(bare.to_string()),
        }
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Bare(bare) => serde_json::from_str::<&RawValue>(bare)
                .map_err(S::Error::custom)?
                .serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(members) => {
                serializer.collect_map(members.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

/// Characters of the line that `out` ends with.
fn column(out: &str) -> usize {
    out.chars().rev().take_while(|c| *c != '\n').count()
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// `text` as a JSON string.
pub fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_digits_and_order() {
        let text = r#"{"z":9007199254740993,"a":[1.10,1e400,null],"t":"ü\n"}"#;
        assert_eq!(Json::parse(text).unwrap().compact(), text);
    }

    #[test]
    fn indents_what_has_members() {
        let tree = Json::parse(r#"{"a":[],"b":{"c":1}}"#).unwrap();
        assert_eq!(
            tree.pretty(),
            "{\n  \"a\": [],\n  \"b\": {\n    \"c\": 1\n  }\n}"
        );
    }

    #[test]
    fn fills_lines_up_to_the_width() {
        let tree = Json::parse(
            r#"{"a":{"b":1,"c":[]},"d":[1,2],"e":[{"f":"12345678"},{"f":"12345678"}]}"#,
        )
        .unwrap();
        let wide = concat!(
            r#"{ "a": { "b": 1, "c": [] }, "d": [1, 2], "#,
            r#""e": [{ "f": "12345678" }, { "f": "12345678" }] }"#
        );
        assert_eq!(tree.within(100), wide);
        let narrow = "{ \"a\": { \"b\": 1, \"c\": [] },\n  \"d\": [1, 2],\n  \"e\": [\n    { \
                      \"f\": \"12345678\" },\n    { \"f\": \"12345678\" }] }";
        assert_eq!(tree.within(31), narrow);
    }

    #[test]
    fn finds_members_by_path() {
        let tree = Json::parse(r#"{"error":{"message":"gone"},"data":[1],"none":null}"#).unwrap();
        assert_eq!(tree.text("error.message"), "gone");
        assert_eq!(tree.text("error.missing"), "");
        assert_eq!(tree.text("none"), "");
        assert_eq!(tree.list("data").len(), 1);
        assert!(!tree.has("none"));
    }
}
