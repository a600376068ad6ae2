//! Builds a mapping from a list of fields: splits names, finds conflicts, plans paths.

use std::collections::HashMap;

use super::{Conflict, Each, FieldValue, Mapping, Member, MemberValue, Object};
use crate::effort::NODE;
use crate::path::Visit;
use crate::plan::Plan;
use crate::template::Part;
use crate::{Expression, References, Root, json};

/// Greatest depth to which names and lists may nest.
const MAX_DEPTH: usize = 64;

pub(super) fn build(fields: Vec<(String, FieldValue)>) -> Result<Mapping, Vec<Conflict>> {
    let mut builder = Builder::default();
    let mut object = Object::default();
    for (name, value) in fields {
        builder.field(&mut object, name, value);
    }
    if !builder.conflicts.is_empty() {
        return Err(builder.conflicts);
    }
    let source = Plan::new(Root::Source, &mut |visit| object.paths(Reach::Whole, visit));
    let item = Plan::new(Root::Item, &mut |visit| {
        object.paths(Reach::SameItem, visit)
    });
    Ok(Mapping {
        object,
        references: builder.references,
        source,
        item,
        depth: builder.depth,
    })
}

#[derive(Default)]
struct Builder {
    /// Kind of every name and every beginning of a name so far.
    names: HashMap<String, Kind>,
    /// Index of the object of each beginning of a name among the members around it.
    indexes: HashMap<String, usize>,
    conflicts: Vec<Conflict>,
    references: References,
    depth: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Field,
    Object,
}

impl Builder {
    fn field(&mut self, object: &mut Object, name: String, value: FieldValue) {
        let inner_depth = match &value {
            FieldValue::Expression(expression) => {
                self.references.extend(expression.references());
                0
            }
            FieldValue::Template(template) => {
                self.references.extend(template.references());
                0
            }
            FieldValue::Each { list, filter, map } => {
                self.references.extend(list.references());
                if let Some(filter) = filter {
                    self.references.extend(filter.references());
                }
                self.references.extend(&map.references);
                map.depth + 1
            }
        };
        let depth = name.split('.').count() + inner_depth;
        self.depth = self.depth.max(depth);
        let conflict = if name.split('.').any(str::is_empty) {
            Some("a field needs a name, and so does each part between dots".to_owned())
        } else if depth > MAX_DEPTH {
            Some(format!("fields nest deeper than {MAX_DEPTH} levels"))
        } else {
            self.claim(&name)
        };
        match conflict {
            Some(message) => self.conflicts.push(Conflict {
                field: name,
                message,
            }),
            None => self.place(object, &name, value),
        }
    }

    /// Claims a name and all that it begins with. Returns the message of a conflict.
    fn claim(&mut self, name: &str) -> Option<String> {
        for (dot, _) in name.match_indices('.') {
            let outer = &name[..dot];
            if *self.names.entry(outer.to_owned()).or_insert(Kind::Object) == Kind::Field {
                return Some(format!(
                    "the field {name:?} cannot be inside {outer:?}, which is a field itself"
                ));
            }
        }
        match self.names.insert(name.to_owned(), Kind::Field) {
            None => None,
            Some(Kind::Field) => Some(format!("the field {name:?} is there twice")),
            Some(Kind::Object) => {
                Some(format!("the field {name:?} cannot also have fields inside"))
            }
        }
    }

    /// Puts a field whose name is claimed into the objects that the name leads through.
    fn place(&mut self, mut object: &mut Object, name: &str, value: FieldValue) {
        let mut start = 0;
        for (dot, _) in name.match_indices('.') {
            let index = *self
                .indexes
                .entry(name[..dot].to_owned())
                .or_insert_with(|| {
                    let inner = MemberValue::Object(Object::default());
                    object.push(Member::new(&name[start..dot], inner));
                    object.members.len() - 1
                });
            let MemberValue::Object(inner) = &mut object.members[index].value else {
                return;
            };
            object = inner;
            start = dot + 1;
        }
        let value = match value {
            FieldValue::Expression(expression) => {
                MemberValue::Expression(expression.into_compiled())
            }
            FieldValue::Template(template) => MemberValue::Template(template.into_parts()),
            FieldValue::Each { list, filter, map } => MemberValue::Each(Box::new(Each {
                list: list.into_compiled(),
                filter: filter.map(Expression::into_compiled),
                map: *map,
            })),
        };
        object.push(Member::new(&name[start..], value));
    }
}

impl Object {
    fn push(&mut self, member: Member) {
        self.effort += NODE + member.key.len() as u64;
        self.members.push(member);
    }

    /// Visits the paths of its expressions.
    fn paths(&mut self, reach: Reach, visit: &mut Visit) {
        for member in &mut self.members {
            match &mut member.value {
                MemberValue::Object(object) => object.paths(reach, visit),
                MemberValue::Expression(expression) => expression.node.paths(visit),
                MemberValue::Template(template) => {
                    for part in &mut template.parts {
                        match part {
                            Part::Literal(_) => {}
                            Part::Expression(expression) => expression.node.paths(visit),
                        }
                    }
                }
                MemberValue::Each(each) => {
                    each.list.node.paths(visit);
                    match reach {
                        Reach::Whole => {
                            if let Some(filter) = &mut each.filter {
                                filter.node.paths(visit);
                            }
                            each.map.object.paths(reach, visit);
                        }
                        Reach::SameItem => {}
                    }
                }
            }
        }
    }
}

/// Range of expressions that a visit covers.
#[derive(Clone, Copy)]
enum Reach {
    Whole,
    /// Expressions for which `item` is the same, which excludes those of inner mappings.
    SameItem,
}

impl Member {
    fn new(name: &str, value: MemberValue) -> Self {
        let mut key = Vec::with_capacity(name.len() + 3);
        json::write_string(name, &mut key);
        key.push(b':');
        Self {
            name: name.to_owned(),
            key,
            value,
        }
    }
}
