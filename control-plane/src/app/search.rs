//! The search over all resources of an environment that have names: which of them have the words of
//! a query, the best ones first, and an excerpt of each that shows why.

mod excerpt;

use std::collections::HashMap;

use kanat_model::Error;
use kanat_model::id::EnvironmentId;
use kanat_model::page::{ListPage, Page};
use kanat_model::search::{self, Kind, words};
use kanat_store::search_entry::{self, SearchEntry};

use crate::app::Call;

/// A resource that a search has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    pub kind: Kind,
    pub id: String,
    pub name: String,
    pub environment_id: EnvironmentId,
    /// More than 0 and at most 1: mean of the weights of the query's words.
    pub score: f64,
    /// Part of the best field as HTML, in which found words are marked.
    pub excerpt: String,
}

/// A page of hits.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits {
    pub page: ListPage<Hit>,
    /// True where there may be more hits than the total of the page.
    pub total_is_least: bool,
}

/// Field of a resource in which words are found. A later one outweighs those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Content,
    Description,
    Name,
}

impl Field {
    fn weight(self) -> f64 {
        match self {
            Self::Content => 0.01,
            Self::Description => 0.1,
            Self::Name => 1.0,
        }
    }
}

/// An entry with all words of a query, and how well it fits.
struct Match {
    entry: SearchEntry,
    score: f64,
    best: Field,
}

/// Finds the resources of the environment that have a word with each word of `query` as its
/// beginning. The best ones come first, and the newest ones of those that are equally good.
pub async fn find(call: &Call, query: &str, kind: Option<&str>, page: Page) -> Result<Hits, Error> {
    check(query)?;
    let kind = kind.map(parse_kind).transpose()?;
    let mut wanted: Vec<String> = words(query).map(|word| word.normalized).collect();
    wanted.sort_unstable();
    wanted.dedup();
    if wanted.is_empty() {
        return Ok(Hits {
            page: page.cut(Vec::new()),
            total_is_least: false,
        });
    }

    let environment = &call.caller.environment_id;
    let mut tx = call.read().await?;
    let entries = search_entry::find(&mut tx, environment, kind, &wanted).await?;
    let total_is_least = entries.len() >= search_entry::MAX_FOUND as usize;
    let mut matches: Vec<Match> = entries
        .into_iter()
        .map(|entry| Match::of(entry, &wanted))
        .collect();
    matches.sort_by(|a, b| {
        let newest_first = || age(&b.entry).cmp(age(&a.entry));
        b.score.total_cmp(&a.score).then_with(newest_first)
    });
    let matches = page.cut(matches);

    let mut excerpts = HashMap::new();
    let in_content = matches
        .items
        .iter()
        .filter(|found| found.best == Field::Content);
    let ids: Vec<&str> = in_content.map(|found| &*found.entry.id).collect();
    search_entry::read_contents(&mut tx, environment, &ids, |id, content| {
        excerpts.insert(id.to_owned(), excerpt::of(content, &wanted));
    })
    .await?;
    let hit = |found: Match| {
        let excerpt = match found.best {
            Field::Content => excerpts.remove(&found.entry.id).unwrap_or_default(),
            Field::Description => excerpt::of(&found.entry.description, &wanted),
            Field::Name => excerpt::of(&found.entry.name, &wanted),
        };
        Hit {
            kind: found.entry.kind,
            id: found.entry.id,
            name: found.entry.name,
            environment_id: environment.clone(),
            score: found.score,
            excerpt,
        }
    };
    Ok(Hits {
        page: ListPage {
            items: matches.items.into_iter().map(hit).collect(),
            total: matches.total,
            page,
        },
        total_is_least,
    })
}

fn check(query: &str) -> Result<(), Error> {
    if query.is_empty() {
        return Err(Error::field("q", "is required"));
    }
    if query.chars().nth(search::MAX_CHARS).is_some() {
        let problem = format!("has more than {} characters", search::MAX_CHARS);
        return Err(Error::field("q", problem));
    }
    if query.contains('\0') {
        return Err(Error::field("q", "must not contain a NUL character"));
    }
    Ok(())
}

fn parse_kind(text: &str) -> Result<Kind, Error> {
    Kind::parse(text).ok_or_else(|| {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        Error::field("type", format!("is none of {}", known.join(", ")))
    })
}

/// The part of an id that grows with time.
fn age(entry: &SearchEntry) -> &str {
    entry.id.rsplit('_').next().unwrap_or_default()
}

impl Match {
    fn of(entry: SearchEntry, wanted: &[String]) -> Self {
        let normalized =
            |text| -> Vec<String> { words(text).map(|word| word.normalized).collect() };
        let name = normalized(&entry.name);
        let description = normalized(&entry.description);
        let has =
            |field: &[String], wanted: &str| field.iter().any(|word| word.starts_with(wanted));
        let field_of = |wanted: &String| {
            if has(&name, wanted) {
                Field::Name
            } else if has(&description, wanted) {
                Field::Description
            } else {
                // The entry has each word, so it is where nobody has looked.
                Field::Content
            }
        };
        let fields = wanted.iter().map(field_of);
        let sum: f64 = fields.clone().map(Field::weight).sum();
        Self {
            score: sum / wanted.len() as f64,
            best: fields.max().unwrap_or(Field::Content),
            entry,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(name: &str, description: &str, wanted: &[&str]) -> Match {
        let entry = SearchEntry {
            id: "flw_1".to_owned(),
            kind: Kind::Flow,
            name: name.to_owned(),
            description: description.to_owned(),
        };
        let wanted: Vec<String> = wanted.iter().map(|word| (*word).to_owned()).collect();
        Match::of(entry, &wanted)
    }

    #[test]
    fn a_name_outweighs_a_description_and_that_the_text() {
        let wanted = ["order", "sync"];
        let scores = [
            matched("Orders sync", "", &wanted),
            matched("orders", "how they sync", &wanted),
            matched("orders", "", &wanted),
            matched("", "orders sync", &wanted),
            matched("", "sync", &wanted),
            matched("reorder", "unsync", &wanted),
        ]
        .map(|found| found.score);
        assert!(scores.is_sorted_by(|a, b| a > b), "{scores:?}");
        assert_eq!(scores[0], 1.0);
        assert_eq!(matched("orders", "sync", &wanted).best, Field::Name);
        assert_eq!(matched("", "sync", &wanted).best, Field::Description);
        assert_eq!(matched("", "", &wanted).best, Field::Content);
    }

    #[test]
    fn queries_and_kinds_have_bounds() {
        assert!(check(&"ä".repeat(500)).is_ok());
        for query in ["", "a\0", &"ä".repeat(501)] {
            assert_eq!(check(query).unwrap_err().details[0].field, "q");
        }
        assert_eq!(parse_kind("lookup_table").unwrap(), Kind::LookupTable);
        assert_eq!(parse_kind("").unwrap_err().details[0].field, "type");
    }
}
