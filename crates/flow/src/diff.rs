//! Differences between two definitions, path by path.

use kanat_mapping::json;

use crate::definition::{Definition, config_json};
use crate::yaml::member_path;

/// A path whose value differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path, such as `mapping.total`. An item of a list whose items have names is named by its
    /// name, any other by its index: `steps.open.params`, `source.verify.secret[0]`.
    pub path: String,
    /// JSON; `None` when the path is new.
    pub before: Option<String>,
    /// JSON; `None` when the path is gone.
    pub after: Option<String>,
}

/// Returns the changes that lead from one definition to another, in the order of the first one's
/// keys.
pub fn between(before: &Definition, after: &Definition) -> Vec<Change> {
    let mut changes = Vec::new();
    compare("", &config_json(before), &config_json(after), &mut changes);
    changes
}

/// As deep as definitions nest, which their reader bounds.
fn compare(path: &str, before: &str, after: &str, changes: &mut Vec<Change>) {
    if before == after {
        return;
    }
    match (parts(path, before), parts(path, after)) {
        (Some(before), Some(after)) => {
            for (path, value) in &before {
                match after.iter().find(|(other, _)| other == path) {
                    Some((_, other)) => compare(path, value, other, changes),
                    None => changes.push(Change {
                        path: path.clone(),
                        before: Some(value.clone()),
                        after: None,
                    }),
                }
            }
            for (path, value) in after
                .into_iter()
                .filter(|(path, _)| !before.iter().any(|(other, _)| other == path))
            {
                changes.push(Change {
                    path,
                    before: None,
                    after: Some(value),
                });
            }
        }
        (Some(_), None) | (None, Some(_)) | (None, None) => {
            let before = Some(before.to_owned());
            let after = Some(after.to_owned());
            changes.push(Change {
                path: path.to_owned(),
                before,
                after,
            });
        }
    }
}

/// The paths and values in an object or a list; `None` of anything else.
fn parts(path: &str, value: &str) -> Option<Vec<(String, String)>> {
    if value.starts_with('{') {
        let members = json::members(value).into_iter();
        return Some(
            members
                .map(|(name, value)| (member_path(path, &json::decode(name)), value.to_owned()))
                .collect(),
        );
    }
    let items: Vec<&str> = if value.starts_with('[') {
        json::items(value).collect()
    } else {
        return None;
    };
    let names: Vec<_> = items
        .iter()
        .filter_map(|item| json::member(item, "name").map(json::decode))
        .collect();
    let is_named =
        names.len() == items.len() && (1..names.len()).all(|at| !names[..at].contains(&names[at]));
    let place = |(at, item): (usize, &&str)| {
        let path = if is_named {
            member_path(path, &names[at])
        } else {
            format!("{path}[{at}]")
        };
        (path, (*item).to_owned())
    };
    Some(items.iter().enumerate().map(place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(before: &str, after: &str) -> Vec<(String, Option<String>, Option<String>)> {
        let mut changes = Vec::new();
        compare("", before, after, &mut changes);
        changes
            .into_iter()
            .map(|change| (change.path, change.before, change.after))
            .collect()
    }

    #[test]
    fn names_the_paths_that_differ() {
        let some = |text: &str| Some(text.to_owned());
        let found = changes(
            r#"{"a":1.10,"b":{"x":"1","y":[1,2]},"steps":[{"name":"one","p":1},{"name":"two"}]}"#,
            concat!(
                r#"{"b":{"y":[1,3],"z":null,"x":"1"},"a":1.10,"#,
                r#""steps":[{"name":"zero"},{"name":"one","p":2}]}"#
            ),
        );
        assert_eq!(
            found,
            [
                ("b.y[1]".to_owned(), some("2"), some("3")),
                ("b.z".to_owned(), None, some("null")),
                ("steps.one.p".to_owned(), some("1"), some("2")),
                ("steps.two".to_owned(), some(r#"{"name":"two"}"#), None),
                ("steps.zero".to_owned(), None, some(r#"{"name":"zero"}"#)),
            ]
        );
        assert_eq!(changes(r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#), []);
        assert_eq!(
            changes(r#"{"a":1}"#, r#"{"a":[]}"#),
            [("a".to_owned(), some("1"), some("[]"))]
        );
    }
}
