//! `kanat message`: what became of every payload, and trying again.

mod bulk;
pub mod show;

use anyhow::Result;
use clap::Subcommand;
use kanat_model::message::Status;
use serde_json::json;

use super::confirm::Consent;
use super::hint::quoted;
use super::{Page, Query, Session, query, since};
use crate::client::name::{FLOW, segment};
use crate::output::{Format, Json};
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
        /// Only messages that failed: dead letters, and those that are tried again. Messages that
        /// were delivered although their callers got 502 are counted beside them.
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
    let mut answer = session.client.page("/messages", query).await?;
    while answer.list("data").is_empty() && answer.has("pagination.nextCursor") {
        let mut query = query.clone();
        query.retain(|(name, _)| !["cursor", "offset"].contains(name));
        query.push(("cursor", answer.text("pagination.nextCursor")));
        answer = session.client.page("/messages", &query).await?;
    }
    Ok(answer)
}

/// Part of the error of a message that was delivered although its caller got no answer.
const CALLER_FAILED: &str = "but the caller got 502";

/// Tells a person how many messages were delivered although the caller of the published API got
/// 502. They are not among those that failed, because trying them again would deliver them twice.
pub async fn hint_callers(
    session: &Session,
    of: &OfFlow,
    flow_id: &str,
    time: Query,
) -> Result<()> {
    if session.format != Format::Table {
        return Ok(());
    }
    // A list of several statuses reads a bounded part of the log, also of one flow.
    let delivered = ["delivered", "discarded"].map(|status| ("status", status.to_owned()));
    let query = query([
        ("flowId", Some(flow_id.to_owned())),
        ("search", Some(CALLER_FAILED.to_owned())),
        ("limit", Some("1".to_owned())),
    ]);
    let query = [query, delivered.to_vec(), time].concat();
    let answer = session.client.get("/messages", &query).await?;
    let total = answer.text("pagination.total");
    if total == "0" {
        return Ok(());
    }
    let or_more = match answer.text("pagination.totalIsLeast").as_str() {
        "true" => " or more",
        _ => "",
    };
    let flow = of.name().map(|name| format!(" {}", quoted(name)));
    let flow = flow.unwrap_or_default();
    session.hint(&format!(
        "messages that were delivered although their callers got 502: {total}{or_more}; `kanat \
         logs{flow} --status delivered --search '{CALLER_FAILED}'` lists them"
    ));
    Ok(())
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
                let flow_id = of.id(session).await?;
                let mut query = page.with([("flowId", Some(flow_id.clone())), ("cursor", cursor)]);
                query.extend(filter.query());
                if failed {
                    query.extend(FAILED.map(|status| ("status", status.to_owned())));
                }
                let answer = listed(session, &query).await?;
                session.print(&answer, |answer| show::list(answer, of.name().is_none()))?;
                if let Some(more) = show::more(&answer) {
                    session.hint(&more);
                }
                match failed {
                    true => hint_callers(session, &of, &flow_id, filter.time()).await,
                    false => Ok(()),
                }
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
                if ["received", "retrying"].contains(&answer.text("status").as_str()) {
                    session.hint(&format!(
                        "if it waits: `kanat flow show {}` has the flow's connectors, and `kanat \
                         connector list` those whose calls fail or pause",
                        quoted(&answer.text("flowName"))
                    ));
                }
                if answer.text("status") == "received" && answer.has("waitsFor") {
                    session.hint(&format!(
                        "messages of one ordering key go one after another: `kanat message list \
                         {} --failed` has those that others may wait for",
                        quoted(&answer.text("flowName"))
                    ));
                }
                Ok(())
            }
            Self::Retry(selection) => selection.send(session, Verb::Retry).await,
            Self::Replay(selection) => selection.send(session, Verb::Replay).await,
            Self::Discard { messages, consent } => discard(session, messages, consent).await,
        }
    }
}

impl Filter {
    fn query(&self) -> Query {
        let text = query([
            ("status", self.status.clone()),
            ("search", self.search.clone()),
        ]);
        [text, self.time()].concat()
    }

    /// Returns the part about the time of receipt.
    fn time(&self) -> Query {
        query([("since", self.since.clone()), ("until", self.until.clone())])
    }
}

/// Says of each message that it needs no delivery; asks when there are several.
async fn discard(session: &Session, messages: Vec<String>, consent: Consent) -> Result<()> {
    let messages = bulk::once(messages);
    let what = format!(
        "{} will be discarded",
        bulk::count_with_ids(messages.len(), &messages)
    );
    if consent.is_dry_run() {
        for id in &messages {
            bulk::check(session, id, Status::discard).await?;
        }
    }
    if messages.len() > 1 {
        consent.ask(&what)?;
    } else {
        consent.announce(&what)?;
    }
    for id in &messages {
        let path = format!("/messages/{}/discard", segment(id));
        let discarded = |answer: &Json| format!("{id} is {}", answer.text("status"));
        session.post(&path, &json!({}), discarded).await?;
    }
    Ok(())
}
