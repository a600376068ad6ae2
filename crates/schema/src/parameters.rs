//! Reads parameters of a path and a query as JSON: each text becomes a value of the type that the
//! schema expects under its name. A text that does not fit stays text, so that the check reports
//! it. All texts stay text once the budget of the request is used up.

use std::collections::{HashMap, HashSet};

use crate::budget::Budget;
use crate::node::{Applicator, Id, Program};

/// Steps of reading the types of one schema.
const STEPS_PER_NODE: u64 = 8;

/// Returns the nodes that apply to the same value as `root`, `root` first.
pub(crate) fn applicable_nodes(program: &Program, root: Id) -> Vec<Id> {
    let mut ids = vec![root];
    let mut seen = HashSet::from([root]);
    let mut next = 0;
    while let Some(id) = ids.get(next).copied() {
        next += 1;
        for applied in &program.nodes[id as usize].applied {
            let more: Vec<Id> = match applied {
                Applicator::All(all) | Applicator::Any(all) | Applicator::One(all) => all.clone(),
                Applicator::Reference(id)
                | Applicator::Dynamic { target: id, .. }
                | Applicator::Recursive { target: id } => {
                    vec![*id]
                }
                Applicator::If {
                    then, otherwise, ..
                } => [*then, *otherwise].into_iter().flatten().collect(),
                Applicator::Not(_) => Vec::new(),
            };
            ids.extend(more.into_iter().filter(|id| seen.insert(*id)));
        }
    }
    ids
}

pub(crate) fn read<'p>(
    program: &Program,
    document_nodes: &[Id],
    pairs: impl IntoIterator<Item = (&'p str, &'p str)>,
) -> String {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut members: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, text) in pairs {
        let place = *places.entry(name).or_insert(members.len());
        match members.get_mut(place) {
            Some((_, texts)) => texts.push(text),
            None => members.push((name, vec![text])),
        }
    }
    let length = members
        .iter()
        .map(|(name, texts)| name.len() + texts.iter().map(|text| text.len()).sum::<usize>());
    let mut budget = Budget::of_document(length.sum());
    let mut out = vec![b'{'];
    for (place, (name, texts)) in members.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        kanat_json::write_string(name, &mut out);
        out.push(b':');
        let wanted =
            ExpectedTypes::under(program, document_nodes, name, &mut budget).unwrap_or_default();
        wanted.write(program, texts, &mut budget, &mut out);
    }
    out.push(b'}');
    String::from_utf8(out).expect("JSON written from text is UTF-8")
}

/// Types that the schema expects under a name.
#[derive(Debug, Default)]
struct ExpectedTypes {
    string: bool,
    number: bool,
    boolean: bool,
    null: bool,
    list: bool,
    /// Nodes that apply to the value.
    nodes: Vec<Id>,
}

impl ExpectedTypes {
    /// Returns `None` when the budget is used up.
    fn under(
        program: &Program,
        document_nodes: &[Id],
        name: &str,
        budget: &mut Budget,
    ) -> Option<Self> {
        let mut schemas = Vec::new();
        for id in document_nodes {
            if !budget.spend(1) {
                return None;
            }
            let Some(object) = &program.nodes[*id as usize].object else {
                continue;
            };
            let before = schemas.len();
            schemas.extend(object.names.get(name).and_then(|name| name.schema));
            for (pattern, schema) in &object.patterns {
                if !budget.spend(pattern.work(name)) {
                    return None;
                }
                schemas.extend(pattern.is_match(name).then_some(*schema));
            }
            if schemas.len() == before {
                schemas.extend(object.additional);
            }
        }
        Self::of(program, &schemas, budget)
    }

    fn of(program: &Program, schemas: &[Id], budget: &mut Budget) -> Option<Self> {
        let mut wanted = Self::default();
        for schema in schemas {
            let nodes = applicable_nodes(program, *schema);
            if !budget.spend(STEPS_PER_NODE * nodes.len() as u64) {
                return None;
            }
            nodes.into_iter().for_each(|id| wanted.add(program, id));
        }
        Some(wanted)
    }

    fn add(&mut self, program: &Program, id: Id) {
        self.nodes.push(id);
        let node = &program.nodes[id as usize];
        if let Some(types) = node.types {
            self.string |= types.has("string");
            self.number |= types.has("number") || types.has("integer");
            self.boolean |= types.has("boolean");
            self.null |= types.has("null");
            self.list |= types.has("array");
            return;
        }
        for options in &node.options {
            let begins = |first: &[u8]| {
                options
                    .others
                    .iter()
                    .any(|option| option.first().is_some_and(|b| first.contains(b)))
            };
            self.string |= !options.strings.is_empty();
            self.number |= begins(b"#");
            self.boolean |= begins(b"tf");
            self.null |= begins(b"n");
        }
        self.list |= node.list.is_some();
    }

    fn write(&self, program: &Program, texts: &[&str], budget: &mut Budget, out: &mut Vec<u8>) {
        let single = match texts {
            [text] if !self.list || self.string || self.reads(program, text, budget) => Some(*text),
            _ => None,
        };
        if let Some(text) = single {
            return self.write_one(program, text, budget, out);
        }
        let items: Vec<Id> = self
            .nodes
            .iter()
            .filter_map(|id| program.nodes[*id as usize].list.as_ref())
            .flat_map(|list| list.first.iter().copied().chain(list.rest))
            .collect();
        let item = if self.list {
            &Self::of(program, &items, budget).unwrap_or_default()
        } else {
            self
        };
        out.push(b'[');
        for (place, text) in texts.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            item.write_one(program, text, budget, out);
        }
        out.push(b']');
    }

    fn write_one(&self, program: &Program, text: &str, budget: &mut Budget, out: &mut Vec<u8>) {
        if self.reads(program, text, budget) {
            out.extend_from_slice(text.as_bytes());
        } else {
            kanat_json::write_string(text, out);
        }
    }

    /// Returns whether a text is an expected value as it stands.
    fn reads(&self, program: &Program, text: &str, budget: &mut Budget) -> bool {
        let is_option = || {
            let options = self
                .nodes
                .iter()
                .flat_map(|id| &program.nodes[*id as usize].options);
            options.into_iter().any(|options| options.has_text(text))
        };
        let fits = match text {
            "true" | "false" => self.boolean,
            // The text of a string may be `null`.
            "null" => self.null && !self.string,
            text => self.number && kanat_json::is_number(text),
        };
        fits && budget.spend(self.nodes.len() as u64) && !is_option()
    }
}

#[cfg(test)]
mod tests {
    use crate::Schema;

    #[track_caller]
    fn reads(schema: &str, pairs: &[(&str, &str)], expected: &str) {
        let schema = Schema::compile(schema).unwrap();
        assert_eq!(schema.read_parameters(pairs.iter().copied()), expected);
    }

    #[test]
    fn reads_what_the_schema_asks_for() {
        let schema = r##"{"$defs":{"page":{"type":"integer"}},"properties":{
            "page":{"$ref":"#/$defs/page"},"q":{"type":"string"},
            "full":{"type":"boolean"},"rate":{"type":["number","null"]},
            "tag":{"type":"array","items":{"type":"integer"}},
            "size":{"enum":[1,2,"3"]}},"allOf":[{"properties":{"deep":{"type":"number"}}}],
            "patternProperties":{"^n_":{"type":"number"}},
            "additionalProperties":{"type":"boolean"}}"##;
        reads(
            schema,
            &[("page", "12345678901234567890"), ("q", "7")],
            r#"{"page":12345678901234567890,"q":"7"}"#,
        );
        reads(
            schema,
            &[("page", "x\"y"), ("full", "true"), ("rate", "null")],
            r#"{"page":"x\"y","full":true,"rate":null}"#,
        );
        reads(
            schema,
            &[("tag", "1"), ("rate", "1.50")],
            r#"{"tag":[1],"rate":1.50}"#,
        );
        reads(
            schema,
            &[("tag", "1"), ("q", "a"), ("tag", "b")],
            r#"{"tag":[1,"b"],"q":"a"}"#,
        );
        reads(schema, &[("page", "1"), ("page", "2")], r#"{"page":[1,2]}"#);
        reads(
            schema,
            &[
                ("size", "2"),
                ("deep", "1e3"),
                ("n_1", "4"),
                ("else", "false"),
            ],
            r#"{"size":2,"deep":1e3,"n_1":4,"else":false}"#,
        );
        reads(
            schema,
            &[
                ("size", "3"),
                ("page", "01"),
                ("n_1", " 4"),
                ("n_2", "+4"),
                ("rate", ""),
            ],
            r#"{"size":"3","page":"01","n_1":" 4","n_2":"+4","rate":""}"#,
        );
        reads(schema, &[], "{}");
        reads("true", &[("a", "1")], r#"{"a":"1"}"#);
    }
}
