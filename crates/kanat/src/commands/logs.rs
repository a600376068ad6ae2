//! `kanat logs`: messages of one flow or of all, one line for each, in order of arrival; with
//! `--follow` as they change.

use anyhow::Result;
use kanat_model::Timestamp;

use super::message::{FAILED, OfFlow, hint_callers, listed};
use super::{Query, Session, query, since};
use crate::client::events::Messages;
use crate::client::name::FLOW;
use crate::output::{self, Format, Json};

/// Arguments of `kanat logs`.
#[derive(clap::Args)]
pub struct Logs {
    #[command(flatten)]
    of: OfFlow,
    /// Stay, and print a line whenever a message changes its state.
    #[arg(short, long)]
    follow: bool,
    /// Only messages of this status.
    #[arg(long)]
    status: Option<String>,
    /// Only messages that failed: dead letters, and those that are tried again. Messages that were
    /// delivered although their callers got 502 are counted beside them.
    #[arg(long, conflicts_with = "status")]
    failed: bool,
    /// Only messages received since an instant (ISO 8601), or within a time such as `1h`, `30m` or
    /// `2d`.
    #[arg(long, value_parser = since::parse)]
    since: Option<String>,
    /// Only messages received before an instant (ISO 8601), or longer ago than a time such as `1h`.
    #[arg(long, value_parser = since::parse, conflicts_with = "follow")]
    until: Option<String>,
    /// Looks into payload, id and error.
    #[arg(long, conflicts_with = "follow")]
    search: Option<String>,
    /// How many of the latest messages to begin with.
    #[arg(short = 'n', long, visible_alias = "limit", default_value_t = 20)]
    lines: u32,
}

impl Logs {
    pub async fn run(self, session: &Session) -> Result<()> {
        let flow_id = self.of.id(session).await?;
        let filter = query([
            ("flowId", Some(flow_id.clone())),
            ("status", self.status.clone()),
        ]);
        // Opened before the list is asked for, so that nothing falls between the two.
        let stream = match self.follow {
            true => Some(Messages::open(&session.client, filter.clone(), None).await?),
            false => None,
        };
        let (latest, has_older) = self.latest(session, filter).await?;
        for message in latest.iter().rev() {
            self.print(session.format, message)?;
        }
        if latest.is_empty() && !self.follow {
            session.done("none")?;
        }
        if self.of.name().is_some() {
            hint_poll(session, &flow_id).await?;
        }
        if self.failed {
            hint_callers(session, &self.of, &flow_id, self.time()).await?;
        }
        if has_older {
            session.hint(&format!(
                "these are the latest {}: --lines shows more",
                latest.len()
            ));
        }
        let Some(mut stream) = stream else {
            return Ok(());
        };
        loop {
            tokio::select! {
                message = stream.next() => {
                    let message = message?;
                    // A message that was delivered has an error where its caller got no answer.
                    let status = message.text("status");
                    if !self.failed || FAILED.contains(&status.as_str()) || message.has("error") {
                        self.print(session.format, &message)?;
                    }
                }
                _ = tokio::signal::ctrl_c() => return Ok(()),
            }
        }
    }

    /// The latest messages, newest first, and whether there are older ones.
    async fn latest(&self, session: &Session, mut filter: Query) -> Result<(Vec<Json>, bool)> {
        filter.extend(self.time());
        filter.extend(query([("search", self.search.clone())]));
        if self.failed {
            filter.extend(FAILED.map(|status| ("status", status.to_owned())));
        }
        let wanted = usize::try_from(self.lines).unwrap_or(usize::MAX);
        let mut latest = Vec::new();
        let mut cursor = None;
        let mut has_older = true;
        while has_older && latest.len() < wanted {
            let limit = (wanted - latest.len()).to_string();
            let page = query([("limit", Some(limit)), ("cursor", cursor)]);
            let answer = listed(session, &[filter.clone(), page].concat()).await?;
            latest.extend(answer.list("data").iter().cloned());
            has_older = answer.has("pagination.nextCursor");
            cursor = Some(answer.text("pagination.nextCursor"));
        }
        Ok((latest, has_older))
    }

    /// Returns the part of the query about the time of receipt.
    fn time(&self) -> Query {
        query([("since", self.since.clone()), ("until", self.until.clone())])
    }

    /// One line for a person, one JSON document a line or one YAML document for a program.
    fn print(&self, format: Format, message: &Json) -> Result<()> {
        match format {
            Format::Table => output::line(&line(
                message,
                self.of.name().is_none().then(|| message.text("flowName")),
                Timestamp::now(),
            )),
            Format::Json => output::line(&message.compact()),
            Format::Yaml => output::line(&format!("---\n{}", output::yaml::write(message))),
        }
    }
}

/// Tells a person when the last poll of a flow failed: it made no message that says so.
async fn hint_poll(session: &Session, flow_id: &str) -> Result<()> {
    if session.format != Format::Table {
        return Ok(());
    }
    let flow = session.client.get(&FLOW.at(flow_id), &[]).await?;
    if flow.has("lastError") {
        session.hint(&format!(
            "the last poll failed at {}: {}",
            flow.text("lastError.at"),
            flow.text("lastError.message")
        ));
    }
    Ok(())
}

/// Returns the line of a message. Its time is that of arrival, by which messages are in order; the
/// duration tells when it ended.
fn line(message: &Json, flow: Option<String>, now: Timestamp) -> String {
    let flow = flow.map(|name| format!("{name}  ")).unwrap_or_default();
    let mut line = format!(
        "{}  {:<11} {flow}{}",
        message.text("receivedAt"),
        message.text("status"),
        message.text("id")
    );
    match message.text("attempts").as_str() {
        "" | "0" => {}
        "1" => line += "  1 attempt",
        attempts => line += &format!("  {attempts} attempts"),
    }
    if message.has("durationMs") {
        line += &format!("  {} ms", message.text("durationMs"));
    }
    if message.has("nextAttemptAt") {
        let due = message.text("nextAttemptAt");
        let is_past = Timestamp::parse(&due).is_some_and(|due| due < now);
        line += &match is_past {
            true => format!("  due since {due}"),
            false => format!("  again at {due}"),
        };
    }
    if message.has("error") {
        line += &format!("  {}", message.text("error.message"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_the_time_by_which_messages_are_in_order() {
        let message = r#"{"id":"msg_1","status":"delivered","attempts":2,"durationMs":61000,
            "receivedAt":"2026-01-31T12:00:00.000Z","completedAt":"2026-01-31T12:01:01.000Z"}"#;
        let message = Json::parse(message).unwrap();
        assert_eq!(
            line(&message, None, Timestamp::from_millis(0)),
            "2026-01-31T12:00:00.000Z  delivered   msg_1  2 attempts  61000 ms"
        );
    }

    #[test]
    fn a_retry_that_is_late_is_due_since_its_time() {
        let message = r#"{"id":"msg_1","status":"retrying","attempts":1,
            "receivedAt":"2026-01-31T12:00:00.000Z","nextAttemptAt":"2026-01-31T12:01:00.000Z"}"#;
        let message = Json::parse(message).unwrap();
        for (now, expected) in [
            (
                "2026-01-31T12:00:59.999Z",
                "again at 2026-01-31T12:01:00.000Z",
            ),
            (
                "2026-01-31T12:01:00.001Z",
                "due since 2026-01-31T12:01:00.000Z",
            ),
        ] {
            let line = line(&message, None, Timestamp::parse(now).unwrap());
            assert!(line.ends_with(expected), "{now}: {line}");
        }
    }
}
