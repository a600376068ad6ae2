//! One command's client and output, and how commands ask the service and print its answers.

use anyhow::Result;
use serde::Serialize;

use super::confirm::Consent;
use super::hint::EnvironmentOption;
use crate::cli::Connection;
use crate::client::Client;
use crate::client::name::Noun;
use crate::exit::usage;
use crate::output::{self, Format, Json, table};

/// Parameters of a request's query.
pub type Query = Vec<(&'static str, String)>;

/// Client and output options of one command.
pub struct Session {
    pub client: Client,
    pub format: Format,
    chosen: EnvironmentOption,
}

impl Session {
    /// Takes what `connection` names, and the rest from `kanat login`.
    pub fn new(connection: Connection, format: Format, chosen: &EnvironmentOption) -> Result<Self> {
        Ok(Self {
            client: Client::new(connection)?,
            format,
            chosen: chosen.clone(),
        })
    }

    pub fn print(&self, answer: &Json, text: impl FnOnce(&Json) -> String) -> Result<()> {
        self.format.print(answer, text)
    }

    /// Prints the thing at `path`.
    pub async fn show(&self, path: &str, text: impl FnOnce(&Json) -> String) -> Result<()> {
        self.print(&self.client.get(path, &[]).await?, text)
    }

    /// Posts to `path`, and prints the answer.
    pub async fn post(
        &self,
        path: &str,
        body: &impl Serialize,
        text: impl FnOnce(&Json) -> String,
    ) -> Result<Json> {
        let answer = self.client.post(path, body).await?;
        self.print(&answer, text)?;
        Ok(answer)
    }

    /// Changes the thing at `path`, and prints it with its warnings. Without a change it is an
    /// error, whose advice says how to give one.
    pub async fn change(
        &self,
        path: &str,
        changes: &Json,
        advice: &str,
        text: impl FnOnce(&Json) -> String,
    ) -> Result<()> {
        refuse_if_nothing(changes, advice)?;
        let answer = self.client.patch(path, changes).await?;
        self.print(&answer, text)?;
        self.warn(&answer);
        Ok(())
    }

    /// Changes the thing at `path` as [`Self::change`] does, if it still has the `etag` of a read.
    pub async fn change_if(
        &self,
        path: &str,
        etag: &str,
        changes: &Json,
        advice: &str,
        text: impl FnOnce(&Json) -> String,
    ) -> Result<()> {
        refuse_if_nothing(changes, advice)?;
        self.print(&self.client.patch_if(path, etag, changes).await?, text)
    }

    /// Prints a page of the list at `path`.
    pub async fn list(&self, path: &str, query: Query, columns: &str) -> Result<()> {
        self.print_page(&self.client.page(path, &query).await?, columns)
    }

    /// Prints a page of a list, and the command for the next page.
    pub fn print_page(&self, page: &Json, columns: &str) -> Result<()> {
        self.print(page, |page| table::list(page, columns))?;
        if let Some(more) = table::more(page) {
            self.hint(&more);
        }
        Ok(())
    }

    /// Deletes the thing that `text` names, with consent; `what` says what goes with it, and what
    /// the service refuses it for.
    pub async fn delete(
        &self,
        noun: &Noun,
        text: &str,
        what: &str,
        consent: Consent,
    ) -> Result<()> {
        let id = self.client.id(noun, text).await?;
        if id == text && !consent.is_given() {
            // An id is taken as it is: nothing has looked for it yet.
            self.client.get(&noun.at(&id), &[]).await?;
        }
        let name = if id == text {
            text.to_owned()
        } else {
            format!("{text} ({id})")
        };
        consent.ask(&format!(
            "{} {name} {} be deleted {what}",
            noun.name,
            consent.will()
        ))?;
        self.client.delete(&noun.at(&id)).await?;
        self.done(&format!("{} {text} is deleted", noun.name))
    }

    /// Prints advice on the next step for a person, and nothing for programs.
    pub fn hint(&self, text: &str) {
        if self.format == Format::Table {
            output::hint(&self.chosen.repeat(text));
        }
    }

    /// Prints the warnings of an answer for a person; programs find them in it.
    pub fn warn(&self, answer: &Json) {
        for warning in answer.texts("warnings") {
            self.hint(&format!("warning: {warning}"));
        }
    }

    /// Prints an error of a command that goes on.
    pub fn complain(&self, text: &str) {
        output::hint(&self.chosen.repeat(&format!("error: {text}")));
    }

    /// Prints that something was done that has no answer of its own; programs see the exit code.
    pub fn done(&self, text: &str) -> Result<()> {
        if self.format == Format::Table {
            output::line(text)
        } else {
            Ok(())
        }
    }
}

/// The part of a list that is asked for.
#[derive(clap::Args)]
pub struct Page {
    /// How many at most; more than 500 are asked for page by page.
    #[arg(long, default_value_t = 50)]
    limit: u32,
    /// How many to pass over.
    #[arg(long, default_value_t = 0)]
    offset: u32,
}

impl Page {
    /// Returns the query for this part, with further parameters.
    pub fn with<const N: usize>(&self, more: [(&'static str, Option<String>); N]) -> Query {
        let mut query = query(more);
        query.push(("limit", self.limit.to_string()));
        query.push(("offset", self.offset.to_string()));
        query
    }
}

/// Returns the parameters that have a value.
pub fn query<const N: usize>(parameters: [(&'static str, Option<String>); N]) -> Query {
    let given = parameters.into_iter();
    given
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn refuse_if_nothing(changes: &Json, advice: &str) -> Result<()> {
    if changes.is_empty() {
        return Err(usage(format!("nothing is to be changed: {advice}")));
    }
    Ok(())
}
