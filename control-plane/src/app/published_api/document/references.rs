//! A schema as a part of a document: references to its own parts say where these stand in the
//! document, because that is where readers of documents look. All else stays as it came, digits and
//! order kept.

use kanat_mapping::json::{decode, items, occurrences, write_string};

/// Keywords whose values are data and no schemas, whatever they look like.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// Names of schemas stand in these, not keywords.
const NAMES: [&str; 6] = [
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// References by these go by names, and change what they mean in another place.
const NAMED: [&str; 5] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$recursiveAnchor",
    "$recursiveRef",
];

/// The schema for the place `at` of a document, as in `#/components/schemas/v1.Request`. `None` for
/// one that refers to its parts, or to other schemas, by names: it has to stay what it is.
pub fn placed(schema: &str, at: &str) -> Option<String> {
    let mut out = Vec::with_capacity(schema.len() + 64);
    Placing { at, out: &mut out }.whole(schema)?;
    String::from_utf8(out).ok()
}

struct Placing<'p> {
    at: &'p str,
    out: &'p mut Vec<u8>,
}

impl Placing<'_> {
    /// Its own name goes: what it was good for is said by the place.
    fn whole(&mut self, schema: &str) -> Option<()> {
        let named = |key: &str| matches!(decode(key).as_ref(), "$id" | "id");
        let members =
            occurrences(schema).filter(|(key, value)| !(named(key) && value.starts_with('"')));
        self.object(members, Self::keyword)
    }

    fn object<'s>(
        &mut self,
        members: impl Iterator<Item = (&'s str, &'s str)>,
        mut write: impl FnMut(&mut Self, &str, &'s str) -> Option<()>,
    ) -> Option<()> {
        self.out.push(b'{');
        for (place, (key, value)) in members.enumerate() {
            if place > 0 {
                self.out.push(b',');
            }
            self.out.extend_from_slice(key.as_bytes());
            self.out.push(b':');
            write(self, &decode(key), value)?;
        }
        self.out.push(b'}');
        Some(())
    }

    fn keyword(&mut self, name: &str, value: &str) -> Option<()> {
        let is_text = value.starts_with('"');
        match name {
            "$ref" if is_text => {
                let reference = decode(value);
                let pointer = reference
                    .strip_prefix('#')
                    .filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
                write_string(&format!("{}{pointer}", self.at), self.out);
            }
            "$id" | "id" if is_text => return None,
            name if NAMED.contains(&name) => return None,
            name if DATA.contains(&name) => self.out.extend_from_slice(value.as_bytes()),
            name if NAMES.contains(&name) && value.starts_with('{') => {
                self.object(occurrences(value), |placing, _, value| {
                    placing.schemas(value)
                })?;
            }
            _ => self.schemas(value)?,
        }
        Some(())
    }

    /// A schema, a list of them, or what is none.
    fn schemas(&mut self, value: &str) -> Option<()> {
        if value.starts_with('{') {
            return self.object(occurrences(value), Self::keyword);
        }
        if !value.starts_with('[') {
            self.out.extend_from_slice(value.as_bytes());
            return Some(());
        }
        self.out.push(b'[');
        for (place, item) in items(value).enumerate() {
            if place > 0 {
                self.out.push(b',');
            }
            self.schemas(item)?;
        }
        self.out.push(b']');
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_own_parts_lead_to_their_places() {
        for (schema, expected) in [
            (
                r##"{"a":1.50,"$ref":"#/$defs/x"}"##,
                Some(r##"{"a":1.50,"$ref":"#/p/$defs/x"}"##),
            ),
            (
                r##"{"items":[{"$ref":"#"}],"not":true}"##,
                Some(r##"{"items":[{"$ref":"#/p"}],"not":true}"##),
            ),
            (
                r##"{"$id":"urn:a","id":"b","$ref":"#/a~1b"}"##,
                Some(r##"{"$ref":"#/p/a~1b"}"##),
            ),
            // Members may be called as keywords are, and data may look like a schema.
            (
                r##"{"properties":{"const":{"$ref":"#/a"}}}"##,
                Some(r##"{"properties":{"const":{"$ref":"#/p/a"}}}"##),
            ),
            (
                r##"{"properties":{"$ref":{},"$id":{}}}"##,
                Some(r##"{"properties":{"$ref":{},"$id":{}}}"##),
            ),
            (
                r##"{"const":{"$ref":"#/a"}}"##,
                Some(r##"{"const":{"$ref":"#/a"}}"##),
            ),
            (r##"{"$ref":"#name"}"##, None),
            (r##"{"$ref":"other"}"##, None),
            (r##"{"$ref":"#/a","a":{"$anchor":"x"}}"##, None),
            (r##"{"$ref":"#/a","a":{"$id":"x"}}"##, None),
        ] {
            assert_eq!(placed(schema, "#/p").as_deref(), expected, "{schema}");
        }
    }
}
