//! `kanat logs`: the messages of a flow, one line for each, oldest first; with `--follow` as they change.

use anyhow::Result;

use super::{Session, given};
use crate::client::events::Messages;
use crate::client::name::FLOW;
use crate::output::{self, Format, Json};

/// Arguments of `kanat logs`.
#[derive(clap::Args)]
pub struct Logs {
    flow: String,
    /// Stay, and print a line whenever a message changes its state.
    #[arg(short, long)]
    follow: bool,
    /// Only messages of this status.
    #[arg(long)]
    status: Option<String>,
    /// How many of the latest messages to begin with.
    #[arg(short = 'n', long, default_value_t = 20)]
    lines: u32,
}

impl Logs {
    pub async fn run(self, session: &Session) -> Result<()> {
        let flow_id = session.client.id(&FLOW, &self.flow).await?;
        let query = [vec![("flowId", flow_id)], given([("status", &self.status)])].concat();
        // Opened before the list is asked for, so that nothing falls between the two.
        let stream = match self.follow {
            true => Some(Messages::open(&session.client, query.clone(), None).await?),
            false => None,
        };
        let page = [query, vec![("limit", self.lines.to_string())]].concat();
        let latest = session.client.get("/messages", &page).await?;
        for message in latest.list("data").iter().rev() {
            print(session.format, message)?;
        }
        let Some(mut stream) = stream else { return Ok(()) };
        loop {
            tokio::select! {
                message = stream.next() => print(session.format, &message?)?,
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        }
    }
}

/// One line for a person, one JSON document a line or one YAML document for a program.
fn print(format: Format, message: &Json) -> Result<()> {
    match format {
        Format::Table => output::line(&line(message)),
        Format::Json => output::line(&message.compact()),
        Format::Yaml => output::line(&format!("---\n{}", output::yaml::write(message))),
    }
}

fn line(message: &Json) -> String {
    let at = ["completedAt", "receivedAt"].into_iter().find(|path| message.has(path)).unwrap_or("receivedAt");
    let mut line = format!("{}  {:<11} {}", message.text(at), message.text("status"), message.text("id"));
    match message.text("attempts").as_str() {
        "" | "0" => {}
        "1" => line.push_str("  1 attempt"),
        attempts => line.push_str(&format!("  {attempts} attempts")),
    }
    if message.has("durationMs") {
        line.push_str(&format!("  {} ms", message.text("durationMs")));
    }
    if message.has("nextAttemptAt") {
        line.push_str(&format!("  again at {}", message.text("nextAttemptAt")));
    }
    if message.has("error") {
        line.push_str(&format!("  {}", message.text("error.message")));
    }
    line
}
