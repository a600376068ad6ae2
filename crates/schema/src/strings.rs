//! Search for schemas that no string fits.

use std::collections::HashMap;

use crate::node::{Applicator, Id, Node, Program};

/// Greatest depth of schemas that are looked into. What is deeper is taken to accept strings.
const MAX_DEPTH: usize = 64;

/// Returns whether the schema refuses every string. `false` where it may accept one, and where that
/// is not known.
pub(crate) fn are_refused(program: &Program) -> bool {
    let mut search = Search {
        program,
        verdicts: HashMap::new(),
    };
    search.refuses(program.root, 0)
}

struct Search<'p> {
    program: &'p Program,
    /// Nodes that were looked at; true for those that refuse every string.
    verdicts: HashMap<Id, bool>,
}

impl Search<'_> {
    fn refuses(&mut self, id: Id, depth: usize) -> bool {
        if let Some(known) = self.verdicts.get(&id) {
            return *known;
        }
        if depth > MAX_DEPTH {
            return false;
        }
        // A reference from a node to itself decides nothing.
        self.verdicts.insert(id, false);
        let node = &self.program.nodes[id as usize];
        let refuses = refuses_by_itself(node)
            || node
                .applied
                .iter()
                .any(|applied| self.applied_refuses(applied, depth + 1));
        self.verdicts.insert(id, refuses);
        refuses
    }

    fn applied_refuses(&mut self, applied: &Applicator, depth: usize) -> bool {
        match applied {
            Applicator::All(ids) => ids.iter().any(|id| self.refuses(*id, depth)),
            Applicator::Any(ids) | Applicator::One(ids) => {
                ids.iter().all(|id| self.refuses(*id, depth))
            }
            Applicator::Reference(id) => self.refuses(*id, depth),
            Applicator::Not(_)
            | Applicator::If { .. }
            | Applicator::Dynamic { .. }
            | Applicator::Recursive { .. } => false,
        }
    }
}

fn refuses_by_itself(node: &Node) -> bool {
    node.verdict == Some(false)
        || node.types.is_some_and(|types| !types.has("string"))
        || node
            .options
            .iter()
            .any(|options| options.strings.is_empty())
}

#[cfg(test)]
mod tests {
    use crate::Schema;

    #[test]
    fn a_schema_refuses_strings_when_no_string_fits() {
        for (schema, refuses) in [
            ("true", false),
            ("false", true),
            ("{}", false),
            (r#"{"type": "object"}"#, true),
            (r#"{"type": ["object", "null"]}"#, true),
            (r#"{"type": ["object", "string"]}"#, false),
            (r#"{"required": ["a"]}"#, false),
            (r#"{"type": "string", "minLength": 100}"#, false),
            (r#"{"enum": [1, null]}"#, true),
            (r#"{"enum": [1, "a"]}"#, false),
            (r#"{"const": {}}"#, true),
            (
                r##"{"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}"##,
                true,
            ),
            (
                r##"{"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}"##,
                false,
            ),
            (r#"{"allOf": [{}, {"type": "number"}]}"#, true),
            (
                r#"{"anyOf": [{"type": "object"}, {"type": "array"}]}"#,
                true,
            ),
            (
                r#"{"oneOf": [{"type": "object"}, {"type": "string"}]}"#,
                false,
            ),
            (r#"{"not": {"type": "string"}}"#, false),
        ] {
            let compiled = Schema::compile(schema).unwrap();
            assert_eq!(compiled.refuses_strings(), refuses, "{schema}");
        }
    }

    #[test]
    fn siblings_of_a_reference_count_by_the_draft() {
        let schema = |draft: &str| {
            let text = format!(
                r##"{{"$schema": "{draft}", "$ref": "#/definitions/a", "type": "object",
                    "definitions": {{"a": {{}}}}}}"##
            );
            Schema::compile(&text).unwrap().refuses_strings()
        };
        assert!(!schema("http://json-schema.org/draft-07/schema#"));
        assert!(schema("https://json-schema.org/draft/2020-12/schema"));
    }
}
