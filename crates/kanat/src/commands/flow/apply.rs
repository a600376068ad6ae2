//! `kanat flow apply`: the definitions of a file or a folder become flows that run.

use anyhow::Result;
use kanat_flow::{Diagnostic, Severity};
use serde_json::json;

use super::{diagnostics, folder, show};
use crate::client::Refusal;
use crate::client::name::FLOW;
use crate::commands::hint::quoted;
use crate::commands::{Session, input, schedule};
use crate::exit::{failure, usage};
use crate::output::Json;

/// Arguments of `kanat flow apply`.
#[derive(clap::Args)]
pub struct Apply {
    /// YAML file, or a folder of which every `.yaml` and `.yml` file is applied, those of
    /// subfolders too, in order of their paths; `-` is standard input.
    path: String,
    /// Summary of the change, for the list of versions.
    #[arg(long)]
    summary: Option<String>,
    /// Throw away drafts that are not deployed.
    #[arg(long)]
    discard_draft: bool,
}

/// A definition that is right by itself.
struct Source {
    name: String,
    file: String,
    text: String,
}

/// A definition with faults.
struct Wrong {
    file: String,
    text: String,
    faults: Vec<Diagnostic>,
}

impl Apply {
    /// Applies nothing when a definition is wrong or names what the environment lacks, and the
    /// others when the service refuses one for another reason.
    pub async fn run(self, session: &Session) -> Result<()> {
        let files = folder::files(&self.path)?;
        let (sources, wrong) = read(&files)?;
        if !wrong.is_empty() {
            refuse_stranger(session).await?;
        }
        for Wrong { file, text, faults } in &wrong {
            diagnostics::complain(file, text, faults);
        }
        nothing_if(wrong.len(), files.len())?;
        unique(&sources)?;
        let mut flows = Vec::with_capacity(sources.len());
        for source in &sources {
            flows.push(existing(session, source).await?);
        }
        if !self.discard_draft {
            keep_drafts(sources.iter().zip(&flows))?;
        }
        check(session, sources.iter().zip(&flows)).await?;
        let mut refused = 0;
        let count = sources.len();
        for (source, flow) in sources.iter().zip(flows) {
            if let Err(error) = self.apply(session, source, flow).await {
                refused += 1;
                if count == 1 {
                    return Err(error);
                }
                let told = format!("{error:#}");
                session.complain(&match told.starts_with(&source.file) {
                    true => told,
                    false => format!("{}: {told}", source.file),
                });
            }
        }
        match refused {
            0 => Ok(()),
            _ => Err(failure(format!(
                "{refused} of {count} definitions were not applied"
            ))),
        }
    }

    async fn apply(&self, session: &Session, source: &Source, before: Option<Json>) -> Result<()> {
        let client = &session.client;
        let body = json!({ "yamlConfig": source.text });
        let explain = |error| diagnostics::explain(&source.file, &source.text, error);
        let flow = match &before {
            None => client.post(FLOW.path, &body).await.map_err(explain)?,
            Some(flow) if flow.text("yamlConfig") == source.text => flow.clone(),
            Some(flow) => client.patch(&path(flow), &body).await.map_err(explain)?,
        };
        let running = flow.text("version");
        super::hint_of_effects(session, &flow);
        // A paused flow goes on holding its messages.
        let deploy = Json::given(json!({ "keepPaused": true, "changeSummary": self.summary }));
        let path = format!("{}/deploy", path(&flow));
        let deployed = client.post(&path, &deploy).await;
        let answer = deployed.map_err(|error| match error.is::<Refusal>() {
            true => kept(&flow, &explain(error)),
            false => error,
        })?;
        session.print(&answer, |flow| {
            let name = flow.text("name");
            let status = flow.text("status");
            let version = flow.text("version");
            let done = match &before {
                None => "is created",
                Some(_) if version == running => "is unchanged",
                Some(_) => "is updated",
            };
            let address = match flow.has("webhookUrl") && before.is_none() {
                true => format!("\npost to {}", flow.text("webhookUrl")),
                false => String::new(),
            };
            format!("flow {name} {done} ({status}, version {version}){address}")
        })?;
        if let Some(standing) = schedule::standing(client, &answer).await? {
            session.hint(&standing);
        }
        Ok(())
    }
}

/// The flow of a definition's name, if there is one.
async fn existing(session: &Session, source: &Source) -> Result<Option<Json>> {
    match session.client.find(&FLOW, &source.name).await? {
        Some(id) => session.client.get(&FLOW.at(&id), &[]).await.map(Some),
        None => Ok(None),
    }
}

/// Errors when the caller may change no flow in the environment. A caller that the service refuses
/// has no use for advice on definitions, so that the refusal comes before it. The request has no
/// definition: for other callers it changes nothing.
async fn refuse_stranger(session: &Session) -> Result<()> {
    match session.client.post(FLOW.path, &json!({})).await {
        Err(error) if Refusal::has_status(&error, 403) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Asks the service about every definition before it gets one to keep. What runs already is not
/// refused: it goes on whatever has changed around it, and is told of.
async fn check(
    session: &Session,
    sources: impl ExactSizeIterator<Item = (&Source, &Option<Json>)>,
) -> Result<()> {
    let mut refused = 0;
    let count = sources.len();
    let mut is_permitted = false;
    for (source, flow) in sources {
        let body = json!({ "yamlConfig": source.text });
        let answer = session.client.check("/flows/validate", &body).await?;
        let has_faults = ["errors", "warnings"]
            .iter()
            .any(|found| !answer.list(found).is_empty());
        if has_faults && !is_permitted {
            refuse_stranger(session).await?;
            is_permitted = true;
        }
        let flow = flow.as_ref().filter(|flow| runs(flow, &source.text));
        let severity = match flow {
            Some(_) => Severity::Warning,
            None => Severity::Error,
        };
        let faults = diagnostics::refusals(&answer, severity);
        if faults.is_empty() {
            let warnings = diagnostics::faults(&answer, "warnings");
            if !warnings.is_empty() {
                diagnostics::complain(&source.file, &source.text, &warnings);
            }
            continue;
        }
        diagnostics::complain(&source.file, &source.text, &faults);
        match flow {
            Some(flow) => session.hint(&format!(
                "flow {} runs this definition and goes on; it could not be deployed anew",
                flow.text("name")
            )),
            None => refused += 1,
        }
    }
    nothing_if(refused, count)
}

/// Errors when a deployed flow has a draft of another definition, which would be lost.
fn keep_drafts<'s>(sources: impl Iterator<Item = (&'s Source, &'s Option<Json>)>) -> Result<()> {
    let lost: Vec<String> = sources
        .filter_map(|(source, flow)| {
            let flow = flow.as_ref().filter(|flow| show::is_changed(flow))?;
            (flow.text("yamlConfig") != source.text).then(|| flow.text("name"))
        })
        .collect();
    let Some(first) = lost.first() else {
        return Ok(());
    };
    Err(failure(format!(
        "nothing was applied: it would throw away drafts that are not deployed, of {}: deploy them \
         first, or give --discard-draft\nsee what differs with `kanat flow diff {}`",
        lost.join(", "),
        quoted(first)
    )))
}

/// Returns whether a deployed flow has this definition and no draft beside it.
fn runs(flow: &Json, text: &str) -> bool {
    !flow.text("deployedVersion").is_empty()
        && flow.text("draft") != "true"
        && flow.text("yamlConfig") == text
}

/// The error of a deploy that the service refused, and what became of the definition.
fn kept(flow: &Json, error: &anyhow::Error) -> anyhow::Error {
    let name = flow.text("name");
    let running = flow.text("deployedVersion");
    let kept = match running.as_str() {
        _ if flow.text("draft") != "true" => String::new(),
        "" => format!("\nthe definition is kept as a draft: flow {name} does not run"),
        version => {
            format!("\nthe definition is kept as a draft: flow {name} goes on as version {version}")
        }
    };
    failure(format!("{error:#}{kept}"))
}

/// Errors when definitions are wrong: then none is applied.
fn nothing_if(wrong: usize, count: usize) -> Result<()> {
    match wrong {
        0 => Ok(()),
        _ => Err(failure(format!(
            "nothing was applied: {wrong} of {count} definitions are wrong"
        ))),
    }
}

fn path(flow: &Json) -> String {
    FLOW.at(&flow.text("id"))
}

/// Reads the definitions in `files`, the right ones and the wrong ones.
fn read(files: &[String]) -> Result<(Vec<Source>, Vec<Wrong>)> {
    let mut sources = Vec::new();
    let mut wrong = Vec::new();
    for file in files {
        let text = input::text(file)?;
        let file = input::name(file).to_owned();
        match kanat_flow::parse(&text) {
            Ok(definition) => sources.push(Source {
                name: definition.name,
                file,
                text,
            }),
            Err(faults) => wrong.push(Wrong { file, text, faults }),
        }
    }
    Ok((sources, wrong))
}

/// Errors when two definitions are of one name.
fn unique(sources: &[Source]) -> Result<()> {
    let named = sources
        .iter()
        .map(|source| (source.name.as_str(), source.file.as_str()));
    match folder::repeated(named) {
        Some(error) => Err(usage(error)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_definitions_of_one_flow_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let text = "flow: x\nsource:\n  trigger: manual\ntarget:\n  connector: erp\n  endpoint: \
                    /\n  method: POST\n";
        let files = ["a.yaml", "b.yaml"].map(|name| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name).display().to_string()
        });
        let (sources, _) = read(&files).unwrap();
        let refused = unique(&sources).unwrap_err().to_string();
        assert!(refused.contains("both define the flow \"x\""), "{refused}");
    }

    #[test]
    fn a_refused_deploy_says_what_became_of_the_definition() {
        let report = |flow| kept(&Json::from(flow), &failure("no".to_owned())).to_string();
        assert_eq!(
            report(json!({"name": "quotes", "draft": true, "deployedVersion": 1})),
            "no\nthe definition is kept as a draft: flow quotes goes on as version 1"
        );
        assert_eq!(
            report(json!({"name": "quotes", "draft": true})),
            "no\nthe definition is kept as a draft: flow quotes does not run"
        );
        assert_eq!(report(json!({"name": "quotes", "draft": false})), "no");
    }
}
