//! Definitions in files: creating, updating and checking them.

use anyhow::Result;
use serde::Serialize;

use super::{diagnostics, show};
use crate::client::Refusal;
use crate::client::name::FLOW;
use crate::commands::{Session, input};
use crate::exit::{failure, usage};
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
    /// Give the flow the name in the file.
    #[arg(long)]
    rename: bool,
}

/// Arguments of `kanat flow validate`. Names are checked where a service and an API key are at hand.
#[derive(clap::Args)]
pub struct Validate {
    /// YAML file with the definition; `-` is standard input.
    file: String,
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
        let Self { name, description, file } = self;
        let file = input::name(&file);
        let body = Definition { name, description, yaml_config, change_summary: None };
        let created = session.client.post(FLOW.path, &body).await;
        let flow = created.map_err(|error| diagnostics::explain(file, &body.yaml_config, error))?;
        drafted(session, file, &flow)
    }
}

impl Update {
    pub async fn run(self, session: &Session) -> Result<()> {
        let yaml_config = input::text(&self.file)?;
        let path = session.client.path(&FLOW, &self.flow).await?;
        let name = self.name(session, &path, &yaml_config).await?;
        let body = Definition { name, yaml_config, change_summary: self.summary, ..Definition::default() };
        let file = input::name(&self.file);
        let updated = session.client.patch(&path, &body).await;
        let flow = updated.map_err(|error| diagnostics::explain(file, &body.yaml_config, error))?;
        drafted(session, file, &flow)
    }

    /// The name that the flow is given; none when it keeps its own. A file of another flow is taken for a mistake.
    async fn name(&self, session: &Session, path: &str, yaml: &str) -> Result<Option<String>> {
        // What is wrong with the definition is the service's to tell.
        let Ok(definition) = kanat_flow::parse(yaml) else { return Ok(None) };
        if self.rename {
            return Ok(Some(definition.name));
        }
        let flow = session.client.get(path, &[]).await?;
        if [flow.text("name"), flow.text("config.flow")].contains(&definition.name) {
            return Ok(None);
        }
        Err(usage(format!(
            "{} is a definition of flow {:?}, not of {:?}: give --rename to call it so from now on",
            input::name(&self.file),
            definition.name,
            flow.text("name"),
        )))
    }
}

/// Prints a draft that was created or changed, and tells what it lacks and how it becomes live.
fn drafted(session: &Session, file: &str, flow: &Json) -> Result<()> {
    session.print(flow, show::draft)?;
    let warnings = diagnostics::faults(flow, "warnings");
    if !warnings.is_empty() {
        diagnostics::complain(file, &flow.text("yamlConfig"), &warnings);
    }
    session.hint(&format!("make it live with `kanat flow deploy {}`", flow.text("name")));
    Ok(())
}

impl Validate {
    /// Fails when the definition has errors; warnings alone are no failure.
    pub async fn run(self, session: &Session) -> Result<()> {
        let body = Definition { yaml_config: input::text(&self.file)?, ..Definition::default() };
        let (answer, unchecked) = validate(session, &body).await?;
        let (errors, warnings) = (diagnostics::faults(&answer, "errors"), diagnostics::faults(&answer, "warnings"));
        let file = input::name(&self.file);
        let all = [errors.as_slice(), warnings.as_slice()].concat();
        session.print(&answer, |_| diagnostics::report(file, &body.yaml_config, &all))?;
        if let Some(reason) = unchecked {
            session.hint(&format!("names of tables, connectors and adapters are not checked: {reason}"));
        }
        if errors.is_empty() {
            return session.done(&format!("{file} is valid"));
        }
        Err(failure(format!("{file} has {}", diagnostics::counted(errors.len()))))
    }
}

/// Asks the service, which knows the names of the environment. Without one the definition is checked by itself, and the
/// reason is given.
async fn validate(session: &Session, body: &Definition) -> Result<(Json, Option<String>)> {
    let alone = || diagnostics::check(&body.yaml_config);
    if !session.client.has_key() {
        return Ok((alone()?, Some("no API key is given".to_owned())));
    }
    match session.client.post("/flows/validate", body).await {
        Ok(answer) => Ok((answer, None)),
        Err(error) if error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.status == 400) => Err(error),
        Err(error) => Ok((alone()?, error.to_string().lines().next().map(str::to_owned))),
    }
}
