//! `kanat environment`: places that flows, tables and connectors live in, apart from each other.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::{Args, Subcommand};
use kanat_catalog::redact::is_secret_header;
use kanat_model::{Code, nearest};
use serde_json::{Value, json};

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Session};
use crate::client::name::{ADAPTER, API, ENVIRONMENT, FLOW, INSTANCE, Noun, TABLE};
use crate::client::{Client, Refusal};
use crate::exit::{failure, usage};
use crate::output::{Json, table};

/// Commands for environments. An environment is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// List the environments of the account.
    List {
        #[command(flatten)]
        page: Page,
    },
    /// Show one environment.
    Show { environment: String },
    /// Make an environment.
    Create {
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change the name of an environment, or its settings.
    Update {
        environment: String,
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete an environment that is empty, and not the default one.
    Delete {
        environment: String,
        #[command(flatten)]
        consent: Consent,
    },
}

/// Settings of an environment; those that are left out stay as they are.
#[derive(Args)]
pub struct Settings {
    /// Address of its published APIs, such as `https://api.example.com`; an empty text takes it
    /// away.
    #[arg(long)]
    base_url: Option<String>,
    /// Editors run what is in it, and change nothing; `--protected=false` ends that.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    protected: Option<bool>,
    /// Lowest role that is to promote flows into it, once that can be done: `editor` or `admin`.
    #[arg(long, value_name = "ROLE")]
    promoters: Option<String>,
    /// Days that ended messages are kept, at most those of the service; 0 takes what the service
    /// has.
    #[arg(long, value_name = "DAYS")]
    retention_days: Option<u32>,
    /// A text that flows read as `env.NAME`; others stay as they are.
    #[arg(long = "variable", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, String)>,
    /// Name of a variable that is taken away.
    #[arg(long = "remove-variable", value_name = "NAME")]
    removed: Vec<String>,
}

const COLUMNS: &str = "NAME:name,DEFAULT:isDefault,PROTECTED:protected,BASE URL:baseUrl,ID:id";
const FIELDS: &str = "Name:name,Default:isDefault,Protected:protected,Promoters:promoters,\
                      Base URL:baseUrl,Retention days:retentionDays,Id:id,\
                      Created:createdAt,Updated:updatedAt";

impl Settings {
    /// Checks the names of variables. `former` has those that the environment has.
    ///
    /// # Errors
    ///
    /// When a name is given twice, and when one is to be taken away that there is not.
    fn check_variables(&self, former: &BTreeMap<String, String>) -> Result<()> {
        for (index, (name, _)) in self.variables.iter().enumerate() {
            let (earlier, _) = self.variables.split_at(index);
            if earlier.iter().any(|(other, _)| other == name) {
                return Err(usage(format!("--variable {name} is given twice")));
            }
            if self.removed.contains(name) {
                return Err(usage(format!(
                    "{name} is both given and taken away: --variable or --remove-variable"
                )));
            }
        }
        let is_unknown = |name: &&String| !former.contains_key(*name);
        if let Some(unknown) = self.removed.iter().find(is_unknown) {
            let near = nearest::suggestion(unknown, former.keys().map(String::as_str));
            return Err(failure(format!(
                "the environment has no variable {unknown:?}{near}"
            )));
        }
        Ok(())
    }

    /// Returns the body of a request with these settings and a name. `former` has the variables
    /// that the environment has.
    fn with_name(&self, name: Option<&str>, mut former: BTreeMap<String, String>) -> Json {
        let changes_variables = self.names_variables();
        let retention_days = self.retention_days.map(|days| match days {
            0 => Json::from(Value::Null),
            days => Json::from(json!(days)),
        });
        former.extend(self.variables.iter().cloned());
        former.retain(|name, _| !self.removed.contains(name));
        Json::given(json!({
            "name": name, "baseUrl": self.base_url, "protected": self.protected,
            "promoters": self.promoters, "variables": changes_variables.then_some(former),
        }))
        .with([("retentionDays", retention_days)])
    }

    /// Warns of variables whose names are those of secrets.
    fn warn_of_secrets(&self, session: &Session) {
        for (name, _) in &self.variables {
            if is_secret_header(name) {
                session.hint(&format!(
                    "warning: variables are no secrets: {name} shows to everybody who reads the \
                     environment, in traces and in outputs; `kanat connector create` keeps secrets"
                ));
            }
        }
    }

    fn names_variables(&self) -> bool {
        !self.variables.is_empty() || !self.removed.is_empty()
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let (name, value) = parts.ok_or_else(|| "expected NAME=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The variables of an environment.
fn variables(environment: &Json) -> BTreeMap<String, String> {
    let text = |(name, value): (&str, &Json)| {
        let value = value.as_text().unwrap_or_default();
        (name.to_owned(), value.to_owned())
    };
    environment.members("variables").map(text).collect()
}

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::List { page } => session.list(ENVIRONMENT.path, page.with([]), COLUMNS).await,
            Self::Show { environment } => {
                let whole = |environment: &Json| {
                    let lines = variables(environment)
                        .into_iter()
                        .map(|(name, value)| format!("{name}={value}\n"));
                    let lines: String = lines.collect();
                    let fields = table::fields(environment, FIELDS);
                    if lines.is_empty() {
                        return fields;
                    }
                    fields + &table::section("Variables", &lines)
                };
                session.print(&existing(client, &environment).await?, whole)
            }
            Self::Create { name, settings } => {
                settings.check_variables(&BTreeMap::new())?;
                let body = settings.with_name(Some(&name), BTreeMap::new());
                let answer = session.post(ENVIRONMENT.path, &body, |environment| {
                    let id = environment.text("id");
                    format!("environment {} is created ({id})", environment.text("name"))
                });
                let name = answer.await?.text("name");
                settings.warn_of_secrets(session);
                session.hint(&format!("work in it with --env {}", quoted(&name)));
                Ok(())
            }
            Self::Update {
                environment,
                name,
                settings,
            } => change(session, &environment, name.as_deref(), &settings).await,
            Self::Delete {
                environment,
                consent,
            } => {
                let found = existing(client, &environment).await?;
                if !consent.is_given() {
                    check_deletion(client, &found).await?;
                }
                consent.ask(&format!(
                    "environment {environment} {} be deleted, unless API keys or policies name it",
                    consent.will()
                ))?;
                client.delete(&path(&environment)).await?;
                session.done(&format!("environment {environment} is deleted"))
            }
        }
    }
}

/// Kinds of things in an environment, each with its words.
const CONTENTS: [(&Noun, &str); 5] = [
    (&FLOW, "flows"),
    (&INSTANCE, "connector instances"),
    (&TABLE, "lookup tables"),
    (&ADAPTER, "adapters"),
    (&API, "published APIs"),
];

/// Returns the path of the environment of this id or name.
fn path(environment: &str) -> String {
    ENVIRONMENT.at(environment)
}

/// Returns the environment of this id or name.
async fn existing(client: &Client, environment: &str) -> Result<Json> {
    match client.get(&path(environment), &[]).await {
        Err(error) if Refusal::has_status(&error, 404) => {
            let near = client.near(&ENVIRONMENT, environment).await;
            Err(failure(format!(
                "no environment is called {environment:?}{near}\n`{}` shows those there are",
                ENVIRONMENT.list
            )))
        }
        found => found,
    }
}

/// Changes an environment. The service replaces all variables at once, so that an environment which
/// somebody else has changed meanwhile is read again.
async fn change(
    session: &Session,
    environment: &str,
    name: Option<&str>,
    settings: &Settings,
) -> Result<()> {
    loop {
        let found = existing(&session.client, environment).await?;
        let former = variables(&found);
        settings.check_variables(&former)?;
        let changes = settings.with_name(name, former);
        let path = path(environment);
        let text = |answer: &Json| format!("environment {} is changed", answer.text("name"));
        let etag = found.text("etag");
        let changed = session.change_if(&path, &etag, &changes, "give a flag", text);
        match changed.await {
            Err(error) if Refusal::has_code(&error, Code::Aborted) => {}
            changed => {
                settings.warn_of_secrets(session);
                return changed;
            }
        }
    }
}

/// Errors when the service would refuse to delete an environment, because it is the default one, or
/// something is in it.
async fn check_deletion(client: &Client, found: &Json) -> Result<()> {
    let name = found.text("name");
    let refused = |text: String| Err(Refusal::of(&kanat_model::Error::precondition(text)).into());
    if found.text("isDefault") == "true" {
        return refused(format!(
            "environment {name:?} is the default one, which stays"
        ));
    }
    let there = client.in_environment(found.text("id"));
    let mut contents = Vec::new();
    for (noun, kind) in CONTENTS {
        let answer = there.page(noun.path, &[("limit", "1".to_owned())]).await?;
        let total = answer.text("pagination.total");
        if !matches!(total.as_str(), "" | "0") {
            contents.push(format!("{kind} ({total})"));
        }
    }
    if contents.is_empty() {
        return Ok(());
    }
    refused(format!(
        "environment {name:?} is not empty, delete first: {}",
        contents.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Update {
        #[command(flatten)]
        settings: Settings,
    }

    #[test]
    fn a_variable_is_given_once_and_taken_away_where_there_is_one() {
        let former = BTreeMap::from([("REGION".to_owned(), "eu".to_owned())]);
        let fault = |arguments: &str| {
            let arguments = ["update"].into_iter().chain(arguments.split(' '));
            let checked = Update::parse_from(arguments)
                .settings
                .check_variables(&former);
            checked.map_err(|error| error.to_string()).err()
        };
        assert_eq!(fault("--remove-variable REGION --variable A=1"), None);
        assert_eq!(
            fault("--remove-variable REGIN").as_deref(),
            Some("the environment has no variable \"REGIN\"; did you mean \"REGION\"")
        );
        assert_eq!(
            fault("--variable A=1 --variable A=2").as_deref(),
            Some("--variable A is given twice")
        );
        assert!(fault("--variable REGION=us --remove-variable REGION").is_some());
    }
}
