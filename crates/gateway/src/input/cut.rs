//! Takes the object of a body apart while it arrives: the items of one list one by one, the other
//! members together. Holds no more than one item and the other members, however long the list is.

use kanat_json::{Part, SplitError, Splitter, Step};
use prost_reflect::{FieldDescriptor, MessageDescriptor};

use crate::error::Problem;
use crate::field;
use crate::json::{self, MalformedJson};

pub(super) struct Cutter {
    message: MessageDescriptor,
    list: FieldDescriptor,
    splitter: Splitter,
    /// Greatest length of one item, and of all other members together, in bytes.
    limit: usize,
    /// The members other than the list, as they stand, with commas between them.
    members: String,
    had_list: bool,
}

/// Piece of the body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The list begins: [`Cutter::members`] has the members before it.
    List,
    /// The item of the list at `path`, not checked yet.
    Item { path: String, text: String },
}

impl Cutter {
    pub fn new(list: &FieldDescriptor, limit: usize) -> Self {
        Self {
            message: list.parent_message().clone(),
            list: list.clone(),
            splitter: Splitter::new(limit),
            limit,
            members: String::new(),
            had_list: false,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.splitter.push(bytes);
    }

    /// Returns the number of bytes in memory.
    pub fn held(&self) -> usize {
        self.splitter.held() + self.members.len()
    }

    /// Returns the members other than the list that have arrived so far, as an object.
    pub fn members(&self) -> String {
        format!("{{{}}}", self.members)
    }

    /// Returns the next piece; `None` when it takes more bytes to tell it, or the body has ended.
    pub fn next(&mut self) -> Result<Option<Piece>, Problem> {
        loop {
            let step = |first: u8, names: &[String]| match (names.first(), first) {
                (None, b'{') => Step::Enter,
                (None, _) => Step::Refuse,
                (Some(key), b'[')
                    if field::find(&self.message, key).as_ref() == Some(&self.list) =>
                {
                    Step::Enter
                }
                (Some(_), _) => Step::Whole,
            };
            let part = self.splitter.next(step);
            let Some(part) = part.map_err(|error| self.split_error(error))? else {
                return Ok(None);
            };
            let path = self.path();
            match part {
                Part::List if std::mem::replace(&mut self.had_list, true) => {
                    return Err(Problem::field(path, "given twice"));
                }
                Part::List => return Ok(Some(Piece::List)),
                Part::Value { bytes, .. } => self.member(&path, text(&bytes, &path)?)?,
                Part::Item { bytes, .. } => {
                    let text = text(&bytes, &path)?.to_owned();
                    return Ok(Some(Piece::Item { path, text }));
                }
            }
        }
    }

    /// Ends a body whose bytes have all arrived. An empty body is an empty object.
    pub fn end(&self) -> Result<(), Problem> {
        if self.splitter.is_complete() || self.splitter.is_empty() {
            return Ok(());
        }
        let message = "malformed JSON: the body ends in the midst of it";
        Err(Problem::field(self.path(), message))
    }

    fn member(&mut self, key: &str, text: &str) -> Result<(), Problem> {
        let value = parsed(text, key)?;
        if self.members.len() + key.len() + value.raw().len() > self.limit {
            return Err(too_large(key, self.limit));
        }
        if !self.members.is_empty() {
            self.members.push(',');
        }
        let mut quoted = Vec::new();
        json::write_string(key, &mut quoted);
        self.members.push_str(&String::from_utf8_lossy(&quoted));
        self.members.push(':');
        self.members.push_str(value.raw());
        Ok(())
    }

    /// Returns the path of the field that the splitter has come to.
    fn path(&self) -> String {
        match (self.splitter.index(), self.splitter.names().first()) {
            (Some(index), _) => format!("{}[{index}]", self.list.json_name()),
            (None, Some(name)) => name.clone(),
            (None, None) => "body".to_owned(),
        }
    }

    fn split_error(&self, error: SplitError) -> Problem {
        let path = self.path();
        match error {
            SplitError::Refused => Problem::field("body", "expected an object"),
            SplitError::TooLarge => too_large(&path, self.limit),
            SplitError::Key(error) => Problem::malformed(&MalformedJson::new(error, &path)),
            SplitError::Unexpected { found, expected } => {
                let found = if found.is_ascii_graphic() {
                    format!("`{}`", char::from(found))
                } else {
                    "a byte".to_owned()
                };
                let message = format!("malformed JSON: found {found}, expected {expected}");
                Problem::field(path, message)
            }
        }
    }
}

fn text<'b>(bytes: &'b [u8], path: &str) -> Result<&'b str, Problem> {
    std::str::from_utf8(bytes)
        .map_err(|_| Problem::field(path, "malformed JSON: found a byte that is not UTF-8"))
}

/// Checks the value that stands at `path` of the body.
pub(super) fn parsed<'t>(text: &'t str, path: &str) -> Result<json::Value<'t>, Problem> {
    json::Value::parse(text.as_bytes()).map_err(|error| Problem::malformed(&error.within(path)))
}

fn too_large(path: &str, limit: usize) -> Problem {
    Problem::field(path, format!("is larger than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::sync::LazyLock;

    use super::*;

    /// Returns the list of records of a batch job.
    fn list() -> FieldDescriptor {
        static LIST: LazyLock<FieldDescriptor> = LazyLock::new(|| {
            let message = kanat_proto::DESCRIPTORS
                .get_message_by_name("kanat.v1.CreateBatchJobRequest")
                .unwrap();
            message.get_field_by_name("records").unwrap()
        });
        LIST.clone()
    }

    /// Returns the items and the other members of `body`, which arrives in pieces of this size, or
    /// the text of its error.
    fn cut(body: &str, size: usize, limit: usize) -> Result<(Vec<String>, String), String> {
        let mut cutter = Cutter::new(&list(), limit);
        let mut items = Vec::new();
        let message = |problem: Problem| String::from_utf8(problem.body("")).unwrap();
        for chunk in body.as_bytes().chunks(size) {
            cutter.push(chunk);
            while let Some(piece) = cutter.next().map_err(message)? {
                if let Piece::Item { path, text } = piece {
                    assert_eq!(path, format!("records[{}]", items.len()));
                    parsed(&text, &path).map_err(message)?;
                    items.push(text);
                }
            }
        }
        cutter.end().map_err(message)?;
        Ok((items, cutter.members()))
    }

    const BODY: &str = "\n{ \"flowId\" : \"f\\\"]\", \"records\" :\t[ {\"a\": [1.10, \"}],\"]} \
                        ,9007199254740993,null , \"\\\\\",[]\n], \"concurrency\":2 } ";

    #[test]
    fn items_come_as_they_stand_wherever_the_body_is_divided() {
        for size in 1..=BODY.len() {
            let (items, members) = cut(BODY, size, 1000).unwrap();
            assert_eq!(
                items,
                [
                    "{\"a\": [1.10, \"}],\"]}",
                    "9007199254740993",
                    "null",
                    "\"\\\\\"",
                    "[]"
                ],
                "{size}"
            );
            assert_eq!(
                members, "{\"flowId\":\"f\\\"]\",\"concurrency\":2}",
                "{size}"
            );
        }
        for (body, members) in [
            ("", "{}"),
            ("{}", "{}"),
            ("{\"records\":[]}", "{}"),
            (r#"{"records":7}"#, r#"{"records":7}"#),
        ] {
            assert_eq!(
                cut(body, 3, 1000).unwrap(),
                (Vec::new(), members.to_owned()),
                "{body}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        for (body, message) in [
            ("[]", r#""field":"body","message":"expected an object""#),
            (
                "{\"a\" 1}",
                r#""field":"a","message":"malformed JSON: found `1`, expected `:`"#,
            ),
            (
                "{a:1}",
                r#""field":"body","message":"malformed JSON: found `a`, expected a key"#,
            ),
            ("{\"a\":1,}", "expected a key"),
            ("{\"records\":[1,]}", r#""field":"records[1]","#),
            (
                "{\"records\":[{},{\"x\":nul}]}",
                r#""field":"records[1].x","#,
            ),
            ("{\"records\":[{},[1,}]}", r#""field":"records[1][1]","#),
            (
                "{\"records\":[{},{}",
                r#""field":"records[1]","message":"malformed JSON: the body ends"#,
            ),
            (
                "{\"records\":[{} {}]}",
                r#""field":"records[0]","message":"malformed JSON: found `{`, expected `,` or `]`"#,
            ),
            (
                "{\"records\":[],\"records\":[]}",
                r#""field":"records","message":"given twice""#,
            ),
            ("{} x", "expected the end"),
            (
                "{\"records\":[1,\"0123456789012345678901234567890123456789",
                r#""field":"records[1]","message":"is larger than 30"#,
            ),
            (
                "{\"records\":[1],\"a\":\"0123456789\",\"b\":\"012345678901\"}",
                r#""field":"b","message":"is larger than 30"#,
            ),
        ] {
            for size in [1, 7, 1000] {
                let error = cut(body, size, 30).unwrap_err();
                assert!(
                    error.contains(message),
                    "{body} in pieces of {size}: {error}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn takes_what_is_json_and_nothing_else(
            inner in r#"[\[\]{}:,"\\0-9eE+. truefalsn\n]{0,14}"#,
            size in 1..9usize,
        ) {
            let body = format!("{{\"records\":[{inner}]}}");
            let sound = serde_json::from_str::<&serde_json::value::RawValue>(&body).is_ok();
            prop_assert_eq!(cut(&body, size, 1000).is_ok(), sound, "{}", body);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut cutter = Cutter::new(&list(), 40);
            cutter.push(b"{\"records\":[");
            cutter.push(&bytes);
            while let Ok(Some(_)) = cutter.next() {}
            let _ = cutter.end();
        }
    }
}
