//! Definitions in files: creating, updating and checking them.

use anyhow::Result;
use serde_json::json;

use super::{diagnostics, folder, show};
use crate::client::Refusal;
use crate::client::name::FLOW;
use crate::commands::hint::quoted;
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
    /// Description of the flow [default: the one in the definition].
    #[arg(long)]
    description: Option<String>,
}

/// Arguments of `kanat flow update`.
#[derive(clap::Args)]
pub struct Update {
    flow: String,
    /// YAML file with the definition; `-` is standard input.
    file: String,
    /// Summary of the change.
    #[arg(long)]
    summary: Option<String>,
    /// Give the flow the name in the file.
    #[arg(long)]
    rename: bool,
}

/// Arguments of `kanat flow validate`. Names are checked where a service and an API key are at
/// hand.
#[derive(clap::Args)]
pub struct Validate {
    /// YAML file, or a folder of which every `.yaml` and `.yml` file is checked, those of
    /// subfolders too; `-` is standard input.
    path: String,
    /// Fail for warnings too, such as a table that does not exist.
    #[arg(long)]
    strict: bool,
}

impl Create {
    pub async fn run(self, session: &Session) -> Result<()> {
        let text = input::text(&self.file)?;
        let file = input::name(&self.file);
        let body = json!({
            "name": self.name, "description": self.description, "yamlConfig": text,
        });
        let created = session.client.post(FLOW.path, &body).await;
        let flow = created.map_err(|error| match error.downcast_ref::<Refusal>() {
            Some(refusal) if refusal.code == "ALREADY_EXISTS" => failure(format!(
                "{error:#}\nchange it with `kanat flow update`, or create and change alike with \
                 `kanat flow apply`"
            )),
            Some(_) | None => diagnostics::explain(file, &text, error),
        })?;
        drafted(session, file, &flow)
    }
}

impl Update {
    pub async fn run(self, session: &Session) -> Result<()> {
        let text = input::text(&self.file)?;
        let path = session.client.path(&FLOW, &self.flow).await?;
        let before = session.client.get(&path, &[]).await?;
        let name = self.name(&before, &text)?;
        let body = json!({ "name": name, "yamlConfig": text, "changeSummary": self.summary });
        let file = input::name(&self.file);
        let updated = session.client.patch(&path, &Json::given(body)).await;
        let flow = updated.map_err(|error| diagnostics::explain(file, &text, error))?;
        if !show::runs_definition(&flow) {
            return drafted(session, file, &flow);
        }
        session.print(&flow, |flow| show::redrafted(&before, flow))?;
        warn(file, &flow);
        Ok(())
    }

    /// The name that the flow is given; none when it keeps its own. A file of another flow is taken
    /// for a mistake.
    fn name(&self, flow: &Json, yaml: &str) -> Result<Option<String>> {
        // The service reports the faults of the definition.
        let Ok(definition) = kanat_flow::parse(yaml) else {
            return Ok(None);
        };
        if self.rename {
            return Ok(Some(definition.name));
        }
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

/// Prints a draft that was created or changed, its warnings, and the command that deploys it.
fn drafted(session: &Session, file: &str, flow: &Json) -> Result<()> {
    session.print(flow, show::draft)?;
    warn(file, flow);
    session.hint(&format!(
        "make it live with `kanat flow deploy {}`",
        quoted(&flow.text("name"))
    ));
    Ok(())
}

/// Prints the warnings about a definition.
fn warn(file: &str, flow: &Json) {
    let warnings = diagnostics::faults(flow, "warnings");
    if !warnings.is_empty() {
        diagnostics::complain(file, &flow.text("yamlConfig"), &warnings);
    }
}

impl Validate {
    /// Fails when a definition has errors; warnings alone are no failure, unless they are to be.
    pub async fn run(self, session: &Session) -> Result<()> {
        let files = folder::files(&self.path)?;
        let mut failures = Vec::new();
        let mut reason = None;
        let mut names = Vec::new();
        for file in &files {
            let text = input::text(file)?;
            let (failed, unchecked) = self.check(session, file, &text).await?;
            failures.extend(failed);
            reason = unchecked.or(reason);
            let definition = kanat_flow::parse(&text).ok();
            names.extend(definition.map(|definition| (definition.name, file.clone())));
        }
        if let Some(reason) = reason {
            session.hint(&format!(
                "names of tables, connectors and adapters are not checked: {reason}"
            ));
        }
        let named = names
            .iter()
            .map(|(name, file)| (name.as_str(), file.as_str()));
        let repeated = folder::repeated(named);
        match (failures.len(), failures.pop()) {
            (0, _) | (_, None) => repeated.map_or(Ok(()), |error| Err(usage(error))),
            (1, Some(failed)) => Err(failure(failed)),
            (wrong, Some(_)) => Err(failure(format!(
                "{wrong} of {} definitions are wrong",
                files.len()
            ))),
        }
    }

    /// Prints what is wrong with a file. Returns the failure, if it is one, and why names were not
    /// checked, if they were not.
    async fn check(
        &self,
        session: &Session,
        file: &str,
        text: &str,
    ) -> Result<(Option<String>, Option<String>)> {
        let (answer, unchecked) = validate(session, text).await?;
        let errors = diagnostics::faults(&answer, "errors");
        let warnings = diagnostics::faults(&answer, "warnings");
        let file = input::name(file);
        let all = [errors.as_slice(), warnings.as_slice()].concat();
        session.print(&answer, |_| diagnostics::report(file, text, &all))?;
        let failed = match (errors.len(), warnings.len()) {
            (0, 0) => None,
            (0, _) if !self.strict => None,
            (0, 1) => Some(format!("{file} has 1 warning")),
            (0, warnings) => Some(format!("{file} has {warnings} warnings")),
            (errors, _) => Some(format!("{file} has {}", diagnostics::counted(errors))),
        };
        if failed.is_none() {
            session.done(&format!("{file} is valid"))?;
        }
        Ok((failed, unchecked))
    }
}

/// Asks the service, which knows the names of the environment. Without one the definition is
/// checked by itself, and the reason is given.
async fn validate(session: &Session, text: &str) -> Result<(Json, Option<String>)> {
    let alone = || diagnostics::check(text);
    if !session.client.has_credential() {
        return Ok((alone(), Some("no API key is given".to_owned())));
    }
    let body = json!({ "yamlConfig": text });
    match session.client.check("/flows/validate", &body).await {
        Ok(answer) => Ok((answer, None)),
        Err(error) if Refusal::has_status(&error, 400) => Err(error),
        Err(error) => Ok((alone(), error.to_string().lines().next().map(str::to_owned))),
    }
}
