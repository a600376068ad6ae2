//! `kanat batch`: one message for each of many records.

mod records;

use std::time::Duration;

use anyhow::Result;
use clap::Subcommand;
use reqwest::Method;
use serde_json::json;

use super::hint::quoted;
use super::{Page, Session, input};
use crate::client::LONG_TIMEOUT;
use crate::client::name::{FLOW, segment};
use crate::exit::failure;
use crate::output::progress::Progress;
use crate::output::{self, Json, table};

const PATH: &str = "/batch-jobs";

/// Commands for batch jobs.
#[derive(Subcommand)]
pub enum Command {
    /// Start a job: one message for each record of a file.
    Start {
        /// Name or id of the flow.
        flow: String,
        /// File with the records; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        data: String,
        /// How the records are written [default: by the end of the file's name, else json].
        #[arg(long, value_enum)]
        format: Option<records::Format>,
        /// Records at the same time.
        #[arg(long)]
        concurrency: Option<u32>,
        #[command(flatten)]
        end: End,
    },
    /// Show how far a job is.
    #[command(visible_alias = "show")]
    Status { id: String },
    /// List the jobs of the environment.
    List {
        /// Only those of this flow.
        #[arg(long)]
        flow: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// List the records that failed.
    Errors {
        id: String,
        /// Print all of them as CSV.
        #[arg(long)]
        csv: bool,
        #[command(flatten)]
        page: Page,
    },
    /// Start a new job of the records that failed.
    Retry {
        id: String,
        #[command(flatten)]
        end: End,
    },
    /// Begin no more records.
    Cancel { id: String },
}

/// End of a command that starts a job: at once, or with the job.
#[derive(clap::Args)]
pub struct End {
    /// Stay until every record is done; the exit code is 1 when one failed.
    #[arg(long)]
    wait: bool,
}

const COLUMNS: &str = "ID:id,STATUS:status,TOTAL:total,SUCCEEDED:succeeded,FAILED:failed,\
                       CREATED:createdAt";
const FIELDS: &str = "Status:status,Total:total,Processed:processed,Succeeded:succeeded,\
                      Filtered:filtered,Repeats:repeats,Failed:failed,Error:error.message,\
                      Concurrency:concurrency,Flow:flowId,Retry of:retryOf,\
                      Created:createdAt,Started:startedAt,Finished:finishedAt,Id:id";
const ERRORS: &str = "INDEX:index,KIND:error.kind,ERROR:error.message,MESSAGE:messageId";

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Start {
                flow,
                data,
                format,
                concurrency,
                end,
            } => {
                let flow_id = client.id(&FLOW, &flow).await?;
                let concurrency = concurrency
                    .map(|number| format!(",\"concurrency\":{number}"))
                    .unwrap_or_default();
                let before = format!("{{\"flowId\":{}{concurrency},\"records\":", json!(flow_id));
                let used = format.unwrap_or_else(|| records::Format::of(&data));
                let body = used.body(&data, before, "}".to_owned()).await?;
                let job = client.post_long(PATH, body).await;
                let job = job.map_err(|error| match format {
                    None if used == records::Format::Json
                        && error.to_string().contains("malformed JSON") =>
                    {
                        let fault = input::json_fault(&data);
                        let fault = fault.unwrap_or_else(|| error.to_string());
                        failure(format!(
                            "{fault}\nit was read as JSON: give --format csv or --format ndjson \
                             if it is no JSON"
                        ))
                    }
                    Some(_) | None => error,
                })?;
                let found = client.get(&FLOW.at(&flow_id), &[]).await?;
                if found.text("status") == "paused" {
                    session.hint(&format!(
                        "flow {flow} is paused: the records wait until `kanat flow resume {}`",
                        quoted(&flow)
                    ));
                }
                end.of(session, job).await
            }
            Self::Status { id } => session.show(&path(&id, ""), whole).await,
            Self::List { flow, page } => {
                let flow = client.id_of(&FLOW, flow.as_deref()).await?;
                let query = page.with([("flowId", flow)]);
                session.list(PATH, query, COLUMNS).await
            }
            Self::Errors { id, csv, page } => {
                let path = path(&id, "/errors");
                if !csv {
                    return session.list(&path, page.with([]), ERRORS).await;
                }
                let request = client.request(Method::GET, &path);
                let request = request.header("accept", "text/csv");
                output::line(client.text(request, LONG_TIMEOUT).await?.trim_end())
            }
            Self::Retry { id, end } => {
                let job = client.post(&path(&id, "/retry"), &json!({})).await?;
                end.of(session, job).await
            }
            Self::Cancel { id } => {
                let cancelled = session.post(&path(&id, "/cancel"), &json!({}), whole).await;
                cancelled.map(drop)
            }
        }
    }
}

impl End {
    async fn of(self, session: &Session, job: Json) -> Result<()> {
        if self.wait {
            return ended(session, job).await;
        }
        let id = job.text("id");
        session.print(&job, |job| format!("{id} is started with {}", records(job)))?;
        session.hint(&format!("see `kanat batch status {id}`"));
        Ok(())
    }
}

/// Returns the number of records of a job, in words.
fn records(job: &Json) -> String {
    match job.text("total").as_str() {
        "1" => "1 record".to_owned(),
        total => format!("{total} records"),
    }
}

fn path(id: &str, rest: &str) -> String {
    format!("{PATH}/{}{rest}", segment(id))
}

/// How often a job is asked how far it is.
const PAUSE: Duration = Duration::from_millis(500);

/// Waits until every record of a job is done, and prints how it ended.
async fn ended(session: &Session, mut job: Json) -> Result<()> {
    let id = job.text("id");
    session.hint(&format!(
        "{id} is started with {}; it goes on when this command is stopped",
        records(&job)
    ));
    let progress = Progress::new();
    while matches!(job.text("status").as_str(), "queued" | "running") {
        let number = |path| job.text(path).parse().unwrap_or(0);
        let note = match number("failed") {
            0 => String::new(),
            failed => format!(", {failed} failed"),
        };
        progress.show(number("processed"), number("total"), &note);
        tokio::time::sleep(PAUSE).await;
        job = session.client.get(&path(&id, ""), &[]).await?;
    }
    drop(progress);
    let status = job.text("status");
    let failed = job.text("failed");
    session.print(&job, |job| {
        format!(
            "{id} is {status}: {} of {} succeeded{}, {failed} failed",
            job.text("succeeded"),
            job.text("total"),
            not_sent(job)
        )
    })?;
    if !matches!(job.text("repeats").as_str(), "" | "0") {
        session.hint(
            "a repeat is a record whose idempotency_key had come before: it counts as the earlier \
             message, and nothing was sent for it",
        );
    }
    match status.as_str() {
        "completed" => Ok(()),
        "completed_with_errors" => {
            let records = if failed == "1" { "record" } else { "records" };
            Err(failure(format!(
                "{failed} {records} failed{}\nsee `kanat batch errors {id}`",
                because(&job)
            )))
        }
        _ => Err(failure(format!("{id} is {status}"))),
    }
}

/// Returns how many of the records that succeeded were not sent, in parentheses; empty where all
/// were.
fn not_sent(job: &Json) -> String {
    let counts = [("filtered", "filtered"), ("repeats", "repeats")].map(|(path, word)| {
        match job.text(path).as_str() {
            "" | "0" => None,
            count => Some(format!("{count} of them {word}")),
        }
    });
    let counts: Vec<_> = counts.into_iter().flatten().collect();
    if counts.is_empty() {
        return String::new();
    }
    format!(" ({})", counts.join(", "))
}

/// Returns the reason why a job could not go on, behind a colon; empty where there is none.
fn because(job: &Json) -> String {
    match job.text("error.message").as_str() {
        "" => String::new(),
        error => format!(": {error}"),
    }
}

fn whole(job: &Json) -> String {
    table::fields(job, FIELDS)
}
