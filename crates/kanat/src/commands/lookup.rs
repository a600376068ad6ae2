//! `kanat lookup`: tables of text by text.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session, input, query};
use crate::client::name::{TABLE, segment};
use crate::client::{MAX_PAGE, TIMEOUT};
use crate::exit::usage;
use crate::output::{self, Json, table};

/// Commands for lookup tables. A table is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// Create an empty table.
    Create {
        name: String,
        #[arg(long)]
        description: Option<String>,
    },
    /// List the tables of the environment.
    List {
        /// Looks into name and description.
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Add or overwrite one entry.
    Set {
        table: String,
        #[arg(allow_negative_numbers = true)]
        key: String,
        #[arg(allow_negative_numbers = true)]
        value: String,
    },
    /// Delete one entry.
    Remove {
        table: String,
        #[arg(allow_negative_numbers = true)]
        key: String,
    },
    /// Show a table with its entries.
    Show {
        table: String,
        /// Looks into keys and values.
        #[arg(long)]
        search: Option<String>,
        /// How many entries at most.
        #[arg(long)]
        limit: Option<u32>,
    },
    /// Take a table out of service.
    Delete {
        table: String,
        #[command(flatten)]
        consent: Consent,
    },
    /// Add or overwrite the entries of a CSV file with the columns `key` and `value`.
    Import {
        table: String,
        /// CSV file; `-` is standard input.
        file: String,
    },
    /// Print all entries as CSV.
    Export {
        table: String,
        /// Write to this file instead of standard output.
        #[arg(long)]
        file: Option<String>,
    },
}

/// Number of entries that a page has unless more are asked for.
const DEFAULT_SHOWN: usize = 50;

const COLUMNS: &str = "NAME:name,ENTRIES:entries_count,VERSION:version,ID:id,\
                       DESCRIPTION:description";
const FIELDS: &str = "Name:name,Description:description,Version:version,Entries:entries_count,\
                      Id:id,Updated:updated_at";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create { name, description } => {
                let body = json!({ "name": name, "description": description });
                let created = |_: &Json| format!("lookup table {name} is created");
                session.post(TABLE.path, &body, created).await?;
                session.hint(&format!(
                    "fill it with `kanat lookup set {0} KEY VALUE` or `kanat lookup import {0} \
                     FILE`",
                    quoted(&name)
                ));
                Ok(())
            }
            Self::List { search, page } => {
                let query = page.with([("search", search)]);
                session.list(TABLE.path, query, COLUMNS).await
            }
            Self::Set { table, key, value } => {
                let path = format!("{}/entries", client.path(&TABLE, &table).await?);
                let body = json!({ "key": key, "value": value });
                let changed = |answer: &Json| changed(&table, answer);
                session.post(&path, &body, changed).await.map(drop)
            }
            Self::Remove { table, key } => {
                if key.is_empty() || key == "." || key == ".." {
                    return Err(usage(format!(
                        "the key {key:?} cannot stand in an address; set the others in a new table"
                    )));
                }
                let path = client.path(&TABLE, &table).await?;
                let query = [("search", key.clone()), ("limit", MAX_PAGE.to_string())];
                let found = client.get(&path, &query).await?;
                let mut entries = found.list("entries").iter();
                let value = entries
                    .find(|entry| entry.text("key") == key)
                    .map(|entry| format!("; it was {}", entry.text("value")))
                    .unwrap_or_default();
                let path = format!("{path}/entries/{}", segment(&key));
                client.delete(&path).await?;
                session.done(&format!("key {key} is removed from {table}{value}"))
            }
            Self::Show {
                table,
                search,
                limit,
            } => {
                let path = client.path(&TABLE, &table).await?;
                let limit = limit.map(|limit| limit.to_string());
                let query = query([("search", search.clone()), ("limit", limit)]);
                let answer = client.get(&path, &query).await?;
                session.print(&answer, whole)?;
                if let Some(rest) = left_out(&answer, search.as_deref()) {
                    session.hint(&rest);
                }
                Ok(())
            }
            Self::Delete { table, consent } => {
                let what = "with its entries, unless deployed flows or published APIs read it";
                session.delete(&TABLE, &table, what, consent).await
            }
            Self::Import { table, file } => {
                let content = input::bytes(&file)?;
                let path = client.path(&TABLE, &table).await?;
                let name = Path::new(&file)
                    .file_name()
                    .map_or("entries.csv".into(), |name| name.to_string_lossy());
                let answer = client
                    .upload(&format!("{path}/import"), name.into_owned(), content)
                    .await?;
                session.print(&answer, |answer| changed(&table, answer))
            }
            Self::Export { table, file } => {
                let path = client.path(&TABLE, &table).await?;
                let request = client.request(Method::GET, &format!("{path}/export"));
                let csv = client.text(request, TIMEOUT).await?;
                match file {
                    Some(file) => {
                        std::fs::write(&file, csv).with_context(|| format!("cannot write {file}"))
                    }
                    None => output::line(&csv),
                }
            }
        }
    }
}

fn changed(table: &str, answer: &Json) -> String {
    let count = answer.text("entries_count");
    let entries = if count == "1" { "entry" } else { "entries" };
    let version = answer.text("version");
    format!("{table} has {count} {entries} and is version {version}")
}

/// Returns a note about the entries of a table that are not shown. With a search the number of
/// matches beyond the page is not known.
fn left_out(table: &Json, search: Option<&str>) -> Option<String> {
    let shown = table.list("entries").len();
    let all: usize = table.text("entries_count").parse().unwrap_or(0);
    match search {
        None if shown < all => Some(format!(
            "{shown} of {all} entries; --limit shows up to {MAX_PAGE}, `kanat lookup export {}` \
             prints all",
            table.text("name")
        )),
        Some(search) if shown >= DEFAULT_SHOWN && shown < all => Some(format!(
            "{shown} entries that match {search:?}; more may, --limit shows up to {MAX_PAGE}"
        )),
        None | Some(_) => None,
    }
}

fn whole(table: &Json) -> String {
    let entries = table::rows(table.list("entries"), "KEY:key,VALUE:value");
    format!("{}\n{entries}", table::fields(table, FIELDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_entries_that_are_not_shown() {
        let table = |shown: usize, all: usize| {
            let entries = vec![r#"{"key":"a","value":"b"}"#; shown].join(",");
            Json::parse(&format!(
                r#"{{"name":"t","entries":[{entries}],"entries_count":{all}}}"#
            ))
            .unwrap()
        };
        assert_eq!(left_out(&table(3, 3), None), None);
        let told = left_out(&table(50, 100_000), None).unwrap();
        assert!(
            told.starts_with("50 of 100000 entries") && told.contains("kanat lookup export t"),
            "{told}"
        );
        assert_eq!(left_out(&table(2, 100_000), Some("x")), None);
        assert!(
            left_out(&table(50, 100_000), Some("x"))
                .unwrap()
                .starts_with("50 entries that match")
        );
    }
}
