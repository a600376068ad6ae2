//! Detects a poll that takes a first page for the last: one with a wrong `cursor_path` or
//! `token_path`, with a `page_size` above the size of the endpoint's pages, with another strategy
//! than the endpoint's, or without pagination. A last page looks alike, since APIs leave the cursor
//! out, or null, there. So a fault is reported only where the answer itself shows that more pages
//! follow.

use http::HeaderMap;
use kanat_mapping::json;
use kanat_model::nearest::nearest_within;
use kanat_proto::plan::v1::{Pagination, Poll};
use url::Url;

use super::{link, page};

/// Nesting of objects in which a misplaced cursor is looked for.
const MAX_SEARCH_DEPTH: usize = 8;

/// Edits that a misspelt name is away from the name in the answer.
const MAX_EDITS: usize = 2;

/// Parts of the names under which APIs give a cursor.
const CURSOR_WORDS: [&str; 6] = ["cursor", "token", "next", "after", "continu", "scroll"];

/// Names, in lower case and without separators, of a value that leads to the next page.
const NEXT_NAMES: [&str; 12] = [
    "next",
    "nextpage",
    "nextcursor",
    "nexttoken",
    "nextpagetoken",
    "nextpagecursor",
    "nexturl",
    "nextpageurl",
    "nextlink",
    "odatanextlink",
    "nextoffset",
    "nexthref",
];

/// Names, in the same form, of such a value within an object `next`.
const NEXT_MEMBERS: [&str; 5] = ["href", "url", "after", "cursor", "token"];

/// Names, in the same form, of a flag that says that more pages follow.
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

/// Names, in the same form, of the number of pages and of that of the page.
const PAGE_COUNT_NAMES: [&str; 6] = [
    "totalpages",
    "lastpage",
    "pages",
    "pagecount",
    "numpages",
    "numberofpages",
];
const PAGE_NAMES: [&str; 4] = ["page", "currentpage", "pagenumber", "pageindex"];

/// First page of a cycle, after which no page is asked for.
pub(super) struct FirstPage<'a> {
    /// The address that was asked.
    pub url: &'a Url,
    /// Headers of the answer.
    pub headers: &'a HeaderMap,
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
        let Some(pagination) = &poll.pagination else {
            let scalars = self.scalars(&poll.records_path);
            let reason = self
                .named_next(&scalars)
                .or_else(|| self.larger_total(&scalars))?;
            return self.stopped("source.poll has no pagination", &reason);
        };
        match pagination.strategy.as_str() {
            "offset" | "page" => return self.short_page(pagination, &poll.records_path),
            "link_header" => {
                let scalars = self.scalars(&poll.records_path);
                let reason = self.named_next(&scalars).or_else(|| self.full_page())?;
                return self.stopped("the answer has no Link header with rel=\"next\"", &reason);
            }
            _ => {}
        }
        let (key, path) = key_and_path(pagination)?;
        match page::at(self.body, path).map(str::trim) {
            Some(found) => wrong_kind(found)
                .map(|kind| format!("{key} {path:?} has {kind} in the answer, and no cursor")),
            None => {
                let reason = self.reason_for_more(path, &poll.records_path)?;
                self.stopped(
                    &format!("the answer has no value at {key} {path:?}"),
                    &reason,
                )
            }
        }
    }

    /// Returns the fault of a page with records that was taken for the last one.
    fn stopped(&self, state: &str, reason: &str) -> Option<String> {
        let fault = || format!("{state}, {reason}: no further page was asked for");
        (self.records > 0).then(fault)
    }

    /// Returns where the answer names a next page, as a clause.
    fn named_next(&self, scalars: &[(String, &str)]) -> Option<String> {
        let next = scalars.iter().find(|(path, value)| {
            names_next(path) && page::value(value, "").is_some_and(|value| value != "0")
        });
        if let Some((next, _)) = next {
            return Some(format!("and a next page at {next:?}"));
        }
        if let Ok(Some(_)) = link::next(self.headers, self.url) {
            return Some("and a Link header with rel=\"next\"".to_owned());
        }
        let flag = scalars.iter().find(|(name, value)| {
            *value == "true" && MORE_FLAGS.contains(&bare(last_name(name)).as_str())
        });
        if let Some((flag, _)) = flag {
            return Some(format!("and {flag:?} is true"));
        }
        let number_at = |names: &[&str]| {
            let mut found = scalars.iter().filter_map(|(name, value)| {
                let is_one = names.contains(&bare(last_name(name)).as_str());
                let number = value.parse::<u64>().ok().filter(|_| is_one)?;
                Some((name, number))
            });
            found.next()
        };
        let (name, pages) = number_at(&PAGE_COUNT_NAMES)?;
        let page = number_at(&PAGE_NAMES).map_or(1, |(_, page)| page);
        (page < pages).then(|| format!("and {name:?} is {pages}"))
    }

    /// Returns the count of all records where it is larger than their number here, as a clause.
    /// Nothing where the answer says that no page follows, or the request asks for so many records:
    /// then the first of them are what is wanted.
    fn larger_total(&self, scalars: &[(String, &str)]) -> Option<String> {
        let says_last = |(path, _): &(String, &str)| {
            names_next(path) || MORE_FLAGS.contains(&bare(last_name(path)).as_str())
        };
        if scalars.iter().any(says_last) || self.full_page().is_some() {
            return None;
        }
        let (name, value) = scalars.iter().find(|(name, value)| {
            let name = bare(last_name(name));
            name != "count"
                && TOTAL_NAMES.contains(&name.as_str())
                && value
                    .parse::<usize>()
                    .is_ok_and(|total| total > self.records)
        })?;
        let records = self.records;
        Some(format!(
            "and {name:?} is {value} where the answer has {records} records"
        ))
    }

    /// Returns the parameter that asks for as many records as there are, as a clause.
    fn full_page(&self) -> Option<String> {
        let size = self.records.to_string();
        let (name, _) = self
            .url
            .query_pairs()
            .find(|(_, value)| self.records > 1 && *value == size)?;
        Some(format!("and as many records as {name}={size} asks for"))
    }

    /// Returns the fault of offsets that end at the first page: `page_size` is larger than the
    /// pages of the endpoint, or the endpoint has another kind of pages.
    fn short_page(&self, pagination: &Pagination, records_path: &str) -> Option<String> {
        let size = pagination.page_size as usize;
        let records = self.records;
        let state = format!("the first page has {records} records where page_size is {size}");
        let scalars = self.scalars(records_path);
        if let Some(reason) = self.named_next(&scalars) {
            return self.stopped(&state, &reason);
        }
        if !pagination.total_path.is_empty() || records == 0 || records >= size {
            return None;
        }
        let (name, value) = scalars.iter().find(|(name, value)| {
            let name = bare(last_name(name));
            let number = value.parse::<usize>().ok();
            number == Some(records) && SIZE_NAMES.contains(&name.as_str())
                || number.is_some_and(|number| number > records)
                    && TOTAL_NAMES.contains(&name.as_str())
        })?;
        Some(format!(
            "{state}, and {name:?} is {value}: the endpoint's pages may be smaller, and no further \
             page was asked for"
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
        let full_page = || self.full_page().filter(|_| !self.has_former_cursor);
        self.named_next(&scalars).or_else(full_page)
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

/// Returns whether the value at this path leads to the next page, by its name.
fn names_next(path: &str) -> bool {
    let mut names = path.rsplit('.').map(bare);
    let last = names.next().unwrap_or_default();
    NEXT_NAMES.contains(&last.as_str())
        || NEXT_MEMBERS.contains(&last.as_str()) && names.next().is_some_and(|name| name == "next")
}

/// Returns the paths of the lists of an answer, outermost first; empty for the answer itself.
pub(super) fn list_paths(body: &str) -> Vec<String> {
    if body.trim_start().starts_with('[') {
        return vec![String::new()];
    }
    let mut lists = Vec::new();
    let mut objects = vec![(String::new(), body.trim())];
    for _ in 0..MAX_SEARCH_DEPTH {
        for (path, object) in std::mem::take(&mut objects) {
            for (key, value) in json::occurrences(object) {
                let name = json::decode(key);
                let path = match path.as_str() {
                    "" => name.into_owned(),
                    parent => format!("{parent}.{name}"),
                };
                match value.chars().next() {
                    Some('{') => objects.push((path, value)),
                    Some('[') => lists.push(path),
                    Some(_) | None => {}
                }
            }
        }
    }
    lists
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
        first_page_fault(&poll, query, records, body)
    }

    fn first_page_fault(poll: &Poll, query: &str, records: usize, body: &str) -> Option<String> {
        let url = Url::parse(&format!("http://shop.example/orders?{query}")).unwrap();
        FirstPage {
            url: &url,
            headers: &HeaderMap::new(),
            body,
            records,
            has_former_cursor: false,
        }
        .fault(poll)
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
    fn a_number_of_pages_above_that_of_the_page_announces_more() {
        let by_page = Poll {
            pagination: Some(Pagination {
                strategy: "page".to_owned(),
                page_size: 10,
                ..Pagination::default()
            }),
            ..Poll::default()
        };
        let without = Poll::default();
        for (body, reason) in [
            (r#"{"total_pages": 3}"#, "and \"total_pages\" is 3"),
            (
                r#"{"last_page": 3, "current_page": 1}"#,
                "and \"last_page\" is 3",
            ),
            (
                r#"{"meta": {"pages": 3, "page": 1}}"#,
                "and \"meta.pages\" is 3",
            ),
        ] {
            for poll in [&by_page, &without] {
                let message = first_page_fault(poll, "", 5, body).unwrap();
                assert!(message.contains(reason), "{body}: {message}");
            }
        }
        for last in [
            r#"{"total_pages": 1}"#,
            r#"{"last_page": 3, "current_page": 3}"#,
        ] {
            for poll in [&by_page, &without] {
                assert_eq!(first_page_fault(poll, "", 5, last), None, "{last}");
            }
        }
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
            first_page_fault(&poll, "", records, body)
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

    /// Returns the fault of 10 records by a strategy, or without pagination.
    fn fault_of(strategy: &str, link: &'static str, body: &str) -> Option<String> {
        let pagination = Pagination {
            strategy: strategy.to_owned(),
            page_size: 50,
            cursor_path: "paging.after".to_owned(),
            ..Pagination::default()
        };
        let poll = Poll {
            records_path: "items".to_owned(),
            pagination: Some(pagination).filter(|_| !strategy.is_empty()),
            ..Poll::default()
        };
        let mut headers = HeaderMap::new();
        if !link.is_empty() {
            headers.insert(http::header::LINK, http::HeaderValue::from_static(link));
        }
        FirstPage {
            url: &Url::parse("http://shop.example/orders?limit=10").unwrap(),
            headers: &headers,
            body,
            records: 10,
            has_former_cursor: false,
        }
        .fault(&poll)
    }

    #[test]
    fn an_answer_that_names_a_next_page_is_not_the_last_by_any_strategy() {
        let named = r#"{"items": [], "meta": {"next": "10"}}"#;
        assert_eq!(
            fault_of("", "", named).unwrap(),
            "source.poll has no pagination, and a next page at \"meta.next\": no further page was \
             asked for"
        );
        assert_eq!(
            fault_of("offset", "", named).unwrap(),
            "the first page has 10 records where page_size is 50, and a next page at \
             \"meta.next\": no further page was asked for"
        );
        assert_eq!(
            fault_of("link_header", "", named).unwrap(),
            "the answer has no Link header with rel=\"next\", and a next page at \"meta.next\": no \
             further page was asked for"
        );
        let link = "</orders?page=2>; rel=\"next\"";
        for strategy in ["", "offset", "cursor"] {
            let fault = fault_of(strategy, link, r#"{"items": []}"#).unwrap();
            assert!(fault.contains("a Link header with rel=\"next\""), "{fault}");
        }
        for body in [
            r#"{"items": [], "@odata.nextLink": "http://shop.example/?skip=10"}"#,
            r#"{"items": [], "links": {"next": {"href": "/orders?page=2"}}}"#,
            r#"{"items": [], "paging": {"has_more": true}}"#,
        ] {
            assert!(fault_of("", "", body).is_some(), "{body}");
        }
    }

    #[test]
    fn an_answer_that_counts_more_records_than_it_has_is_no_whole_list() {
        let poll = Poll {
            records_path: "items".to_owned(),
            ..Poll::default()
        };
        let fault = |query: &str, body: &str| first_page_fault(&poll, query, 10, body);
        assert_eq!(
            fault("", r#"{"total": 23, "items": []}"#).unwrap(),
            "source.poll has no pagination, and \"total\" is 23 where the answer has 10 records: \
             no further page was asked for"
        );
        assert!(fault("limit=50", r#"{"meta": {"total_count": 23}, "items": []}"#).is_some());
        for (query, body) in [
            ("", r#"{"total": 10, "items": []}"#),
            ("", r#"{"total": 23.5, "items": []}"#),
            ("", r#"{"total": "23", "items": []}"#),
            ("", r#"{"count": 23, "items": []}"#),
            ("", r#"{"total": 23, "next": null, "items": []}"#),
            ("", r#"{"total": 23, "has_more": false, "items": []}"#),
            ("limit=10", r#"{"total": 23, "items": []}"#),
        ] {
            assert_eq!(fault(query, body), None, "{query} {body}");
        }
    }

    #[test]
    fn a_single_page_is_no_fault_by_any_strategy() {
        for body in [
            r#"{"items": [], "next": null, "total": 25}"#,
            r#"{"items": [{"next": "x"}], "meta": {"next": "", "next_run": "12:00"}}"#,
            r#"{"items": [], "has_more": false, "next_offset": 0}"#,
        ] {
            assert_eq!(fault_of("", "", body), None, "{body}");
        }
    }
}
