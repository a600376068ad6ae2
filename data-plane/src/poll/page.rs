//! Pagination: the values of an answer and the position of the next page.

use http::HeaderMap;
use kanat_mapping::json;
use kanat_proto::plan::v1::Pagination;
use url::Url;

use super::link;
use super::state::Position;

/// Returns the records of a complete answer; the reference for the incremental search.
#[cfg(test)]
pub(super) fn records<'a>(body: &'a str, path: &str) -> Result<Vec<&'a str>, String> {
    let place = if path.is_empty() {
        "the answer".to_owned()
    } else {
        format!("records_path {path:?}")
    };
    match at(body, path).map(str::trim) {
        Some(list) if list.starts_with('[') => Ok(json::items(list).collect()),
        Some("null") => Ok(Vec::new()),
        Some(_) => Err(format!("{place} is no list of records")),
        None => Err(format!("{place} is not in the answer")),
    }
}

/// Returns the path of the value that leads to the next page; empty when the strategy needs none.
pub(super) fn value_path(pagination: Option<&Pagination>) -> &str {
    let Some(pagination) = pagination else {
        return "";
    };
    match pagination.strategy.as_str() {
        "cursor" => &pagination.cursor_path,
        "next_token" => &pagination.token_path,
        "offset" => &pagination.total_path,
        _ => "",
    }
}

/// Returns the position of the next page; `None` after the last one. `found` is the value at
/// [`value_path`].
pub(super) fn next(
    pagination: Option<&Pagination>,
    here: &Position,
    found: Option<String>,
    records: usize,
    headers: &HeaderMap,
    url: &Url,
) -> Result<Option<Position>, String> {
    let Some(pagination) = pagination else {
        return Ok(None);
    };
    match pagination.strategy.as_str() {
        "cursor" | "next_token" => Ok(found.map(Position::Value)),
        "offset" => offset(pagination, here, found, records),
        "page" => Ok(page(pagination, here, records)),
        "link_header" => Ok(link::next(headers, url)?.map(|url| Position::Url(url.into()))),
        unknown => Err(format!(
            "this build does not know the pagination {unknown:?}"
        )),
    }
}

/// Returns the next offset. With a total, pages continue until it is reached; without one, until a
/// page is not full. An empty page is the last.
fn offset(
    pagination: &Pagination,
    here: &Position,
    found: Option<String>,
    records: usize,
) -> Result<Option<Position>, String> {
    let size = u64::from(pagination.page_size);
    let next = offset_of(here).saturating_add(size);
    let more = if pagination.total_path.is_empty() {
        records as u64 >= size
    } else {
        let total: u64 = found
            .as_deref()
            .and_then(|total| total.parse().ok())
            .ok_or_else(|| {
                let found = found.as_deref().unwrap_or("nothing");
                format!(
                    "total_path {:?} has {found}, and no whole number",
                    pagination.total_path
                )
            })?;
        next < total
    };
    Ok((more && records > 0).then_some(Position::Offset(next)))
}

fn offset_of(here: &Position) -> u64 {
    match here {
        Position::Offset(offset) => *offset,
        Position::First | Position::Value(_) | Position::Page(_) | Position::Url(_) => 0,
    }
}

/// Returns the next page. The last one is empty, or shorter than the size that the flow names.
fn page(pagination: &Pagination, here: &Position, records: usize) -> Option<Position> {
    let here = match here {
        Position::Page(page) => *page,
        Position::First | Position::Value(_) | Position::Offset(_) | Position::Url(_) => {
            pagination.first_page.into()
        }
    };
    let is_full = records > 0 && records >= pagination.page_size as usize;
    is_full.then(|| Position::Page(here.saturating_add(1)))
}

/// Returns a warning about a page with fewer records than the offset grows by while the endpoint
/// counts more: the endpoint uses smaller pages than the flow, and records between two pages are
/// never requested.
pub(super) fn left_out(
    pagination: Option<&Pagination>,
    here: &Position,
    found: Option<&str>,
    records: usize,
) -> Option<String> {
    let pagination = pagination.filter(|pagination| pagination.strategy == "offset")?;
    let total: u64 = found?.parse().ok()?;
    let size = u64::from(pagination.page_size);
    let records = records as u64;
    let is_short = records > 0 && records < size && offset_of(here).saturating_add(records) < total;
    is_short.then(|| {
        format!(
            "a page has {records} records where page_size is {size} and the endpoint counts \
             {total}: those behind them are left out unless page_size is what the endpoint gives"
        )
    })
}

/// Returns the text or number at a path; `None` when it is missing, empty, null or false.
pub(super) fn value(body: &str, path: &str) -> Option<String> {
    let found = at(body, path)?.trim();
    let text = match found {
        quoted if quoted.starts_with('"') => json::decode(quoted).into_owned(),
        "null" | "false" | "true" => return None,
        tree if tree.starts_with(['{', '[']) => return None,
        number => number.to_owned(),
    };
    (!text.is_empty()).then_some(text)
}

/// Returns the value at a dotted path; the entire body for an empty path.
pub(super) fn at<'a>(body: &'a str, path: &str) -> Option<&'a str> {
    if path.is_empty() {
        return Some(body);
    }
    path.split('.').try_fold(body, |value, name| {
        if value.trim_start().starts_with('{') {
            json::member(value, name)
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = concat!(
        r#"{"data": {"items": [{"id": 1}, [2], "x"], "next": "a\"b", "total": 7, "none": null}, "#,
        r#""end": ""}"#
    );

    #[test]
    fn records_are_found_as_they_stand() {
        assert_eq!(
            records(BODY, "data.items").unwrap(),
            [r#"{"id": 1}"#, "[2]", "\"x\""]
        );
        assert_eq!(
            records("[ 1.10 , 9007199254740993 ]", "").unwrap(),
            ["1.10", "9007199254740993"]
        );
        assert_eq!(records(BODY, "data.none").unwrap(), Vec::<&str>::new());
        assert_eq!(records("[]", "").unwrap(), Vec::<&str>::new());
        assert_eq!(
            records(BODY, "data.total").unwrap_err(),
            "records_path \"data.total\" is no list of records"
        );
        assert_eq!(
            records(BODY, "data.itemz").unwrap_err(),
            "records_path \"data.itemz\" is not in the answer"
        );
        assert_eq!(
            records("{}", "").unwrap_err(),
            "the answer is no list of records"
        );
    }

    #[test]
    fn a_cursor_is_a_text_or_a_number_that_says_something() {
        assert_eq!(value(BODY, "data.next").as_deref(), Some("a\"b"));
        assert_eq!(value(BODY, "data.total").as_deref(), Some("7"));
        for path in [
            "data.none",
            "end",
            "data",
            "data.items",
            "nothing",
            "data.next.more",
        ] {
            assert_eq!(value(BODY, path), None, "{path}");
        }
    }

    fn offsets(total_path: &str, body: &str, here: Position, records: usize) -> Option<Position> {
        let pagination = Pagination {
            strategy: "offset".to_owned(),
            page_size: 100,
            total_path: total_path.to_owned(),
            ..Pagination::default()
        };
        let url = Url::parse("http://a.example/").unwrap();
        let found = value(body, value_path(Some(&pagination)));
        next(
            Some(&pagination),
            &here,
            found,
            records,
            &HeaderMap::new(),
            &url,
        )
        .unwrap()
    }

    #[test]
    fn a_page_shorter_than_the_offset_grows_by_is_reported_where_more_are_counted() {
        let pagination = |strategy: &str| Pagination {
            strategy: strategy.to_owned(),
            page_size: 100,
            total_path: "total".to_owned(),
            ..Pagination::default()
        };
        let told = |here: &Position, total: Option<&str>, records: usize| {
            left_out(Some(&pagination("offset")), here, total, records)
        };
        let message = told(&Position::First, Some("250"), 30).unwrap();
        assert!(
            message.starts_with("a page has 30 records where page_size is 100"),
            "{message}"
        );
        let message = told(&Position::First, Some("7"), 3).unwrap();
        assert!(
            message.contains("has 3 records") && message.contains("counts 7:"),
            "{message}"
        );
        assert!(told(&Position::Offset(200), Some("250"), 30).is_some());
        assert_eq!(told(&Position::Offset(200), Some("250"), 50), None);
        assert_eq!(told(&Position::First, Some("250"), 100), None);
        assert_eq!(told(&Position::First, Some("250"), 0), None);
        assert_eq!(told(&Position::First, None, 30), None);
        assert_eq!(
            left_out(
                Some(&pagination("cursor")),
                &Position::First,
                Some("250"),
                30
            ),
            None
        );
        assert_eq!(left_out(None, &Position::First, Some("250"), 30), None);
    }

    #[test]
    fn offsets_go_on_to_the_total_or_to_a_page_that_is_not_full() {
        assert_eq!(
            offsets("", "[]", Position::First, 100),
            Some(Position::Offset(100))
        );
        assert_eq!(offsets("", "[]", Position::Offset(100), 99), None);
        assert_eq!(
            offsets("total", r#"{"total": 201}"#, Position::Offset(100), 50),
            Some(Position::Offset(200))
        );
        assert_eq!(
            offsets("total", r#"{"total": "200"}"#, Position::Offset(100), 100),
            None
        );
        assert_eq!(
            offsets("total", r#"{"total": 1000}"#, Position::Offset(100), 0),
            None
        );
    }

    #[test]
    fn pages_go_on_to_one_that_is_empty_or_not_full() {
        let after = |page_size: u32, here: Position, records: usize| {
            let pagination = Pagination {
                strategy: "page".to_owned(),
                page_size,
                first_page: 1,
                ..Pagination::default()
            };
            let url = Url::parse("http://a.example/").unwrap();
            next(
                Some(&pagination),
                &here,
                None,
                records,
                &HeaderMap::new(),
                &url,
            )
            .unwrap()
        };
        assert_eq!(after(0, Position::First, 1), Some(Position::Page(2)));
        assert_eq!(after(0, Position::Page(7), 1), Some(Position::Page(8)));
        assert_eq!(after(0, Position::Page(7), 0), None);
        assert_eq!(after(100, Position::Page(1), 100), Some(Position::Page(2)));
        assert_eq!(after(100, Position::Page(1), 101), Some(Position::Page(2)));
        assert_eq!(after(100, Position::Page(1), 99), None);
        assert_eq!(after(100, Position::Page(1), 0), None);
    }

    proptest::proptest! {
        #[test]
        fn no_answer_makes_it_panic(
            body in r#"[\[\]{}:,"\\0-9a-c. truefalsn]{0,40}"#,
            path in r"[a-c]?(\.[a-c]){0,2}",
            strategy in "cursor|offset|next_token|link_header|page",
            records in 0..200usize,
        ) {
            // What is no JSON is refused before.
            if kanat_mapping::json::check(body.as_bytes(), kanat_mapping::json::MAX_DEPTH).is_ok() {
                for record in super::records(&body, &path).unwrap_or_default() {
                    value(record, &path);
                }
                let pagination = Pagination {
                    strategy,
                    page_size: 100,
                    cursor_path: path.clone(),
                    token_path: path.clone(),
                    total_path: path,
                    ..Pagination::default()
                };
                let url = Url::parse("http://a.example/").unwrap();
                let found = value(&body, value_path(Some(&pagination)));
                let last = Position::Offset(u64::MAX);
                let headers = HeaderMap::new();
                let _ = next(Some(&pagination), &last, found, records, &headers, &url);
            }
        }
    }
}
