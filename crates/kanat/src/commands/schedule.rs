//! `kanat schedule`: when flows are due that the clock starts.

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::hint::quoted;
use super::{Page, Session};
use crate::client::Client;
use crate::client::name::{FLOW, segment};
use crate::exit::failure;
use crate::output::{Json, table};

const PATH: &str = "/schedules";

/// Beginning of the ids of schedules.
const PREFIX: &str = "sch_";

/// Commands for schedules. A schedule is named by its id, or by its flow's id or name.
#[derive(Subcommand)]
pub enum Command {
    /// List the schedules of the environment. Flows that poll are not among them: `kanat flow show`
    /// says when one polls next.
    List {
        /// Only that of this flow.
        #[arg(long)]
        flow: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show a schedule with the next times at which it is due.
    Show { schedule: String },
    /// Run the flow now, beside its cycle.
    Trigger { schedule: String },
    /// Change when the flow is due.
    Update {
        schedule: String,
        /// Five fields: minute, hour, day of month, month, day of week.
        #[arg(long)]
        cron: Option<String>,
        /// IANA name of a time zone.
        #[arg(long)]
        timezone: Option<String>,
        /// `true` lets the clock start the flow, `false` does not.
        #[arg(long)]
        enabled: Option<bool>,
    },
    /// Print the times at which a cron expression is due.
    Preview {
        /// Five fields, as one text.
        cron: String,
        /// IANA name of a time zone.
        #[arg(long, default_value = "UTC")]
        timezone: String,
        /// Times after this instant, ISO 8601 [default: now].
        #[arg(long)]
        after: Option<String>,
        /// How many.
        #[arg(long, default_value_t = 10)]
        count: u32,
    },
}

const COLUMNS: &str = "FLOW:flowName,CRON:cronExpression,TIMEZONE:timezone,ENABLED:enabled,\
                       NEXT RUN:nextRunAt,LAST RUN:lastRunAt,STATUS:lastRunStatus,ID:id";
const FIELDS: &str = "Flow:flowName,Cron:cronExpression,Timezone:timezone,Enabled:enabled,\
                      Last run:lastRunAt,Status:lastRunStatus,Message:lastMessageId,Id:id";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::List { flow, page } => {
                let flow = client.id_of(&FLOW, flow.as_deref()).await?;
                session
                    .list(PATH, page.with([("flowId", flow)]), COLUMNS)
                    .await
            }
            Self::Show { schedule } => {
                let answer = client.get(&path(client, &schedule).await?, &[]).await?;
                let flow = client.get(&FLOW.at(&answer.text("flowId")), &[]).await?;
                session.print(&answer, |schedule| whole(schedule, &flow))?;
                hint_pause(session, &flow);
                Ok(())
            }
            Self::Trigger { schedule } => {
                let path = path(client, &schedule).await?;
                trigger(session, &schedule, &path).await
            }
            Self::Update {
                schedule,
                cron,
                timezone,
                enabled,
            } => {
                let changes = Json::given(json!({
                    "cronExpression": cron, "timezone": timezone, "enabled": enabled,
                }));
                let advice = "give --cron, --timezone or --enabled";
                let path = path(client, &schedule).await?;
                let found = client.get(&path, &[]).await?;
                let flow = client.get(&FLOW.at(&found.text("flowId")), &[]).await?;
                session
                    .change(&path, &changes, advice, |schedule| whole(schedule, &flow))
                    .await?;
                hint_pause(session, &flow);
                Ok(())
            }
            Self::Preview {
                cron,
                timezone,
                after,
                count,
            } => {
                let body = json!({
                    "cronExpression": cron, "timezone": timezone, "after": after, "count": count,
                });
                session
                    .post(&format!("{PATH}/preview"), &body, |answer| {
                        lines(&answer.texts("times"))
                    })
                    .await
                    .map(drop)
            }
        }
    }
}

/// Runs the flow of the schedule at `path` now. `name` is what the command was given.
pub async fn trigger(session: &Session, name: &str, path: &str) -> Result<()> {
    let client = &session.client;
    let answer = client.post(&format!("{path}/trigger"), &json!({})).await?;
    let message = answer.text("messageId");
    session.print(&answer, |_| format!("{name} is started: {message}"))?;
    session.hint(&format!("look at it with `kanat message show {message}`"));
    let schedule = client.get(path, &[]).await?;
    let flow = client.get(&FLOW.at(&schedule.text("flowId")), &[]).await?;
    hint_pause(session, &flow);
    Ok(())
}

/// Says of a flow that is paused that what starts it waits.
pub fn hint_pause(session: &Session, flow: &Json) {
    if flow.text("status") == "paused" {
        let name = flow.text("name");
        let command = format!("kanat flow resume {}", quoted(&name));
        session.hint(&format!(
            "flow {name} is paused: what starts waits until `{command}`"
        ));
    }
}

/// The path of the schedule that `text` names.
async fn path(client: &Client, text: &str) -> Result<String> {
    if text.starts_with(PREFIX) {
        return Ok(format!("{PATH}/{}", segment(text)));
    }
    let id = client.id(&FLOW, text).await?;
    if let Some(path) = of_flow(client, &id).await? {
        return Ok(path);
    }
    let flow = client.get(&FLOW.at(&id), &[]).await?;
    Err(failure(if flow.text("config.source.trigger") == "poll" {
        let command = format!("kanat flow show {}", quoted(&flow.text("name")));
        format!(
            "flow {text} polls, by its own interval or source.schedule, and has no schedule that \
             can be changed here\n`{command}` shows when it polls next"
        )
    } else {
        format!(
            "flow {text} has no schedule: deploy it with the trigger schedule\n`kanat schedule \
             list` shows those there are"
        )
    }))
}

/// Returns the path of a flow's schedule; nothing for a flow without one.
pub async fn of_flow(client: &Client, flow_id: &str) -> Result<Option<String>> {
    let schedule = first_of(client, flow_id).await?;
    Ok(schedule.map(|schedule| format!("{PATH}/{}", segment(&schedule.text("id")))))
}

async fn first_of(client: &Client, flow_id: &str) -> Result<Option<Json>> {
    let answer = client.get(PATH, &[("flowId", flow_id.to_owned())]).await?;
    Ok(answer.list("data").first().cloned())
}

/// Says of a flow that the clock starts how its schedule stands: it may be another than that of the
/// definition, and it may be off. None for a flow without one.
pub async fn standing(client: &Client, flow: &Json) -> Result<Option<String>> {
    // The word stands in every definition that has a schedule.
    if !flow.text("yamlConfig").contains("schedule") || !flow.has("deployedVersion") {
        return Ok(None);
    }
    let schedule = first_of(client, &flow.text("id")).await?;
    Ok(schedule.map(|schedule| {
        let cron = schedule.text("cronExpression");
        let zone = schedule.text("timezone");
        let next = match schedule.text("nextRunAt") {
            _ if schedule.text("enabled") == "false" => {
                format!(
                    "is off: `kanat schedule update {} --enabled true` turns it on",
                    quoted(&flow.text("name"))
                )
            }
            _ if flow.text("status") == "paused" => {
                "is not due while the flow is paused".to_owned()
            }
            next if next.is_empty() => "is due no more".to_owned(),
            next => format!("is due next at {next}"),
        };
        format!("the schedule {cron} ({zone}) {next}")
    }))
}

/// A schedule of `flow` with the times at which it is due, which are not known before a paused flow
/// is resumed.
fn whole(schedule: &Json, flow: &Json) -> String {
    match flow.text("status") == "paused" {
        true => shown(schedule, "not while the flow is paused"),
        false => shown(schedule, &lines(&schedule.texts("nextRuns"))),
    }
}

fn shown(schedule: &Json, due: &str) -> String {
    table::fields(schedule, FIELDS) + &table::section("Due", due)
}

fn lines(times: &[&str]) -> String {
    match times {
        [] => "never".to_owned(),
        times => times.join("\n"),
    }
}
