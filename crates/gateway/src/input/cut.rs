//! Takes the object of a body apart while it comes: the items of one list one by one, the other
//! members together. Holds no more than one item and the other members, however long the list is.

use bytes::{Buf, BytesMut};
use kanat_json::PieceScan;
use prost_reflect::{FieldDescriptor, MessageDescriptor};

use crate::error::Problem;
use crate::{field, json};

pub(super) struct Cutter {
    message: MessageDescriptor,
    list: FieldDescriptor,
    /// Bytes of one value.
    limit: usize,
    /// What came and is not taken yet; never more than one value and the chunk that it ended in.
    buffer: BytesMut,
    scan: PieceScan,
    place: Place,
    /// The members other than the list, as they stand, with commas between them.
    members: String,
    had_list: bool,
}

/// What is next, apart from white space.
enum Place {
    Object,
    FirstKey,
    Key,
    Colon(String),
    Value(String),
    AfterValue,
    FirstItem,
    Item(usize),
    AfterItem(usize),
    End,
}

/// What is found next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// The list begins: [`Cutter::members`] has what stood before it.
    List,
    /// Its item at this place.
    Item { index: usize, text: String },
}

impl Cutter {
    pub fn new(list: &FieldDescriptor, limit: usize) -> Self {
        Self {
            message: list.parent_message().clone(),
            list: list.clone(),
            limit,
            buffer: BytesMut::new(),
            scan: PieceScan::default(),
            place: Place::Object,
            members: String::new(),
            had_list: false,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes in memory.
    pub fn held(&self) -> usize {
        self.buffer.len() + self.members.len()
    }

    /// The members other than the list that have come so far, as an object.
    pub fn members(&self) -> String {
        format!("{{{}}}", self.members)
    }

    /// The next part; `None` when more bytes are needed to tell it, or all has come.
    pub fn next(&mut self) -> Result<Option<Part>, Problem> {
        loop {
            let blank = self
                .buffer
                .iter()
                .take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
                .count();
            if self.scan.is_new() {
                self.buffer.advance(blank);
            }
            let Some(&byte) = self.buffer.first() else {
                return Ok(None);
            };
            match (&mut self.place, byte) {
                (Place::Object, b'{') => self.go_on(Place::FirstKey),
                (Place::FirstKey, b'}') | (Place::AfterValue, b'}') => self.go_on(Place::End),
                (Place::FirstKey | Place::Key, b'"') => {
                    let Some(text) = self.value("body")? else {
                        return Ok(None);
                    };
                    let key = parsed(&text, "body")?
                        .text()
                        .map(std::borrow::Cow::into_owned);
                    self.place =
                        Place::Colon(key.ok_or_else(|| unexpected("body", byte, "a key"))?);
                }
                (Place::Colon(key), b':') => {
                    let key = std::mem::take(key);
                    self.go_on(Place::Value(key));
                }
                (Place::Value(key), b'[')
                    if field::find(&self.message, key.as_str()).as_ref() == Some(&self.list) =>
                {
                    if self.had_list {
                        return Err(Problem::field(key.as_str(), "given twice"));
                    }
                    self.had_list = true;
                    self.go_on(Place::FirstItem);
                    return Ok(Some(Part::List));
                }
                (Place::Value(key), _) => {
                    let key = key.clone();
                    let Some(text) = self.value(&key)? else {
                        return Ok(None);
                    };
                    self.member(&key, parsed(&text, &key)?)?;
                    self.place = Place::AfterValue;
                }
                (Place::AfterValue, b',') => self.go_on(Place::Key),
                (Place::FirstItem, b']') | (Place::AfterItem(_), b']') => {
                    self.go_on(Place::AfterValue)
                }
                (Place::FirstItem, _) => self.place = Place::Item(0),
                (Place::Item(index), _) => {
                    let index = *index;
                    let path = format!("{}[{index}]", self.list.json_name());
                    let Some(text) = self.value(&path)? else {
                        return Ok(None);
                    };
                    parsed(&text, &path)?;
                    self.place = Place::AfterItem(index);
                    return Ok(Some(Part::Item { index, text }));
                }
                (Place::AfterItem(index), b',') => {
                    let next = *index + 1;
                    self.go_on(Place::Item(next));
                }
                (place, byte) => return Err(place.misses(byte, self.list.json_name())),
            }
        }
    }

    /// All bytes have come. An empty body is an empty object.
    pub fn end(&self) -> Result<(), Problem> {
        match &self.place {
            Place::End => Ok(()),
            Place::Object if self.buffer.is_empty() => Ok(()),
            place => {
                let path = place.path(self.list.json_name());
                Err(Problem::field(
                    path,
                    "malformed JSON: the body ends in the midst of it",
                ))
            }
        }
    }

    fn go_on(&mut self, place: Place) {
        self.buffer.advance(1);
        self.place = place;
    }

    fn member(&mut self, key: &str, value: json::Value<'_>) -> Result<(), Problem> {
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

    /// Takes the value at the begin of the buffer, once it is there whole.
    fn value(&mut self, path: &str) -> Result<Option<String>, Problem> {
        let length = self.scan.end(&self.buffer);
        if length.unwrap_or(self.buffer.len()) > self.limit {
            return Err(too_large(path, self.limit));
        }
        let Some(length) = length else {
            return Ok(None);
        };
        self.scan = PieceScan::default();
        match std::str::from_utf8(&self.buffer.split_to(length)) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(Problem::field(
                path,
                "malformed JSON: found a byte that is not UTF-8",
            )),
        }
    }
}

impl Place {
    fn path(&self, list: &str) -> String {
        match self {
            Self::Colon(key) | Self::Value(key) => key.clone(),
            Self::FirstItem => list.to_owned(),
            Self::Item(index) | Self::AfterItem(index) => format!("{list}[{index}]"),
            Self::Object | Self::FirstKey | Self::Key | Self::AfterValue | Self::End => {
                "body".to_owned()
            }
        }
    }

    fn misses(&self, found: u8, list: &str) -> Problem {
        let expected = match self {
            Self::Object => return Problem::field("body", "expected an object"),
            Self::FirstKey | Self::Key => "a key in double quotes",
            Self::Colon(_) => "`:`",
            Self::Value(_) | Self::FirstItem | Self::Item(_) => "a value",
            Self::AfterValue => "`,` or `}`",
            Self::AfterItem(_) => "`,` or `]`",
            Self::End => "the end",
        };
        unexpected(&self.path(list), found, expected)
    }
}

fn parsed<'t>(text: &'t str, path: &str) -> Result<json::Value<'t>, Problem> {
    json::Value::parse(text.as_bytes()).map_err(|error| Problem::malformed(&error.within(path)))
}

fn unexpected(path: &str, found: u8, expected: &str) -> Problem {
    let found = if found.is_ascii_graphic() {
        format!("`{}`", char::from(found))
    } else {
        "a byte".to_owned()
    };
    Problem::field(
        path,
        format!("malformed JSON: found {found}, expected {expected}"),
    )
}

fn too_large(path: &str, limit: usize) -> Problem {
    Problem::field(path, format!("is larger than {limit} bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::sync::LazyLock;

    use prost_reflect::DescriptorPool;

    use super::*;

    fn list() -> FieldDescriptor {
        static LIST: LazyLock<FieldDescriptor> = LazyLock::new(|| {
            let pool = DescriptorPool::decode(kanat_proto::FILE_DESCRIPTOR_SET).unwrap();
            let message = pool
                .get_message_by_name("kanat.v1.CreateBatchJobRequest")
                .unwrap();
            message.get_field_by_name("records").unwrap()
        });
        LIST.clone()
    }

    /// The items and the other members of `body`, which comes in pieces of this size; or what is
    /// said of it.
    fn cut(body: &str, size: usize, limit: usize) -> Result<(Vec<String>, String), String> {
        let mut cutter = Cutter::new(&list(), limit);
        let mut items = Vec::new();
        let told = |problem: Problem| String::from_utf8(problem.body("")).unwrap();
        for chunk in body.as_bytes().chunks(size) {
            cutter.push(chunk);
            while let Some(part) = cutter.next().map_err(told)? {
                if let Part::Item { index, text } = part {
                    assert_eq!(index, items.len());
                    items.push(text);
                }
            }
        }
        cutter.end().map_err(told)?;
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
        for (body, told) in [
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
                assert!(error.contains(told), "{body} in pieces of {size}: {error}");
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
