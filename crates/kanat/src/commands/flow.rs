//! `kanat flow`: definitions, versions and what runs.

mod apply;
mod definition;
mod diagnostics;
mod diff;
mod dry_run;
mod folder;
mod show;
mod test;

use std::num::ParseIntError;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::rotation::Rotation;
use super::{Page, Session, input, schedule};
use crate::client::Refusal;
use crate::client::name::FLOW;
use crate::exit::failure;
use crate::output::Json;

/// Commands for flows. A flow is named by its id or its name.
#[derive(Subcommand)]
pub enum Command {
    /// Create a draft from a YAML definition.
    Create(definition::Create),
    /// Replace the definition of a flow; what runs stays as it is until the next deploy.
    Update(definition::Update),
    /// Create or update flows of YAML definitions, and deploy them; those that are paused stay
    /// paused.
    Apply(apply::Apply),
    /// Check YAML definitions without keeping them.
    Validate(definition::Validate),
    /// Print the JSON Schema of definitions, for editors; it needs no service.
    Schema,
    /// List the flows of the environment.
    List {
        /// `draft`, `active` or `paused`.
        #[arg(long)]
        status: Option<String>,
        /// Looks into name and description.
        #[arg(long)]
        search: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one flow with its definition.
    Show { flow: String },
    /// Run the draft on sample data and send nothing; show the calls that a run would make.
    Test(test::Test),
    /// Show what differs between two versions, or between a version and the draft.
    Diff(diff::Diff),
    /// Validate, compile, keep a version and make it live on every node.
    Deploy {
        flow: String,
        /// Summary of the change, for the list of versions.
        #[arg(long)]
        summary: Option<String>,
        /// Leave a paused flow paused.
        #[arg(long)]
        keep_paused: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Hold the flow's messages; they are accepted and kept.
    Pause { flow: String },
    /// Run what was held and take messages again.
    Resume { flow: String },
    /// Start a deployed flow by hand.
    Run {
        flow: String,
        /// JSON file with the payload, or a text: one whose name ends with `.csv`, `.tsv` or
        /// `.xml`; `-` is standard input [default: of a scheduled flow the payload of its
        /// schedule, else null; required where the trigger is poll].
        #[arg(long)]
        data: Option<String>,
    },
    /// List the deployed versions.
    Versions {
        flow: String,
        #[command(flatten)]
        page: Page,
    },
    /// Deploy an earlier version again, as a new one.
    Rollback {
        flow: String,
        /// Number of the version.
        #[arg(value_parser = version_number)]
        version: u32,
        /// Throw away a draft that is not deployed.
        #[arg(long)]
        discard_draft: bool,
        #[command(flatten)]
        consent: Consent,
    },
    /// Make a new webhook address.
    RotateWebhookToken {
        flow: String,
        #[command(flatten)]
        rotation: Rotation,
    },
    /// Take a flow out of service; its messages stay readable by their ids, and by no name.
    Delete {
        flow: String,
        #[command(flatten)]
        consent: Consent,
    },
}

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::Update(update) => update.run(session).await,
            Self::Apply(apply) => apply.run(session).await,
            Self::Validate(validate) => validate.run(session).await,
            Self::Schema => crate::output::line(&kanat_flow::language::schema()),
            Self::Test(test) => test.run(session).await,
            Self::Diff(diff) => diff.run(session).await,
            Self::List {
                status,
                search,
                page,
            } => {
                let query = page.with([("status", status), ("search", search)]);
                session.list(FLOW.path, query, show::COLUMNS).await
            }
            Self::Show { flow } => {
                let path = session.client.path(&FLOW, &flow).await?;
                let found = session.client.get(&path, &[]).await?;
                session.print(&found, show::whole)?;
                let standing = schedule::standing(&session.client, &found).await?;
                for hint in show::difference(&found).into_iter().chain(standing) {
                    session.hint(&hint);
                }
                Ok(())
            }
            Self::Deploy {
                flow,
                summary,
                keep_paused,
                consent,
            } => {
                let path = session.client.path(&FLOW, &flow).await?;
                let before = session.client.get(&path, &[]).await?;
                let what = match before.text("draft").as_str() {
                    "false" if show::effects_of_deploy(&before).is_empty() => {
                        "runs as its definition says"
                    }
                    _ => "will be deployed",
                };
                hint_of_effects(session, &before);
                if consent.is_dry_run() {
                    let name = format!("flow {}", before.text("name"));
                    match before.text("draft").as_str() {
                        // It says of what runs whether a deploy would be refused.
                        "false" => dry_run::refuse(&name, &before.text("yamlConfig"), &before)?,
                        _ => dry_run::check(session, &name, &before).await?,
                    }
                }
                if keep_paused {
                    consent.announce(&format!("flow {flow} {what}, and stays paused if it is"))?;
                } else {
                    resumes(session, &before, &flow, what, consent).await?;
                }
                let body = json!({ "keepPaused": keep_paused, "changeSummary": summary });
                let body = Json::given(body);
                let deploy = format!("{path}/deploy");
                let deployed = session.client.post(&deploy, &body);
                let deployed = match deployed.await {
                    Ok(deployed) => deployed,
                    Err(error) => {
                        return Err(diagnostics::explain_stored(session, &path, error).await);
                    }
                };
                session.print(&deployed, |flow| show::deployed_after(&before, flow))?;
                hint_of_deployed(session, &path, &deployed).await
            }
            Self::Pause { flow } => bring_to(session, &flow, "paused", "pause").await,
            Self::Resume { flow } => bring_to(session, &flow, "active", "resume").await,
            Self::Run { flow, data } => run(session, &flow, data.as_deref()).await,
            Self::Versions { flow, page } => {
                let path = session.client.path(&FLOW, &flow).await?;
                let path = format!("{path}/versions");
                session
                    .list(&path, page.with([]), show::VERSION_COLUMNS)
                    .await
            }
            Self::Rollback {
                flow,
                version,
                discard_draft,
                consent,
            } => {
                let path = session.client.path(&FLOW, &flow).await?;
                let found = session.client.get(&path, &[]).await?;
                let loses = show::difference(&found).is_some();
                if loses && !discard_draft {
                    return Err(failure(format!(
                        "flow {flow} has a draft that is not deployed, and a rollback would throw \
                         it away: deploy it first, or give --discard-draft\nsee what differs with \
                         `kanat flow diff {}`",
                        quoted(&flow)
                    )));
                }
                let earlier = format!("{path}/versions/{version}");
                let earlier = session.client.get(&earlier, &[]).await?;
                if consent.is_dry_run() {
                    let name = format!("flow {}", found.text("name"));
                    dry_run::check(session, &name, &earlier).await?;
                }
                let draft = match loses {
                    true => ", and its draft will be thrown away",
                    false => "",
                };
                let what = format!("will run version {version} again{draft}");
                hint_of_effects(session, &earlier);
                resumes(session, &found, &flow, &what, consent).await?;
                let body = json!({ "versionNumber": version, "discardDraft": discard_draft });
                let rolled_back = session
                    .post(&format!("{path}/rollback"), &body, show::deployed)
                    .await?;
                hint_of_deployed(session, &path, &rolled_back).await
            }
            Self::RotateWebhookToken { flow, rotation } => rotate(session, &flow, &rotation).await,
            Self::Delete { flow, consent } => delete(session, &flow, consent).await,
        }
    }
}

/// Brings a flow to a status by the verb that leads there. Scripts do so with flows that may have
/// it already: that is no fault.
async fn bring_to(session: &Session, flow: &str, status: &str, verb: &str) -> Result<()> {
    let path = session.client.path(&FLOW, flow).await?;
    let found = session.client.get(&path, &[]).await?;
    if found.text("status") == status {
        return session.print(&found, |flow| {
            format!("flow {} is {status} already", flow.text("name"))
        });
    }
    let brought = |flow: &Json| format!("flow {} is {}", flow.text("name"), flow.text("status"));
    session
        .post(&format!("{path}/{verb}"), &json!({}), brought)
        .await
        .map(drop)
}

async fn run(session: &Session, flow: &str, data: Option<&str>) -> Result<()> {
    let path = session.client.path(&FLOW, flow).await?;
    let payload = data.map(|data| input::payload(data, None)).transpose()?;
    let given = payload.is_some();
    if !given {
        let found = session.client.get(&path, &[]).await?;
        if let Some(schedule) = schedule::of_flow(&session.client, &found.text("id")).await? {
            return schedule::trigger(session, flow, &schedule).await;
        }
    }
    let body = Json::from(json!({})).with([("payload", payload)]);
    let answer = session.client.post(&format!("{path}/run"), &body).await;
    let answer = answer.map_err(|error| match error.downcast_ref::<Refusal>() {
        Some(refusal) if !given && refusal.details.iter().any(|(field, _)| field == "payload") => {
            error.context(format!(
                "flow {flow} does not run without a payload: give it with --data FILE"
            ))
        }
        Some(_) | None => error,
    })?;
    let id = answer.text("messageId");
    session.print(&answer, |answer| {
        format!("{} as {id}", answer.text("status"))
    })?;
    session.hint(&format!("look at it with `kanat message show {id}`"));
    schedule::hint_pause(session, &session.client.get(&path, &[]).await?);
    Ok(())
}

/// Asks before a deploy lets a paused flow run again, and says how many messages go on; of another
/// flow it announces `what`.
async fn resumes(
    session: &Session,
    found: &Json,
    flow: &str,
    what: &str,
    consent: Consent,
) -> Result<()> {
    if found.text("status") != "paused" {
        return consent.announce(&format!("flow {flow} {what}"));
    }
    let held = count(session, &found.text("id"), "held").await?;
    consent.ask(&format!(
        "flow {flow} is paused and will run again; held messages that go on: {held}"
    ))
}

/// Reads the number of a version, which may be written as that of an API: `v2`.
fn version_number(text: &str) -> Result<u32, ParseIntError> {
    text.strip_prefix('v').unwrap_or(text).parse()
}

/// Says of a flow that was deployed what it is warned of, and when it is due. What has changed
/// around it since its check may keep senders out, too.
async fn hint_of_deployed(session: &Session, path: &str, deployed: &Json) -> Result<()> {
    let checked = session.client.get(path, &[]).await?;
    let warnings = show::warnings(&checked);
    if !warnings.is_empty() {
        session.hint(warnings.trim_end());
    }
    if let Some(standing) = schedule::standing(&session.client, deployed).await? {
        session.hint(&standing);
    }
    Ok(())
}

/// Says what a deploy of the flow changes beside its definition.
fn hint_of_effects(session: &Session, flow: &Json) {
    for effect in show::effects_of_deploy(flow) {
        session.hint(&effect);
    }
}

/// Returns the number of messages of a flow that have this status.
async fn count(session: &Session, flow_id: &str, status: &str) -> Result<u64> {
    let query = [("flowId", flow_id), ("status", status), ("limit", "1")];
    let query = query.map(|(name, value)| (name, value.to_owned()));
    let answer = session.client.get("/messages", &query).await?;
    Ok(answer.text("pagination.total").parse().unwrap_or(0))
}

/// Prints the new webhook address, and what becomes of the former one.
async fn rotate(session: &Session, flow: &str, rotation: &Rotation) -> Result<()> {
    let path = session.client.path(&FLOW, flow).await?;
    if !rotation.is_given() {
        let found = session.client.get(&path, &[]).await?;
        if found.text("config.source.trigger") != "webhook" {
            let text = "only a flow with the trigger webhook has a token";
            let error = kanat_model::Error::precondition(text);
            return Err(Refusal::of(&error).into());
        }
    }
    let what = format!("the webhook address of flow {flow}");
    let ends = "calls to it get 404, as do those to former addresses that are still taken";
    rotation.ask(&what, ends)?;
    let body = json!({ "gracePeriod": rotation.grace });
    let path = format!("{path}/rotate-webhook-token");
    let rotated = session.post(&path, &body, |flow| flow.text("webhookUrl"));
    let at = rotated.await?.text("updatedAt");
    session.hint(&rotation.notice("address", &at));
    Ok(())
}

async fn delete(session: &Session, flow: &str, consent: Consent) -> Result<()> {
    let id = session.client.id(&FLOW, flow).await?;
    let ends = match consent.is_given() {
        true => String::new(),
        false => {
            session.client.get(&FLOW.at(&id), &[]).await?;
            ends_with(session, &id).await?
        }
    };
    consent.ask(&format!(
        "flow {flow} ({id}) {} be deleted, and its webhook address if it has one, unless \
         published APIs call it{ends}",
        consent.will()
    ))?;
    session.client.delete(&FLOW.at(&id)).await?;
    session.done(&format!("flow {flow} is deleted"))
}

/// Tells of the messages and the records of batch jobs that end with a flow.
async fn ends_with(session: &Session, flow_id: &str) -> Result<String> {
    let mut waiting = 0;
    for status in ["received", "retrying", "held"] {
        waiting += count(session, flow_id, status).await?;
    }
    let running = count(session, flow_id, "processing").await?;
    let mut text = format!(
        "; messages that wait, and would never be sent: {waiting}; messages under way, which \
         would be broken off: {running}"
    );
    let query = [("flowId", flow_id.to_owned()), ("limit", "500".to_owned())];
    let jobs = session.client.get("/batch-jobs", &query).await?;
    for job in jobs.list("data") {
        if matches!(job.text("status").as_str(), "queued" | "running") {
            let number = |path| job.text(path).parse().unwrap_or(0_u64);
            let left = number("total").saturating_sub(number("processed"));
            text.push_str(&format!(
                "; batch job {} is {}, and {left} of its {} records would fail",
                job.text("id"),
                job.text("status"),
                job.text("total")
            ));
        }
    }
    Ok(text)
}
