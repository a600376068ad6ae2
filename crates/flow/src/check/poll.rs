//! `source.poll`: what is asked, how often, and how its pages follow each other.

use std::time::Duration;

use kanat_mapping::{Root, Template};

use super::Checker;
use super::cursor::{Cursor, Members, optional};
use super::expression::{Place, Secrets};
use super::target;
use crate::definition::{Pagination, Poll, PollTiming, Schedule, Strategy};
use crate::duration::quoted;
use crate::fields::InstanceOf;
use crate::language;

/// Keys of a strategy beside `strategy` and `max_pages`.
struct StrategyKeys {
    strategy: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
}

const STRATEGIES: &[StrategyKeys] = &[
    StrategyKeys {
        strategy: "cursor",
        required: &["cursor_path", "cursor_param"],
        optional: &[],
    },
    StrategyKeys {
        strategy: "offset",
        required: &["offset_param", "page_size"],
        optional: &["total_path"],
    },
    StrategyKeys {
        strategy: "link_header",
        required: &[],
        optional: &[],
    },
    StrategyKeys {
        strategy: "next_token",
        required: &["token_path", "token_param"],
        optional: &[],
    },
    StrategyKeys {
        strategy: "page",
        required: &["page_param"],
        optional: &["first_page", "page_size_param", "page_size"],
    },
];

/// Path of the map of the pagination.
const PAGINATION: &str = "source.poll.pagination";

/// The largest number of a first page.
const MAX_FIRST_PAGE: u32 = 1_000_000_000;

/// Names under which endpoints take the size of a page.
const SIZE_PARAMS: &[&str] = &[
    "limit",
    "per_page",
    "perPage",
    "page_size",
    "pageSize",
    "size",
    "count",
    "top",
    "$top",
    "rows",
    "maxResults",
];

const DEFAULT_INTERVAL: Duration = Duration::from_secs(300);

pub(super) fn poll(
    checker: &mut Checker,
    cursor: &Cursor,
    instance: Option<InstanceOf>,
) -> Option<Poll> {
    let place = Place {
        instance,
        state: true,
        calls: false,
        ..Place::new("source.poll")
    };
    let members = checker.members(cursor, "source.poll")?;
    let url = checker
        .required(&members, "url")
        .and_then(|cursor| url(checker, &cursor, place));
    let method = match members.get("method") {
        Some(cursor) => target::method(checker, &cursor),
        None => Some("GET".to_owned()),
    };
    let sent = Place {
        secrets: Secrets::Whole,
        ..place
    };
    let headers = optional(members.get("headers"), |cursor| {
        target::headers(checker, cursor, sent)
    });
    let params = optional(members.get("params"), |cursor| {
        params(checker, cursor, sent)
    });
    let records_path = optional(members.get("records_path"), |cursor| path(checker, cursor));
    let pagination = optional(members.get("pagination"), |cursor| {
        pagination(checker, cursor)
    });
    if let (Some(Some(pagination)), Some(Some(params))) = (&pagination, &params) {
        compare_page_size(checker, &members, pagination, params);
    }
    if let (Some(Some(pagination)), Some(url), Some(headers), Some(params)) =
        (&pagination, &url, &headers, &params)
    {
        let sent = headers.iter().flatten().chain(params.iter().flatten());
        let templates = sent.map(|(_, value)| value).chain([url]);
        warn_of_unread_pages(checker, &members, pagination, templates);
    }
    let record_id = optional(members.get("record_id"), |cursor| path(checker, cursor));
    let interval = match members.get("interval") {
        Some(cursor) => checker.duration(&cursor, Duration::from_secs(1), crate::duration::MAX),
        None => Some(DEFAULT_INTERVAL),
    };
    Some(Poll {
        url: url?,
        method: method?,
        headers: headers?.unwrap_or_default(),
        params: params?.unwrap_or_default(),
        records_path: records_path?.unwrap_or_default(),
        pagination: pagination?,
        record_id: record_id?.unwrap_or_default(),
        timing: PollTiming::Interval(interval?),
    })
}

/// Warns of a bound on the pages of a cycle where each cycle begins at the first page.
fn warn_of_unread_pages<'t>(
    checker: &mut Checker,
    members: &Members,
    pagination: &Pagination,
    mut sent: impl Iterator<Item = &'t Template>,
) {
    let reads_state = sent.any(|sent| sent.references().roots.contains(&Root::State));
    let Some(max_pages) = pagination.max_pages.filter(|_| !reads_state) else {
        return;
    };
    let (at, path) = members.key("pagination");
    let message = format!(
        "found max_pages {max_pages} in a poll that does not read `state`: each cycle begins at \
         the first page, so records on later pages are not read"
    );
    checker.warn(at, &path, &message);
}

/// Warns where a parameter asks for pages of another size than `page_size`, which is not sent.
fn compare_page_size(
    checker: &mut Checker,
    members: &Members,
    pagination: &Pagination,
    params: &[(String, Template)],
) {
    let page_size = match &pagination.strategy {
        Strategy::Offset { page_size, .. } => page_size,
        Strategy::Page {
            size: Some(size),
            size_param: None,
            ..
        } => size,
        Strategy::Page { .. }
        | Strategy::Cursor { .. }
        | Strategy::LinkHeader
        | Strategy::NextToken { .. } => return,
    };
    let asked = params
        .iter()
        .filter(|(name, _)| SIZE_PARAMS.contains(&name.as_str()))
        .find_map(|(name, size)| Some((name, size.is_literal()?.parse::<u32>().ok()?)));
    if let Some((name, asked)) = asked.filter(|(_, asked)| asked != page_size) {
        let (at, path) = members.key("pagination");
        let message = format!(
            "found page_size {page_size}, and the parameter {name} asks for {asked}: they have to \
             be the same number, for page_size is not sent"
        );
        checker.warn(at, &path, &message);
    }
}

/// The poll, at the times of `source.schedule` where there is one.
pub(super) fn timed(
    checker: &mut Checker,
    source: &Members,
    poll: Poll,
    schedule: Option<Schedule>,
) -> Poll {
    let Some(schedule) = schedule else {
        return poll;
    };
    let members = source
        .get("poll")
        .and_then(|cursor| checker.any_members(&cursor, "a map"));
    if let Some(members) = members.filter(|members| members.has("interval")) {
        let (at, path) = members.key("interval");
        checker.report(
            at,
            &path,
            "found \"interval\" beside source.schedule, expected only one of them",
        );
    }
    Poll {
        timing: PollTiming::Schedule(schedule),
        ..poll
    }
}

fn url(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<Template> {
    const EXPECTED: &str = "an absolute URL that begins with http:// or https://";
    let template = checker.url_template(cursor, &format!("a text, {EXPECTED}"), place)?;
    let fits = match template.is_literal() {
        Some(text) => {
            url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
        }
        None => ["http://", "https://", "{{"]
            .iter()
            .any(|start| template.text().trim_start().starts_with(start)),
    };
    if !fits {
        checker.type_error(cursor, EXPECTED);
    }
    Some(template)
}

fn params(checker: &mut Checker, cursor: &Cursor, place: Place) -> Option<Vec<(String, Template)>> {
    let members = checker.any_members(cursor, "a map of query parameters")?;
    let params: Vec<_> = members
        .iter()
        .map(|(member, cursor)| {
            let template = target::any_text(checker, &cursor, place)?;
            Some((member.name.clone(), template))
        })
        .collect();
    params.into_iter().collect()
}

/// Names with dots between them.
fn path(checker: &mut Checker, cursor: &Cursor) -> Option<String> {
    checker.read(cursor, "a text, a dotted path such as data.items", |text| {
        let good = text.split('.').all(|name| {
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@'))
        });
        if good {
            Ok(text.to_owned())
        } else {
            Err(format!(
                "found {}, expected a dotted path such as data.items",
                quoted(text)
            ))
        }
    })
}

fn pagination(checker: &mut Checker, cursor: &Cursor) -> Option<Pagination> {
    let members = checker.members(cursor, PAGINATION)?;
    let names: Vec<&str> = STRATEGIES.iter().map(|keys| keys.strategy).collect();
    let strategy = checker
        .required(&members, "strategy")
        .and_then(|cursor| checker.one_of(&cursor, &names));
    let max_pages = optional(members.get("max_pages"), |cursor| {
        checker.whole(cursor, 1, 1_000_000)
    });
    let mut at = |name: &str| optional(members.get(name), |cursor| path(checker, cursor));
    let cursor_path = at("cursor_path");
    let total_path = at("total_path");
    let token_path = at("token_path");
    let mut param = |name: &str| {
        optional(members.get(name), |cursor| {
            checker
                .text(cursor, "a text, the name of a parameter")
                .map(str::to_owned)
        })
    };
    let cursor_param = param("cursor_param");
    let offset_param = param("offset_param");
    let token_param = param("token_param");
    let page_param = param("page_param");
    let page_size_param = param("page_size_param");
    let most = match strategy {
        Some("page") => 10_000,
        Some(_) | None => 1_000_000,
    };
    let page_size = optional(members.get("page_size"), |cursor| {
        checker.whole(cursor, 1, most)
    });
    let first_page = optional(members.get("first_page"), |cursor| {
        checker.whole(cursor, 0, MAX_FIRST_PAGE)
    });
    let strategy = strategy?;
    fit(checker, &members, strategy);
    let strategy = match strategy {
        "cursor" => Strategy::Cursor {
            path: cursor_path??,
            param: cursor_param??,
        },
        "offset" => Strategy::Offset {
            param: offset_param??,
            page_size: page_size??,
            total_path: total_path?.unwrap_or_default(),
        },
        "next_token" => Strategy::NextToken {
            path: token_path??,
            param: token_param??,
        },
        "page" => Strategy::Page {
            param: page_param??,
            first: first_page?.unwrap_or(1),
            size_param: page_size_param?,
            size: page_size?,
        },
        _ => Strategy::LinkHeader,
    };
    Some(Pagination {
        strategy,
        max_pages: max_pages?,
    })
}

/// Checks that the keys are those of the strategy.
fn fit(checker: &mut Checker, members: &Members, strategy: &str) {
    let Some(keys) = STRATEGIES.iter().find(|keys| keys.strategy == strategy) else {
        return;
    };
    let of_all = ["strategy", "max_pages"];
    for key in language::names(PAGINATION).filter(|key| {
        let of_strategy = [&of_all[..], keys.required, keys.optional].concat();
        !of_strategy.contains(key) && members.has(key)
    }) {
        let (at, path) = members.key(key);
        checker.report(
            at,
            &path,
            format!("found {key:?} with the strategy {strategy}, which does not have it"),
        );
    }
    for key in keys.required {
        checker.required(members, key);
    }
    if strategy == "page" && members.has("page_size_param") {
        checker.required(members, "page_size");
    }
}
