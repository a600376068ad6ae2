//! The words of all resources that people search, in an index of the database. Each function of
//! this crate that changes the texts of such a resource brings its entry up to date in the same
//! transaction. What is searched of a resource is said by the view `searchable`.

use std::collections::BTreeSet;
use std::iter;

use kanat_model::id::EnvironmentId;
use kanat_model::search::{Kind, words};
use kanat_plan_stream::Hash;
use sqlx::AssertSqlSafe;

use crate::column::Value;
use crate::dialect::Dialect;
use crate::record::record;
use crate::{Db, Result};

/// Entries that are found of each field at most, of those that were indexed last.
pub const MAX_FOUND: u32 = 1_000;

/// Entries of an environment, those that were indexed last, that PostgreSQL searches one by one
/// before it asks the index. From there it reads each entry that has the words before it knows the
/// newest ones: where many have them, enough are among these.
pub const NEWEST: u32 = 5_000;

/// Bytes of the terms of one entry. PostgreSQL holds less than 1 MiB.
const MAX_TERM_BYTES: usize = 512 << 10;

/// Terms that a beginning is completed to. With more of them the database merges their entries.
const MAX_COMPLETIONS: u32 = 256;

/// Characters up to which every beginning of a word is a term of its own. Databases merge the
/// entries of all words that have a beginning, which takes long where it is a short one.
const INDEXED_CHARS: usize = 3;

/// First characters of terms that are more than a word of some field. No word has them.
const BEGINNING: char = '\u{e004}';
const OF_NAME: char = '\u{e000}';
const OF_DESCRIPTION: char = '\u{e001}';
const ENVIRONMENT: char = '\u{e002}';
const KIND: char = '\u{e003}';

record! {
    /// A resource that is found by its words.
    pub struct SearchEntry {
        pub id: String,
        pub kind: Kind,
        pub name: String,
        pub description: String,
    }
}

record! {
    /// The texts of a resource as they are now, and the hash of those in the index.
    struct Searchable {
        environment_id: EnvironmentId,
        kind: Kind,
        name: String,
        description: String,
        content: String,
        hash: Option<Vec<u8>>,
    }
}

const SEARCHABLE: &str = "SELECT environment_id, kind, name, description, content, (SELECT hash \
                          FROM search_entry WHERE id = $1) AS hash FROM searchable \
                          WHERE id = $1";
const INSERT: &str = "INSERT INTO search_entry (id, environment_id, kind, name, \
                      description, hash) VALUES ($1, $2, $3, $4, $5, $6) RETURNING number";
const INSERT_TERMS: &str = "INSERT INTO search_index (rowid, terms) VALUES ($1, TERMS($2))";

/// Brings the entry of a resource up to date with the resource, which may be new, changed, deleted
/// or as it was.
pub(crate) async fn update(db: &mut Db, id: &str) -> Result<()> {
    let Some(now) = db.first::<Searchable>(SEARCHABLE, &[&id]).await? else {
        return delete(db, id).await;
    };
    let texts = [&*now.name, &*now.description, &*now.content].join("\0");
    let hash = Hash::of(texts.as_bytes());
    match now.hash.as_deref() {
        Some(former) if former == hash.as_bytes() => return Ok(()),
        Some(_) => delete(db, id).await?,
        None => {}
    }
    let values: [&dyn Value; 6] = [
        &id,
        &now.environment_id,
        &now.kind,
        &now.name,
        &now.description,
        &hash.as_bytes().as_slice(),
    ];
    let number: i64 = db.one(INSERT, &values).await?;
    let insert_terms = AssertSqlSafe(db.dialect().word_index_text(INSERT_TERMS));
    db.run(insert_terms, &[&number, &terms(&now)]).await
}

const DELETE_TERMS: &str = "DELETE FROM search_index WHERE rowid IN (SELECT number FROM \
                            search_entry WHERE id = $1)";
const DELETE: &str = "DELETE FROM search_entry WHERE id = $1";

async fn delete(db: &mut Db, id: &str) -> Result<()> {
    db.run(DELETE_TERMS, &[&id]).await?;
    db.run(DELETE, &[&id]).await
}

const ALL: &str = "SELECT id FROM searchable";

/// Makes the entries of all resources, for a database that had no index before.
pub(crate) async fn fill(db: &mut Db) -> Result<()> {
    let ids: Vec<String> = db.all(ALL, &[]).await?;
    for id in ids {
        update(db, &id).await?;
    }
    Ok(())
}

const FIND: &str = "SELECT id, kind, name, description FROM (SELECT rowid AS found FROM \
                    search_index WHERE search_index MATCH $1 ORDER BY rowid DESC LIMIT $2) \
                    matches JOIN search_entry ON number = found WHERE environment_id = $3";

/// Looks at the entries one by one: the index of words has no order of entries. The query is read
/// once.
const FIND_NEWEST: &str = "SELECT id, kind, name, description FROM search_entry WHERE \
                           environment_id = $3 AND number > $4 AND (SELECT terms @@ (SELECT \
                           CAST($1 AS TSQUERY)) FROM search_index WHERE rowid = number) ORDER BY \
                           number DESC LIMIT $2";

const BEFORE_NEWEST: &str = "SELECT number FROM search_entry WHERE environment_id = $1 ORDER BY \
                             number DESC LIMIT 1 OFFSET $2";

/// Finds the environment's resources in which each of the normalized `words` begins a word of some
/// field. Where there are more than [`MAX_FOUND`], the result has at least that many: first those
/// with all words in the name, then those with a word in the name, then those with a word in the
/// description.
pub async fn find(
    db: &mut Db,
    environment: &EnvironmentId,
    kind: Option<Kind>,
    words: &[String],
) -> Result<Vec<SearchEntry>> {
    let dialect = db.dialect();
    let mut scope = vec![dialect.term(&tagged(ENVIRONMENT, environment.as_str()))];
    scope.extend(kind.map(|kind| dialect.term(&tagged(KIND, kind.as_str()))));
    let mut wanted = Vec::new();
    for word in words {
        match beginning(db, None, word).await? {
            Some(query) => wanted.push(query),
            None => return Ok(Vec::new()),
        }
    }
    let before_newest: Option<i64> = match dialect {
        Dialect::Sqlite => None,
        Dialect::Postgres => db.first(BEFORE_NEWEST, &[environment, &NEWEST]).await?,
    };
    let all = dialect.all_of(&[&scope[..], &wanted].concat());
    // PostgreSQL reads all entries of a word for each query that names it, so it is asked first
    // whether there are more than the result can have.
    let anywhere = match dialect {
        Dialect::Sqlite => None,
        Dialect::Postgres => Some(matches(db, environment, &all, None, before_newest).await?),
    };
    if let Some(entries) = anywhere.as_ref().filter(|entries| !is_full(entries)) {
        return Ok(entries.clone());
    }
    let of_name = beginnings(db, OF_NAME, words).await?;
    let of_description = beginnings(db, OF_DESCRIPTION, words).await?;
    let mut queries = Vec::new();
    if words.len() > 1 && of_name.len() == words.len() {
        queries.push(([&scope[..], &of_name].concat(), None));
    }
    for of_field in [of_name, of_description] {
        let any = [&scope[..], &[dialect.any_of(&of_field)]].concat();
        match (of_field.len(), words.len()) {
            (0, _) => {}
            // A word of a field is a word of the entry.
            (_, 1) => queries.push((any, None)),
            _ => queries.push(([&any[..], &wanted].concat(), Some(any))),
        }
    }
    let mut found = Vec::new();
    for (query, of_field) in queries {
        let query = dialect.all_of(&query);
        let of_field = of_field.filter(|_| dialect == Dialect::Postgres);
        let of_field = of_field.map(|of_field| dialect.all_of(&of_field));
        let of_field = of_field.as_deref();
        let entries = matches(db, environment, &query, of_field, before_newest).await?;
        let is_full = is_full(&entries);
        add_new(&mut found, entries);
        if is_full {
            return Ok(found);
        }
    }
    let anywhere = match anywhere {
        Some(entries) => entries,
        None => matches(db, environment, &all, None, before_newest).await?,
    };
    add_new(&mut found, anywhere);
    Ok(found)
}

const FIND_OF_FIELD: &str = "SELECT id, kind, name, description FROM (SELECT rowid AS found FROM \
                             (SELECT rowid, terms FROM search_index WHERE terms @@ CAST($4 AS \
                             TSQUERY) LIMIT $2) of_field WHERE search_index MATCH $1) matches \
                             JOIN search_entry ON number = found WHERE environment_id = $3";

const COUNT_OF_FIELD: &str = "SELECT COUNT(*) AS total FROM (SELECT 1 FROM search_index WHERE \
                              search_index MATCH $1 LIMIT $2) of_field";

/// Finds what a query finds among the entries with some word in a field, where these are few;
/// `None` where they are many. PostgreSQL reads all entries of each word of a query, also where
/// another part of the query leaves few of them.
async fn matches_of_field(
    db: &mut Db,
    environment: &EnvironmentId,
    of_field: &str,
    query: &str,
) -> Result<Option<Vec<SearchEntry>>> {
    let count = AssertSqlSafe(db.dialect().word_index_text(COUNT_OF_FIELD));
    let count: u64 = db.one(count, &[&of_field, &MAX_FOUND]).await?;
    if count == 0 || count >= u64::from(MAX_FOUND) {
        return Ok((count == 0).then(Vec::new));
    }
    let find = AssertSqlSafe(db.dialect().word_index_text(FIND_OF_FIELD));
    let values: [&dyn Value; 4] = [&query, &MAX_FOUND, environment, &of_field];
    db.all(find, &values).await.map(Some)
}

/// Finds what a query of the index of words finds: the last [`MAX_FOUND`] that were indexed, or
/// everything where these are fewer. `of_field` is a part of the query that may leave few entries;
/// else what is after `before_newest` is searched before the rest.
async fn matches(
    db: &mut Db,
    environment: &EnvironmentId,
    query: &str,
    of_field: Option<&str>,
    before_newest: Option<i64>,
) -> Result<Vec<SearchEntry>> {
    if let Some(of_field) = of_field
        && let Some(entries) = matches_of_field(db, environment, of_field, query).await?
    {
        return Ok(entries);
    }
    let values: [&dyn Value; 4] = [&query, &MAX_FOUND, environment, &before_newest];
    if before_newest.is_some() {
        let newest: Vec<SearchEntry> = db.all(FIND_NEWEST, &values).await?;
        if is_full(&newest) {
            return Ok(newest);
        }
    }
    let find = AssertSqlSafe(db.dialect().word_index_text(FIND));
    db.all(find, &values[..3]).await
}

/// Returns whether a query may find more than these.
fn is_full(entries: &[SearchEntry]) -> bool {
    entries.len() >= MAX_FOUND as usize
}

/// Adds the entries that are not there yet.
fn add_new(found: &mut Vec<SearchEntry>, entries: Vec<SearchEntry>) {
    let known: BTreeSet<&str> = found.iter().map(|entry| &*entry.id).collect();
    let is_new = |entry: &SearchEntry| !known.contains(&*entry.id);
    let new: Vec<SearchEntry> = entries.into_iter().filter(is_new).collect();
    found.extend(new);
}

/// Queries of [`beginning`] for the words that some field has.
async fn beginnings(db: &mut Db, field: char, words: &[String]) -> Result<Vec<String>> {
    let mut queries = Vec::new();
    for word in words {
        queries.extend(beginning(db, Some(field), word).await?);
    }
    Ok(queries)
}

const COMPLETIONS: &str =
    "SELECT term FROM search_vocabulary WHERE term >= $1 AND term < $2 LIMIT $3";

/// Query that finds what has a word with this beginning, in one field or anywhere; `None` where
/// nothing has.
///
/// SQLite merges the entries of all terms that a beginning has before it finds the first one. So it
/// is asked for the terms themselves, where they are few.
async fn beginning(db: &mut Db, field: Option<char>, word: &str) -> Result<Option<String>> {
    let dialect = db.dialect();
    let text: String = field.into_iter().chain(word.chars()).collect();
    if word.chars().nth(INDEXED_CHARS).is_none() {
        return Ok(Some(dialect.term(&format!("{BEGINNING}{text}"))));
    }
    let query = dialect.beginning(&text);
    if dialect == Dialect::Postgres {
        return Ok(Some(query));
    }
    let end = format!("{text}{}", char::MAX);
    let limit = MAX_COMPLETIONS + 1;
    let terms: Vec<String> = db.all(COMPLETIONS, &[&&*text, &&*end, &limit]).await?;
    if terms.is_empty() {
        return Ok(None);
    }
    if terms.len() >= limit as usize {
        return Ok(Some(query));
    }
    let terms: Vec<String> = terms.iter().map(|term| dialect.term(term)).collect();
    Ok(Some(dialect.any_of(&terms)))
}

/// Contents that are read at a time; a definition may be large.
const CONTENTS_AT_ONCE: usize = 10;

const CONTENTS: &str = "SELECT id, content FROM searchable WHERE environment_id = $1 AND id IN \
                        ($2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";

/// Reads what is searched of resources of the environment besides name and description, and hands
/// it to `take` with the id of its resource.
pub async fn read_contents(
    db: &mut Db,
    environment: &EnvironmentId,
    ids: &[&str],
    mut take: impl FnMut(&str, &str),
) -> Result<()> {
    for ids in ids.chunks(CONTENTS_AT_ONCE) {
        let mut values: Vec<&dyn Value> = vec![environment];
        // The last chunk repeats its first id, so that all of them are one statement.
        let repeated = iter::repeat(&ids[0]);
        for id in ids.iter().chain(repeated).take(CONTENTS_AT_ONCE) {
            values.push(id);
        }
        for (id, content) in db.all::<(String, String)>(CONTENTS, &values).await? {
            take(&id, &content);
        }
    }
    Ok(())
}

/// The terms of an entry, with spaces between. Those that do not fit are left out: words of the
/// content, from its end.
fn terms(of: &Searchable) -> String {
    let mut terms = BTreeSet::new();
    let mut bytes = 0;
    let mut add = |term: String| {
        let length = term.len() + 1;
        if bytes + length <= MAX_TERM_BYTES && terms.insert(term) {
            bytes += length;
        }
    };
    add(tagged(ENVIRONMENT, of.environment_id.as_str()));
    add(tagged(KIND, of.kind.as_str()));
    let fields = [
        (Some(OF_NAME), &of.name),
        (Some(OF_DESCRIPTION), &of.description),
        (None, &of.content),
    ];
    for (field, text) in fields {
        for word in words(text) {
            let beginnings = word.normalized.char_indices().take(INDEXED_CHARS);
            for (at, last) in beginnings {
                let beginning = &word.normalized[..at + last.len_utf8()];
                add(format!("{BEGINNING}{beginning}"));
                if let Some(field) = field {
                    add(format!("{BEGINNING}{field}{beginning}"));
                }
            }
            if let Some(field) = field {
                add(format!("{field}{}", word.normalized));
            }
            add(word.normalized);
        }
    }
    Vec::from_iter(terms).join(" ")
}

/// A term that is no word alone. Ids have characters that end a term, and are different without
/// them.
fn tagged(tag: char, text: &str) -> String {
    let text = text.chars().filter(|c| c.is_alphanumeric());
    iter::once(tag).chain(text).collect()
}
