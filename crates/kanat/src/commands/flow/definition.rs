//! Definitions in files: creating, updating, checking and testing them.

use anyhow::Result;
use serde::Serialize;
use serde_json::value::RawValue;

use super::show;
use crate::client::name::FLOW;
use crate::commands::{Session, input};
use crate::exit::failure;
use crate::output::Json;

/// Arguments of `kanat flow create`.
#[derive(clap::Args)]
pub struct Create {
    /// YAML file with the definition; `-` is standard input.
    file: String,
    /// Name of the flow [default: the one in the definition].
    #[arg(long)]
    name: Option<String>,
    /// What the flow is for [default: the one in the definition].
    #[arg(long)]
    description: Option<String>,
}

/// Arguments of `kanat flow update`.
#[derive(clap::Args)]
pub struct Update {
    flow: String,
    /// YAML file with the definition; `-` is standard input.
    file: String,
    /// What changed.
    #[arg(long)]
    summary: Option<String>,
}

/// Arguments of `kanat flow validate`.
#[derive(clap::Args)]
pub struct Validate {
    /// YAML file with the definition; `-` is standard input.
    file: String,
}

/// Arguments of `kanat flow test`.
#[derive(clap::Args)]
pub struct Test {
    flow: String,
    /// JSON file with the payload; `-` is standard input.
    #[arg(long)]
    data: String,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Definition {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    yaml_config: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    change_summary: Option<String>,
}

impl Create {
    pub async fn run(self, session: &Session) -> Result<()> {
        let yaml_config = input::text(&self.file)?;
        let Self { name, description, .. } = self;
        let body = Definition { name, description, yaml_config, change_summary: None };
        drafted(session, &session.client.post(FLOW.path, &body).await?)
    }
}

impl Update {
    pub async fn run(self, session: &Session) -> Result<()> {
        let yaml_config = input::text(&self.file)?;
        let path = session.client.path(&FLOW, &self.flow).await?;
        let body = Definition { yaml_config, change_summary: self.summary, ..Definition::default() };
        drafted(session, &session.client.patch(&path, &body).await?)
    }
}

/// Prints a draft that was created or changed, and tells what it lacks and how it becomes live.
fn drafted(session: &Session, flow: &Json) -> Result<()> {
    session.print(flow, show::draft)?;
    let deploy = format!("make it live with `kanat flow deploy {}`", flow.text("name"));
    session.hint(&(show::warnings(flow) + &deploy));
    Ok(())
}

impl Validate {
    /// Fails when the definition has errors; warnings alone are no failure.
    pub async fn run(self, session: &Session) -> Result<()> {
        let body = Definition { yaml_config: input::text(&self.file)?, ..Definition::default() };
        let answer = session.client.post("/flows/validate", &body).await?;
        let (errors, warnings) = (answer.list("errors"), answer.list("warnings"));
        let file = input::name(&self.file);
        session.print(&answer, |_| show::diagnostics(file, errors) + &show::diagnostics(file, warnings))?;
        if answer.text("valid") == "true" {
            return session.done(&format!("{file} is valid"));
        }
        Err(failure(format!("{file} has {} errors", errors.len())))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Sample {
    sample_data: Box<RawValue>,
}

impl Test {
    /// Fails when the mapping does.
    pub async fn run(self, session: &Session) -> Result<()> {
        let body = Sample { sample_data: input::json(&self.data)? };
        let path = session.client.path(&FLOW, &self.flow).await?;
        let answer = session.client.post(&format!("{path}/test"), &body).await?;
        session.print(&answer, show::test)?;
        match answer.list("errors").len() {
            0 => Ok(()),
            errors => Err(failure(format!("the test found {errors} errors"))),
        }
    }
}
