//! Paths from the root of a document to its values.

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Document, Key, Kind, Value};

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step<'d> {
    Member(Cow<'d, str>),
    Item(usize),
}

/// Search for paths. It is fastest in the order of the document, because it goes on in a container
/// where it stopped before.
pub(crate) struct Paths<'d> {
    root: Value<'d>,
    /// Entry at which the search in a container goes on, and the number of items before it.
    reached: HashMap<u32, (u32, usize)>,
}

impl<'d> Paths<'d> {
    pub(crate) fn new(document: &'d Document<'_>) -> Self {
        Self {
            root: document.root(),
            reached: HashMap::new(),
        }
    }

    /// Returns the path of the value or key of that index. The path of a key is that of its value.
    pub(crate) fn of(&mut self, index: u32) -> Vec<Step<'d>> {
        let mut steps = Vec::new();
        let mut at = self.root;
        while at.index != index {
            let Some((step, inner)) = self.step(at, index) else {
                break;
            };
            steps.push(step);
            at = inner;
        }
        steps
    }

    fn step(&mut self, container: Value<'d>, index: u32) -> Option<(Step<'d>, Value<'d>)> {
        let end = container.entry().next;
        let start = (container.index + 1, 0);
        let reached = self
            .reached
            .get(&container.index)
            .copied()
            .filter(|(entry, _)| *entry <= index);
        let (mut entry, mut before) = reached.unwrap_or(start);
        while entry < end {
            let first = Value {
                index: entry,
                ..container
            };
            let value = match container.kind() {
                Kind::Object => Value {
                    index: entry + 1,
                    ..container
                },
                Kind::List => first,
                Kind::Null | Kind::Boolean | Kind::Number | Kind::String => return None,
            };
            let next = value.entry().next;
            if index < next {
                self.reached.insert(container.index, (entry, before));
                if container.kind() == Kind::List {
                    return Some((Step::Item(before), value));
                }
                let inner = if index == entry { first } else { value };
                return Some((Step::Member(Key(first).name()), inner));
            }
            entry = next;
            before += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_paths_of_values_and_keys() {
        let document = Document::read(r#"{"a":0,"b":[{},{"c.d":[7]}]}"#).unwrap();
        let inner = document.root().member("b").unwrap().items().nth(1).unwrap();
        let list = inner.member("c.d").unwrap();
        let mut paths = Paths::new(&document);
        let to_list = [
            Step::Member("b".into()),
            Step::Item(1),
            Step::Member("c.d".into()),
        ];
        assert_eq!(
            paths.of(list.index() + 1),
            [to_list.to_vec(), vec![Step::Item(0)]].concat()
        );
        assert_eq!(paths.of(list.index() - 1), to_list);
        assert_eq!(paths.of(list.index()), to_list);
        assert_eq!(paths.of(inner.index()), to_list[..2]);
        assert_eq!(paths.of(0), []);
        assert_eq!(paths.of(2), [Step::Member("a".into())]);
    }
}
