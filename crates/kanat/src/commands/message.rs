//! `kanat message`: what became of every payload, and trying again.

mod bulk;
pub mod show;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;

use super::confirm::Consent;
use super::{Page, Query, Session, query, since};
use crate::client::name::{FLOW, segment};
use crate::output::Json;
use bulk::{Selection, Verb};

/// Commands for messages.
#[derive(Subcommand)]
pub enum Command {
    /// List the messages of a flow, or of all flows, newest first.
    List {
        #[command(flatten)]
        of: OfFlow,
        #[command(flatten)]
        filter: Filter,
        /// Only messages that failed: dead letters, and those that are tried again.
        #[arg(long, conflicts_with = "status")]
        failed: bool,
        /// Cursor of the next page, from the former list.
        #[arg(long)]
        cursor: Option<String>,
        #[command(flatten)]
        page: Page,
    },
    /// Show one message with its trace.
    Show { message: String },
    /// Try dead letters again; steps that succeeded are not run again.
    Retry(Selection),
    /// Send payloads through the whole pipeline again, as new messages.
    Replay(Selection),
    /// Say that messages need no delivery.
    Discard {
        #[arg(required = true)]
        messages: Vec<String>,
        #[command(flatten)]
        consent: Consent,
    },
}

/// The statuses of messages that failed.
pub const FAILED: [&str; 2] = ["dead_letter", "retrying"];

/// A page of messages. The service looks at a part of the log at a time: as long as a part has
/// nothing, it is asked on.
pub async fn listed(session: &Session, query: &Query) -> Result<Json> {
    let mut answer = session.client.get("/messages", query).await?;
    while answer.list("data").is_empty() && answer.has("pagination.nextCursor") {
        let mut query = query.clone();
        query.retain(|(name, _)| !["cursor", "offset"].contains(name));
        query.push(("cursor", answer.text("pagination.nextCursor")));
        answer = session.client.get("/messages", &query).await?;
    }
    Ok(answer)
}

/// Messages of one flow, or of all.
#[derive(clap::Args)]
pub struct OfFlow {
    /// The flow; all flows of the environment when it is left out.
    flow: Option<String>,
    /// The flow, as in `kanat message retry`.
    #[arg(long = "flow", value_name = "FLOW", conflicts_with = "flow")]
    of_flow: Option<String>,
}

impl OfFlow {
    /// Name or id of the flow; none for all flows.
    pub fn name(&self) -> Option<&str> {
        self.flow.as_deref().or(self.of_flow.as_deref())
    }

    /// Returns the id of the flow, or the sign for all flows.
    pub async fn id(&self, session: &Session) -> Result<String> {
        let id = session.client.id_of(&FLOW, self.name()).await?;
        Ok(id.unwrap_or_else(|| "-".to_owned()))
    }
}

/// Which messages of a flow.
#[derive(clap::Args)]
pub struct Filter {
    /// `received`, `processing`, `retrying`, `held`, `delivered`, `filtered`, `dead_letter` or
    /// `discarded`.
    #[arg(long)]
    status: Option<String>,
    /// Received at or after this instant (ISO 8601), or within a time such as `1h`, `30m` or `2d`.
    #[arg(long, value_parser = since::parse)]
    since: Option<String>,
    /// Received before this instant (ISO 8601), or longer ago than a time such as `1h`.
    #[arg(long, value_parser = since::parse)]
    until: Option<String>,
    /// Looks into payload, id and error.
    #[arg(long)]
    search: Option<String>,
}

impl Command {
    pub async fn run(self, session: &Session) -> Result<()> {
        match self {
            Self::List {
                of,
                filter,
                failed,
                cursor,
                page,
            } => {
                let flow_id = Some(of.id(session).await?);
                let mut query = page.with([("flowId", flow_id), ("cursor", cursor)]);
                query.extend(filter.query());
                if failed {
                    query.extend(FAILED.map(|status| ("status", status.to_owned())));
                }
                let answer = listed(session, &query).await?;
                session.print(&answer, |answer| show::list(answer, of.name().is_none()))?;
                if let Some(more) = show::more(&answer) {
                    session.hint(&more);
                }
                Ok(())
            }
            Self::Show { message } => {
                let path = format!("/messages/{}", segment(&message));
                let answer = session.client.get(&path, &[]).await?;
                session.print(&answer, show::whole)?;
                let mut trace = answer.list("trace").iter();
                if trace.any(|record| record.has("request.body")) {
                    session.hint(&format!(
                        "`kanat message show {message} -o json` has headers and bodies of the calls"
                    ));
                }
                if answer.text("status") == "received" && answer.has("orderingKey") {
                    session.hint(&format!(
                        "messages of one ordering key go one after another: `kanat message list \
                         {} --failed` has those that others may wait for",
                        answer.text("flowName")
                    ));
                }
                Ok(())
            }
            Self::Retry(selection) => selection.send(session, Verb::Retry).await,
            Self::Replay(selection) => selection.send(session, Verb::Replay).await,
            Self::Discard { messages, consent } => discard(session, &messages, consent).await,
        }
    }
}

impl Filter {
    fn query(&self) -> Query {
        query([
            ("status", self.status.clone()),
            ("since", self.since.clone()),
            ("until", self.until.clone()),
            ("search", self.search.clone()),
        ])
    }
}

/// Says of each message that it needs no delivery; asks when there are several.
async fn discard(session: &Session, messages: &[String], consent: Consent) -> Result<()> {
    let what = format!(
        "{} will be discarded",
        bulk::count_with_ids(messages.len(), messages)
    );
    if messages.len() > 1 {
        consent.ask(&what)?;
    } else {
        consent.announce(&what)?;
    }
    for id in messages {
        let path = format!("/messages/{}/discard", segment(id));
        let discarded = |answer: &Json| format!("{id} is {}", answer.text("status"));
        session.post(&path, &json!({}), discarded).await?;
    }
    Ok(())
}
