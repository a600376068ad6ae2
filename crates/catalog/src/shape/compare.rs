//! Differences between two shapes of one endpoint.

use std::collections::BTreeSet;

use super::{Shape, Type};

/// A difference, by its path in the answer: `tickets[*].priority`; empty for the answer itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Not there before.
    Added {
        /// Path of the member.
        path: String,
        /// Its types, with `|` between several.
        to: String,
    },
    /// Always there before, and never since.
    Removed {
        /// Path of the member.
        path: String,
        /// Its types, with `|` between several.
        from: String,
    },
    /// A member is of a type that it did not have before.
    TypeChanged {
        /// Path of the member.
        path: String,
        /// The types before.
        from: String,
        /// The types since.
        to: String,
    },
}

/// Maximum number of changes that are reported.
const MAX_CHANGES: usize = 500;

/// Returns the differences of `after` from `before`, in order of the paths. A member that was not
/// always there before may be missing since; a number may be a whole one.
pub fn compare(before: &Shape, after: &Shape) -> Vec<Change> {
    let mut changes = Vec::new();
    walk(before, after, "", &mut changes);
    changes.truncate(MAX_CHANGES);
    changes
}

fn walk(before: &Shape, after: &Shape, path: &str, changes: &mut Vec<Change>) {
    if changes.len() >= MAX_CHANGES || before.is_empty() || after.is_empty() {
        return;
    }
    let fits = |kind: &Type| {
        before.types.contains(kind)
            || *kind == Type::Integer && before.types.contains(&Type::Number)
    };
    if !after.types.iter().all(fits) {
        changes.push(Change::TypeChanged {
            path: path.to_owned(),
            from: types(before),
            to: types(after),
        });
    }
    if before.objects > 0 && after.objects > 0 {
        members(before, after, path, changes);
    }
    if let (Some(before), Some(after)) = (&before.items, &after.items) {
        walk(before, after, &format!("{path}[*]"), changes);
    }
}

fn members(before: &Shape, after: &Shape, path: &str, changes: &mut Vec<Change>) {
    match (&before.any_member, &after.any_member) {
        (Some(before), Some(after)) => return walk(before, after, &format!("{path}[*]"), changes),
        // Names that say nothing have nothing to be compared with.
        (Some(_), None) | (None, Some(_)) => return,
        (None, None) => {}
    }
    let names: BTreeSet<&String> = before.members.keys().chain(after.members.keys()).collect();
    for name in names {
        let path = member(path, name);
        match (before.members.get(name), after.members.get(name)) {
            (Some(before), Some(after)) => walk(before, after, &path, changes),
            (None, Some(after)) => changes.push(Change::Added {
                path,
                to: types(after),
            }),
            (Some(gone), None) if gone.seen >= before.objects => {
                changes.push(Change::Removed {
                    path,
                    from: types(gone),
                });
            }
            (Some(_), None) | (None, None) => {}
        }
    }
}

fn types(shape: &Shape) -> String {
    shape
        .shown_types()
        .map(Type::as_str)
        .collect::<Vec<_>>()
        .join("|")
}

/// As paths are written in flows.
fn member(path: &str, name: &str) -> String {
    let plain = !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    match (plain, path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, _) => format!("{path}[{name:?}]"),
    }
}
