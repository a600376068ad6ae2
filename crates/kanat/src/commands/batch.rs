//! `kanat batch`: one message for each of many records.

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::{Page, Session, given, input};
use crate::client::name::{FLOW, segment};
use crate::output::Json;
use crate::output::table::{self, Column};

const PATH: &str = "/batch-jobs";

/// What can be done with batch jobs.
#[derive(Subcommand)]
pub enum Command {
    /// Start a job: one message for each record of a file.
    Start {
        /// Name or id of the flow.
        flow: String,
        /// A JSON list of objects; `-` is standard input.
        #[arg(long, value_name = "FILE")]
        data: String,
        /// Records at the same time.
        #[arg(long)]
        concurrency: Option<u32>,
    },
    /// Show how far a job is.
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
        #[command(flatten)]
        page: Page,
    },
    /// Start a new job of the records that failed.
    Retry { id: String },
    /// Begin no more records.
    Cancel { id: String },
}

const COLUMNS: [Column; 6] = [
    ("ID", "id"),
    ("STATUS", "status"),
    ("TOTAL", "total"),
    ("SUCCEEDED", "succeeded"),
    ("FAILED", "failed"),
    ("CREATED", "createdAt"),
];

const ERRORS: [Column; 4] =
    [("INDEX", "index"), ("KIND", "error.kind"), ("ERROR", "error.message"), ("MESSAGE", "messageId")];

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        let client = &session.client;
        match self {
            Self::Start { flow, data, concurrency } => {
                let flow_id = client.id(&FLOW, &flow).await?;
                let concurrency = concurrency.map(|number| format!(",\"concurrency\":{number}")).unwrap_or_default();
                let before = format!("{{\"flowId\":{}{concurrency},\"records\":", json!(flow_id));
                let body = input::stream(&data, before, "}".to_owned()).await?;
                started(session, &client.post_stream(PATH, body).await?)
            }
            Self::Status { id } => {
                let answer = client.get(&path(&id, ""), &[]).await?;
                session.print(&answer, whole)
            }
            Self::List { flow, page } => {
                let flow = match flow {
                    Some(flow) => Some(client.id(&FLOW, &flow).await?),
                    None => None,
                };
                let answer = client.get(PATH, &[page.query(), given([("flowId", &flow)])].concat()).await?;
                session.list(&answer, &COLUMNS)
            }
            Self::Errors { id, page } => {
                let answer = client.get(&path(&id, "/errors"), &page.query()).await?;
                session.list(&answer, &ERRORS)
            }
            Self::Retry { id } => {
                let answer = client.post(&path(&id, "/retry"), &json!({})).await?;
                started(session, &answer)
            }
            Self::Cancel { id } => {
                let answer = client.post(&path(&id, "/cancel"), &json!({})).await?;
                session.print(&answer, whole)
            }
        }
    }
}

fn path(id: &str, rest: &str) -> String {
    format!("{PATH}/{}{rest}", segment(id))
}

fn started(session: &Session, job: &Json) -> Result<()> {
    let id = job.text("id");
    session.print(job, |job| format!("{id} is started with {} records", job.text("total")))?;
    session.hint(&format!("see `kanat batch status {id}`"));
    Ok(())
}

fn whole(job: &Json) -> String {
    let fields = [
        ("Status", "status"),
        ("Total", "total"),
        ("Processed", "processed"),
        ("Succeeded", "succeeded"),
        ("Failed", "failed"),
        ("Concurrency", "concurrency"),
        ("Flow", "flowId"),
        ("Retry of", "retryOf"),
        ("Created", "createdAt"),
        ("Started", "startedAt"),
        ("Finished", "finishedAt"),
        ("Id", "id"),
    ];
    table::fields(job, &fields)
}
