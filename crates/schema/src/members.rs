//! Members that a schema requires of every object or refuses in every object, whatever their values
//! are.

use std::collections::HashSet;

use crate::node::{Applicator, Id, Node, ObjectRules, Program};

/// Returns the required members that are not among `names`, in the order of the schema.
pub(crate) fn missing<'p>(program: &'p Program, names: &[&str]) -> Vec<&'p str> {
    let mut missing: Vec<&str> = Vec::new();
    for object in rules(program) {
        for name in &object.required {
            if !names.contains(&&**name) && !missing.contains(&&**name) {
                missing.push(name);
            }
        }
    }
    missing
}

/// Returns those of `names` that no object which fits the schema has.
pub(crate) fn refused<'n>(program: &Program, names: &[&'n str]) -> Vec<&'n str> {
    let refused = |name: &&&str| rules(program).any(|object| refuses(program, object, name));
    names.iter().filter(refused).copied().collect()
}

fn refuses(program: &Program, object: &ObjectRules, name: &str) -> bool {
    let is_false = |id: Id| program.nodes[id as usize].verdict == Some(false);
    let named = object.names.get(name).and_then(|name| name.schema);
    let mut by_pattern = object
        .patterns
        .iter()
        .filter(|(pattern, _)| pattern.is_match(name))
        .map(|(_, schema)| *schema)
        .peekable();
    if named.is_none() && by_pattern.peek().is_none() {
        return object.additional.is_some_and(is_false);
    }
    named.into_iter().chain(by_pattern).any(is_false)
}

/// Returns the rules of the nodes that apply to every document.
fn rules(program: &Program) -> impl Iterator<Item = &ObjectRules> {
    let nodes = certain_nodes(program).into_iter();
    nodes.filter_map(|node| node.object.as_deref())
}

fn certain_nodes(program: &Program) -> Vec<&Node> {
    let mut ids = vec![program.root];
    let mut seen = HashSet::from([program.root]);
    let mut next = 0;
    while let Some(id) = ids.get(next).copied() {
        next += 1;
        for applied in &program.nodes[id as usize].applied {
            let more: &[Id] = match applied {
                Applicator::All(all) => all,
                Applicator::Reference(id) => std::slice::from_ref(id),
                Applicator::Any(_)
                | Applicator::One(_)
                | Applicator::Not(_)
                | Applicator::If { .. }
                | Applicator::Dynamic { .. }
                | Applicator::Recursive { .. } => &[],
            };
            ids.extend(more.iter().copied().filter(|id| seen.insert(*id)));
        }
    }
    let node = |id: Id| &program.nodes[id as usize];
    ids.into_iter().map(node).collect()
}

#[cfg(test)]
mod tests {
    use crate::Schema;

    #[test]
    fn what_every_object_needs_is_known() {
        for (schema, missing) in [
            (r#"{"required": ["id", "total"]}"#, &["total"][..]),
            (r#"{"required": ["id"]}"#, &[]),
            (
                r#"{"allOf": [{"required": ["total"]}], "required": ["total", "at"]}"#,
                &["total", "at"],
            ),
            (
                r##"{"$ref": "#/$defs/a", "$defs": {"a": {"required": ["total"]}}}"##,
                &["total"],
            ),
            (r#"{"anyOf": [{"required": ["total"]}, {}]}"#, &[]),
            ("true", &[]),
        ] {
            let compiled = Schema::compile(schema).unwrap();
            let mut found = compiled.missing_members(&["id", "name"]);
            found.sort_unstable();
            let mut missing = missing.to_vec();
            missing.sort_unstable();
            assert_eq!(found, missing, "{schema}");
        }
    }

    #[test]
    fn what_no_object_may_have_is_known() {
        for (schema, refused) in [
            (
                r#"{"properties": {"id": {}}, "additionalProperties": false}"#,
                &["name"][..],
            ),
            (
                r#"{"patternProperties": {"^n": {}}, "additionalProperties": false}"#,
                &["id"],
            ),
            (r#"{"properties": {"id": false}}"#, &["id"]),
            (r#"{"additionalProperties": {"type": "string"}}"#, &[]),
            (
                r#"{"required": ["id"], "additionalProperties": false}"#,
                &["id", "name"],
            ),
            (r#"{"properties": {"id": {}}}"#, &[]),
        ] {
            let compiled = Schema::compile(schema).unwrap();
            assert_eq!(
                compiled.refused_members(&["id", "name"]),
                refused,
                "{schema}"
            );
        }
    }
}
