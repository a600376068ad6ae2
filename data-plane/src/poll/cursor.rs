//! Detects pagination that takes a first page for the last: a wrong `cursor_path` or `token_path`,
//! or a `page_size` above the size of the endpoint's pages. A last page looks alike, since APIs
//! leave the cursor out, or null, there. So a fault is reported only where the answer itself shows
//! that more pages follow.

use kanat_mapping::json;
use kanat_model::nearest::nearest_within;
use kanat_proto::plan::v1::{Pagination, Poll};
use url::Url;

use super::page;

/// Nesting of objects in which a misplaced cursor is looked for.
const MAX_SEARCH_DEPTH: usize = 8;

/// Edits that a misspelt name is away from the name in the answer.
const MAX_EDITS: usize = 2;

/// Parts of the names under which APIs give a cursor.
const CURSOR_WORDS: [&str; 6] = ["cursor", "token", "next", "after", "continu", "scroll"];

/// Names, in lower case and without separators, of a flag that says that more pages follow.
const MORE_FLAGS: [&str; 5] = ["hasmore", "hasnext", "hasnextpage", "moreresults", "more"];

/// Names, in the same form, of the size of a page and of the count of all records.
const SIZE_NAMES: [&str; 5] = ["limit", "perpage", "pagesize", "size", "maxresults"];
const TOTAL_NAMES: [&str; 6] = [
    "total",
    "totalcount",
    "totalresults",
    "totalrecords",
    "totalitems",
    "count",
];

/// First page of a cycle that has no cursor.
pub(super) struct FirstPage<'a> {
    /// The address that was asked.
    pub url: &'a Url,
    /// The answer.
    pub body: &'a str,
    /// Number of records in it.
    pub records: usize,
    /// True when a former cycle has found a cursor.
    pub has_former_cursor: bool,
}

impl FirstPage<'_> {
    /// Returns the fault of the poll's pagination; nothing where this may be the last page.
    pub fn fault(&self, poll: &Poll) -> Option<String> {
        let pagination = poll.pagination.as_ref()?;
        if pagination.strategy == "offset" {
            return self.short_page(pagination, &poll.records_path);
        }
        let (key, path) = key_and_path(pagination)?;
        match page::at(self.body, path).map(str::trim) {
            Some(found) => wrong_kind(found)
                .map(|kind| format!("{key} {path:?} has {kind} in the answer, and no cursor")),
            None if self.records == 0 => None,
            None => {
                let reason = self.reason_for_more(path, &poll.records_path)?;
                Some(format!(
                    "the answer has no value at {key} {path:?}, {reason}: no further page was \
                     asked for"
                ))
            }
        }
    }

    /// Returns the fault of a `page_size` that is larger than the pages of the endpoint.
    fn short_page(&self, pagination: &Pagination, records_path: &str) -> Option<String> {
        let size = pagination.page_size as usize;
        if !pagination.total_path.is_empty() || self.records == 0 || self.records >= size {
            return None;
        }
        let scalars = self.scalars(records_path);
        let (name, value) = scalars.iter().find(|(name, value)| {
            let name = bare(last_name(name));
            let number = value.parse::<usize>().ok();
            *value == "true" && MORE_FLAGS.contains(&name.as_str())
                || number == Some(self.records) && SIZE_NAMES.contains(&name.as_str())
                || number.is_some_and(|number| number > self.records)
                    && TOTAL_NAMES.contains(&name.as_str())
        })?;
        Some(format!(
            "the first page has {} records where page_size is {size}, and {name:?} is {value}: the \
             endpoint's pages may be smaller, and no further page was asked for",
            self.records
        ))
    }

    fn scalars(&self, records_path: &str) -> Vec<(String, &str)> {
        let mut scalars = Vec::new();
        collect_scalars(self.body.trim(), "", records_path, 0, &mut scalars);
        scalars
    }

    /// Returns why more pages should follow, as a clause.
    fn reason_for_more(&self, path: &str, records_path: &str) -> Option<String> {
        let scalars = self.scalars(records_path);
        let wanted = path.rsplit('.').next().unwrap_or(path);
        let cursors = scalars.iter().filter(|(name, value)| {
            let name = last_name(name);
            page::value(value, "").is_some()
                && (name == wanted || is_cursor_name(name) && is_near(name, wanted))
        });
        if let Some((near, _)) = cursors.min_by_key(|(name, _)| last_name(name) != wanted) {
            return Some(format!("and one at {near:?}"));
        }
        let flag = scalars.iter().find(|(name, value)| {
            *value == "true" && MORE_FLAGS.contains(&bare(last_name(name)).as_str())
        });
        if let Some((flag, _)) = flag {
            return Some(format!("and {flag:?} is true"));
        }
        if self.has_former_cursor {
            return None;
        }
        let size = self.records.to_string();
        let (name, _) = self
            .url
            .query_pairs()
            .find(|(_, value)| self.records > 1 && *value == size)?;
        Some(format!("and as many records as {name}={size} asks for"))
    }
}

fn key_and_path(pagination: &Pagination) -> Option<(&'static str, &str)> {
    match pagination.strategy.as_str() {
        "cursor" => Some(("cursor_path", &pagination.cursor_path)),
        "next_token" => Some(("token_path", &pagination.token_path)),
        _ => None,
    }
}

/// Returns the kind of a value that is neither a cursor nor the sign of a last page.
fn wrong_kind(value: &str) -> Option<&'static str> {
    let is_empty = |close: char| value[1..].trim_start().starts_with(close);
    match value.chars().next()? {
        '{' if !is_empty('}') => Some("an object"),
        '[' if !is_empty(']') => Some("a list"),
        't' => Some("true"),
        _ => None,
    }
}

/// Collects the paths and values of the members that are neither objects nor lists. The object at
/// `skipped` is left out.
fn collect_scalars<'b>(
    object: &'b str,
    path: &str,
    skipped: &str,
    depth: usize,
    scalars: &mut Vec<(String, &'b str)>,
) {
    if depth > MAX_SEARCH_DEPTH {
        return;
    }
    for (key, value) in json::occurrences(object) {
        let name = json::decode(key);
        let path = match path {
            "" => name.into_owned(),
            parent => format!("{parent}.{name}"),
        };
        match value.chars().next() {
            Some('{') if path != skipped => {
                collect_scalars(value, &path, skipped, depth + 1, scalars);
            }
            Some('{' | '[') | None => {}
            Some(_) => scalars.push((path, value)),
        }
    }
}

fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Returns the name in lower case, without separators.
fn bare(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

fn is_cursor_name(name: &str) -> bool {
    let name = bare(name);
    CURSOR_WORDS.iter().any(|word| name.contains(word))
}

fn is_near(name: &str, wanted: &str) -> bool {
    let name = bare(name);
    nearest_within(MAX_EDITS, &bare(wanted), [name.as_str()]).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(cursor_path: &str, query: &str, records: usize, body: &str) -> Option<String> {
        let poll = Poll {
            records_path: "data.items".to_owned(),
            pagination: Some(Pagination {
                strategy: "cursor".to_owned(),
                cursor_path: cursor_path.to_owned(),
                ..Pagination::default()
            }),
            ..Poll::default()
        };
        let url = Url::parse(&format!("http://shop.example/orders?{query}")).unwrap();
        FirstPage {
            url: &url,
            body,
            records,
            has_former_cursor: false,
        }
        .fault(&poll)
    }

    #[test]
    fn a_misspelt_path_is_reported_with_the_one_that_has_a_value() {
        let body = r#"{"data": {"items": [{"next": 1}]}, "meta": {"next_cursor": "x7"}}"#;
        for wrong in ["meta.next_cursr", "next_cursor", "meta.nextCursor"] {
            assert_eq!(
                fault(wrong, "", 1, body).unwrap(),
                format!(
                    "the answer has no value at cursor_path {wrong:?}, and one at \
                     \"meta.next_cursor\": no further page was asked for"
                )
            );
        }
    }

    #[test]
    fn a_page_that_announces_more_is_not_the_last() {
        let more = r#"{"data": {"items": [1, 2]}, "paging": {"has_more": true}}"#;
        let message = fault("paging.cursor", "", 2, more).unwrap();
        assert!(
            message.contains("and \"paging.has_more\" is true"),
            "{message}"
        );
        let full = r#"{"data": {"items": [1, 2]}}"#;
        let message = fault("paging.cursor", "status=open&limit=2", 2, full).unwrap();
        assert!(
            message.contains("as many records as limit=2 asks for"),
            "{message}"
        );
    }

    #[test]
    fn a_value_of_another_kind_is_reported() {
        let body = r#"{"data": {"items": []}, "next": {"cursor": "x7"}, "more": true, "all": [1]}"#;
        for (path, kind) in [("next", "an object"), ("more", "true"), ("all", "a list")] {
            assert_eq!(
                fault(path, "", 0, body).unwrap(),
                format!("cursor_path {path:?} has {kind} in the answer, and no cursor")
            );
        }
    }

    #[test]
    fn a_page_size_above_that_of_the_endpoint_is_reported() {
        let fault = |records: usize, body: &str| {
            let poll = Poll {
                records_path: "items".to_owned(),
                pagination: Some(Pagination {
                    strategy: "offset".to_owned(),
                    page_size: 500,
                    ..Pagination::default()
                }),
                ..Poll::default()
            };
            let url = Url::parse("http://shop.example/orders").unwrap();
            FirstPage {
                url: &url,
                body,
                records,
                has_former_cursor: false,
            }
            .fault(&poll)
        };
        assert_eq!(
            fault(100, r#"{"items": [], "limit": 100}"#).unwrap(),
            "the first page has 100 records where page_size is 500, and \"limit\" is 100: the \
             endpoint's pages may be smaller, and no further page was asked for"
        );
        assert!(fault(100, r#"{"items": [], "meta": {"hasMore": true}}"#).is_some());
        assert!(fault(100, r#"{"items": [], "total": 250}"#).is_some());
        assert_eq!(fault(500, r#"{"items": [], "limit": 500}"#), None);
        assert_eq!(fault(7, r#"{"items": [], "limit": 500, "total": 7}"#), None);
        assert_eq!(fault(0, r#"{"items": [], "total": 250}"#), None);
    }

    #[test]
    fn the_last_page_of_common_apis_is_no_fault() {
        for (path, query, records, body) in [
            ("next", "limit=2", 2, r#"{"next": null}"#),
            ("next", "limit=2", 2, r#"{"next": ""}"#),
            ("next", "limit=2", 2, r#"{"next": false, "total": 2}"#),
            ("next", "limit=2", 2, r#"{"next": {}}"#),
            ("next", "limit=2", 1, r#"{"page": 1, "per_page": 2}"#),
            ("next", "limit=2", 0, "[]"),
            (
                "paging.next.after",
                "limit=10",
                3,
                r#"{"data": {"items": []}}"#,
            ),
            (
                "next_cursor",
                "",
                3,
                r#"{"previous_cursor": "a", "has_more": false}"#,
            ),
            (
                "next_page",
                "",
                3,
                r#"{"per_page": 50, "prev_page": 1, "text": "x"}"#,
            ),
        ] {
            assert_eq!(fault(path, query, records, body), None, "{path} {body}");
        }
    }
}
