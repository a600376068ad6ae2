//! `kanat lookup`: tables of text by text.

use std::path::Path;

use anyhow::{Context, Result};
use clap::Subcommand;
use serde_json::json;

use super::{Page, Session, given, input};
use crate::client::name::{TABLE, segment};
use crate::exit::usage;
use crate::output::table::{self, Column};
use crate::output::{self, Json};

/// What can be done with lookup tables. A table is named by its id or its name.
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
    Set { table: String, key: String, value: String },
    /// Delete one entry.
    Remove { table: String, key: String },
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
    Delete { table: String },
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

const COLUMNS: [Column; 5] = [
    ("NAME", "name"),
    ("ENTRIES", "entries_count"),
    ("VERSION", "version"),
    ("ID", "id"),
    ("DESCRIPTION", "description"),
];

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Create { name, description } => {
                let answer = client.post(TABLE.path, &json!({ "name": name, "description": description })).await?;
                session.print(&answer, |_| format!("lookup table {name} is created\nfill it with `kanat lookup set {name} KEY VALUE` or `kanat lookup import {name} FILE`"))
            }
            Self::List { search, page } => {
                let query = [page.query(), given([("search", &search)])].concat();
                let answer = client.get(TABLE.path, &query).await?;
                session.print(&answer, |answer| table::list(answer, &COLUMNS))
            }
            Self::Set { table, key, value } => {
                let path = client.path(&TABLE, &table).await?;
                let answer = client.post(&format!("{path}/entries"), &json!({ "key": key, "value": value })).await?;
                session.print(&answer, |answer| changed(&table, answer))
            }
            Self::Remove { table, key } => {
                if key.is_empty() || key == "." || key == ".." {
                    return Err(usage(format!(
                        "the key {key:?} cannot stand in an address; set the others in a new table"
                    )));
                }
                let path = client.path(&TABLE, &table).await?;
                client.delete(&format!("{path}/entries/{}", segment(&key))).await?;
                session.done(&format!("key {key} is removed from {table}"))
            }
            Self::Show { table, search, limit } => {
                let path = client.path(&TABLE, &table).await?;
                let limit = limit.map(|limit| limit.to_string());
                let answer = client.get(&path, &given([("search", &search), ("limit", &limit)])).await?;
                session.print(&answer, whole)
            }
            Self::Delete { table } => {
                client.delete(&client.path(&TABLE, &table).await?).await?;
                session.done(&format!("lookup table {table} is deleted"))
            }
            Self::Import { table, file } => {
                let content = input::bytes(&file)?;
                let path = client.path(&TABLE, &table).await?;
                let name = Path::new(&file).file_name().map_or("entries.csv".into(), |name| name.to_string_lossy());
                let answer = client.upload(&format!("{path}/import"), name.into_owned(), content).await?;
                session.print(&answer, |answer| changed(&table, answer))
            }
            Self::Export { table, file } => {
                let path = client.path(&TABLE, &table).await?;
                let csv = client.download(&format!("{path}/export")).await?;
                match file {
                    Some(file) => std::fs::write(&file, csv).with_context(|| format!("cannot write {file}")),
                    None => output::line(&csv),
                }
            }
        }
    }
}

fn changed(table: &str, answer: &Json) -> String {
    format!("{table} has {} entries and is version {}", answer.text("entries_count"), answer.text("version"))
}

fn whole(table: &Json) -> String {
    let fields = [
        ("Name", "name"),
        ("Description", "description"),
        ("Version", "version"),
        ("Entries", "entries_count"),
        ("Id", "id"),
        ("Updated", "updated_at"),
    ];
    let entries = table.list("entries");
    let rows =
        if entries.is_empty() { String::new() } else { table::rows(entries, &[("KEY", "key"), ("VALUE", "value")]) };
    format!("{}\n{rows}", table::fields(table, &fields))
}
