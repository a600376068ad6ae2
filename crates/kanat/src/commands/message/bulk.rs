//! `kanat message retry` and `replay`: single messages by their ids, and those of a flow that a
//! filter finds.

mod dry_run;

use std::collections::HashSet;

use anyhow::Result;
use kanat_model::Timestamp;
use kanat_model::message::{Status, check_bulk};
use serde_json::json;

use super::Filter;
use crate::client::name::{FLOW, segment};
use crate::client::{Client, Refusal};
use crate::commands::confirm::Consent;
use crate::commands::hint::quoted;
use crate::commands::{Query, Session, schedule};
use crate::exit::{failure, usage};
use crate::output::Json;

pub use dry_run::check;

/// Number of ids that are shown before a command acts.
const SHOWN_IDS: usize = 3;

kanat_model::texts! {
    /// Action on messages.
    pub enum Verb {
        Retry = "retry",
        Replay = "replay",
    }
}

/// Single messages, or those of a flow that a filter finds.
#[derive(clap::Args)]
pub struct Selection {
    /// Ids of messages.
    messages: Vec<String>,
    /// Messages of this flow that the ids or the filter name.
    #[arg(long)]
    flow: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// Key of a call that was cut off: what it has done already is not done again.
    #[arg(long, requires = "flow", value_name = "KEY")]
    idempotency_key: Option<String>,
    #[command(flatten)]
    consent: Consent,
}

impl Verb {
    /// Returns the announcement of the action.
    fn announced(self) -> &'static str {
        match self {
            Self::Retry => "will be tried again",
            Self::Replay => "will be sent through the whole flow again, as new messages",
        }
    }

    /// Fails when messages that are named by their ids were passed over.
    fn complain(self, named: &[String], answer: &Json) -> Result<()> {
        let count = answer.text("count").parse().unwrap_or(named.len());
        if count >= named.len() {
            return Ok(());
        }
        let reason = match self {
            Self::Retry => {
                let taken = answer.texts("messageIds");
                let passed_over = named.iter().filter(|id| !taken.contains(&id.as_str()));
                let passed_over: Vec<_> = passed_over.map(String::as_str).collect();
                format!(
                    "{}: only dead letters that the filter finds are tried again",
                    passed_over.join(", ")
                )
            }
            Self::Replay => "the filter does not find the others".to_owned(),
        };
        Err(failure(format!(
            "passed over {} of {} messages: {reason}",
            named.len() - count,
            named.len()
        )))
    }

    /// Returns the status of a message after the action.
    ///
    /// # Errors
    ///
    /// Returns the error of the service where a message of this status is not acted on.
    fn follow(self, status: Status) -> kanat_model::Result<Status> {
        match self {
            Self::Retry => status.retry(),
            // Every message can be sent again, as a new one.
            Self::Replay => Ok(status),
        }
    }

    /// Fails when some of `count` messages are refused.
    fn refused(self, refused: usize, count: usize) -> Result<()> {
        match refused {
            0 => Ok(()),
            _ => Err(failure(format!(
                "{} of {refused} of {count} messages was refused",
                self.as_str()
            ))),
        }
    }

    /// Asks where messages go out that were delivered already.
    fn consent(self, consent: Consent, what: &str) -> Result<()> {
        match self {
            Self::Retry => consent.announce(what),
            Self::Replay => consent.ask(what),
        }
    }
}

impl Selection {
    pub async fn send(mut self, session: &Session, verb: Verb) -> Result<()> {
        self.messages = once(self.messages);
        match self.flow.clone() {
            Some(flow) => self.send_many(session, verb, &flow).await,
            None => self.send_each(session, verb).await,
        }
    }

    async fn send_many(self, session: &Session, verb: Verb, flow: &str) -> Result<()> {
        let mut filter = self.filter.query();
        if filter.is_empty() && self.messages.is_empty() {
            return Err(usage(format!(
                "{} which messages of {flow}? give ids, --status, --since, --until or --search",
                verb.as_str()
            )));
        }
        let flow_id = session.client.id(&FLOW, flow).await?;
        // Messages that arrive after the announcement are left alone.
        let until = cutoff(self.filter.until.as_deref(), Timestamp::now());
        filter.retain(|(name, _)| *name != "until");
        filter.push(("until", until));
        let (total, ids) = match self.messages.is_empty() {
            true => self.find(session, verb, &flow_id, &filter).await?,
            false => (self.messages.len(), self.messages.clone()),
        };
        if total == 0 {
            let none = |_: &Json| format!("nothing matches: {} of 0 messages", verb.as_str());
            return session.print(&json!({ "count": 0 }).into(), none);
        }
        check_bulk(total as u64).map_err(|error| Refusal::of(&error))?;
        if self.consent.is_dry_run() && !self.messages.is_empty() {
            self.check_ids(session, verb, &flow_id).await?;
        }
        let found = count_with_ids(total, &ids);
        let what = format!("{found} of {flow} {}", verb.announced());
        verb.consent(self.consent, &what)?;
        let key = self.idempotency_key;
        let key = key.unwrap_or_else(kanat_auth::random_token);
        let again = command(verb, flow, &self.messages, &filter, &key);
        let mut body = json!({ "flowId": flow_id });
        for (name, value) in filter {
            body[name] = value.into();
        }
        if !self.messages.is_empty() {
            body["ids"] = self.messages.clone().into();
        }
        let path = format!("/messages/{}", verb.as_str());
        let answer = session.client.post_with_key(&path, &body, &key).await;
        let answer = answer.map_err(|error| match error.downcast_ref::<Refusal>() {
            Some(refusal) if refusal.status < 500 => error,
            Some(_) | None => failure(format!(
                "{error:#}\na part may be done: `{again}` does what is left"
            )),
        })?;
        session.print(&answer, |answer| {
            let count = answer.text("count");
            let messages = if count == "1" { "message" } else { "messages" };
            format!("{} of {count} {messages}", verb.as_str())
        })?;
        schedule::hint_pause(session, &session.client.get(&FLOW.at(&flow_id), &[]).await?);
        let flow = quoted(flow);
        session.hint(&format!("follow with `kanat logs --follow {flow}`"));
        verb.complain(&self.messages, &answer)
    }

    /// The number of messages that the filter finds, and the first of their ids. Only dead letters
    /// can be tried again.
    async fn find(
        &self,
        session: &Session,
        verb: Verb,
        flow_id: &str,
        filter: &Query,
    ) -> Result<(usize, Vec<String>)> {
        let mut query = vec![
            ("flowId", flow_id.to_owned()),
            ("limit", SHOWN_IDS.to_string()),
        ];
        query.extend_from_slice(filter);
        if verb == Verb::Retry && self.filter.status.is_none() {
            query.push(("status", "dead_letter".to_owned()));
        }
        let answer = session.client.get("/messages", &query).await?;
        let ids = answer.list("data").iter();
        let ids: Vec<String> = ids.map(|message| message.text("id")).collect();
        let total = answer.text("pagination.total").parse();
        Ok((total.unwrap_or(ids.len()), ids))
    }

    async fn send_each(self, session: &Session, verb: Verb) -> Result<()> {
        if self.messages.is_empty() {
            let verb = verb.as_str();
            return Err(usage(format!(
                "{verb} what? name messages by their ids, or a flow with --flow and a filter"
            )));
        }
        let what = format!(
            "{} {}",
            count_with_ids(self.messages.len(), &self.messages),
            verb.announced()
        );
        if self.consent.is_dry_run() {
            self.check_each(session, verb).await?;
        }
        match self.messages.len() {
            1 => self.consent.announce(&what)?,
            _ => verb.consent(self.consent, &what)?,
        }
        let mut refused = 0;
        let count = self.messages.len();
        for id in self.messages {
            let path = format!("{}/{}", at(&id), verb.as_str());
            match session.client.post(&path, &json!({})).await {
                Ok(answer) => sent(session, verb, &id, &answer, count == 1).await?,
                Err(error) if count == 1 => return Err(error),
                Err(error) => {
                    refused += 1;
                    session.complain(&format!("{id}: {error:#}"));
                }
            }
        }
        verb.refused(refused, count)
    }
}

/// Returns the path of the message with this id.
fn at(id: &str) -> String {
    format!("/messages/{}", segment(id))
}

/// Prints what became of a message; of an only one also that its flow is paused.
async fn sent(
    session: &Session,
    verb: Verb,
    id: &str,
    answer: &Json,
    is_only_one: bool,
) -> Result<()> {
    let verb = verb.as_str();
    let new = answer.text("messageId");
    session.print(answer, |_| {
        if new == id {
            format!("{verb} of {id}")
        } else {
            format!("{verb} of {id} as {new}")
        }
    })?;
    // The message is sent: a flow that cannot be read is no failure.
    if is_only_one && let Ok(flow) = flow_of(&session.client, &new).await {
        schedule::hint_pause(session, &flow);
    }
    session.hint(&format!("look at it with `kanat message show {new}`"));
    Ok(())
}

async fn flow_of(client: &Client, id: &str) -> Result<Json> {
    let message = client.get(&at(id), &[]).await?;
    client.get(&FLOW.at(&message.text("flowId")), &[]).await
}

/// Returns the command that goes on with a call that was cut off.
fn command(verb: Verb, flow: &str, ids: &[String], filter: &Query, key: &str) -> String {
    let mut command = format!("kanat message {}", verb.as_str());
    for id in ids {
        command += &format!(" {}", quoted(id));
    }
    let flow = [("flow", flow.to_owned())];
    let key = [("idempotency-key", key.to_owned())];
    for (flag, value) in flow.iter().chain(filter).chain(&key) {
        command += &format!(" --{flag} {}", quoted(value));
    }
    command
}

/// Returns ids without repeats, in their order.
pub fn once(ids: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    let is_new = |id: &String| seen.insert(id.clone());
    ids.into_iter().filter(is_new).collect()
}

/// A number of messages, with the first of their ids.
pub fn count_with_ids(total: usize, ids: &[String]) -> String {
    let first = &ids[..ids.len().min(SHOWN_IDS)];
    let more = if total > first.len() { ", ..." } else { "" };
    let first = first.join(", ");
    match total {
        1 => format!("1 message ({first})"),
        _ => format!("{total} messages ({first}{more})"),
    }
}

/// The earlier of the caller's bound and `now`. A bound that cannot be read goes to the service,
/// which says why.
fn cutoff(until: Option<&str>, now: Timestamp) -> String {
    let bound = until.map(|text| (text, Timestamp::parse(text)));
    match bound {
        Some((text, bound)) if bound.is_none_or(|bound| bound <= now) => text.to_owned(),
        Some(_) | None => now.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_announcement_names_three_ids() {
        let ids = ["a", "b", "c", "d"].map(str::to_owned);
        assert_eq!(count_with_ids(1, &ids[..1]), "1 message (a)");
        assert_eq!(count_with_ids(3, &ids[..3]), "3 messages (a, b, c)");
        assert_eq!(count_with_ids(4, &ids), "4 messages (a, b, c, ...)");
        assert_eq!(
            count_with_ids(20_090, &ids[..3]),
            "20090 messages (a, b, c, ...)"
        );
    }

    #[test]
    fn a_call_that_was_cut_off_is_repeated_with_the_same_bounds() {
        let filter = vec![
            ("search", "a b".to_owned()),
            ("until", "2026-01-31T12:00:00.000Z".to_owned()),
        ];
        assert_eq!(
            command(Verb::Replay, "orders", &[], &filter, "k1"),
            "kanat message replay --flow orders --search 'a b' --until \
             '2026-01-31T12:00:00.000Z' --idempotency-key k1"
        );
    }

    #[test]
    fn an_id_that_is_repeated_counts_once() {
        let ids = ["b", "a", "b"].map(str::to_owned).to_vec();
        assert_eq!(once(ids), ["b", "a"]);
    }

    #[test]
    fn named_messages_that_are_passed_over_are_a_failure() {
        let named = ["msg_1", "msg_2"].map(str::to_owned);
        let complaint = |verb: Verb, answer: &str| {
            let answer = Json::parse(answer).unwrap();
            verb.complain(&named, &answer)
                .map_err(|error| error.to_string())
        };
        let both = r#"{"count":2,"messageIds":["msg_1","msg_2"]}"#;
        assert_eq!(complaint(Verb::Retry, both), Ok(()));
        let one = complaint(Verb::Retry, r#"{"count":1,"messageIds":["msg_1"]}"#).unwrap_err();
        assert!(
            one.starts_with("passed over 1 of 2 messages: msg_2: "),
            "{one}"
        );
        let none = complaint(Verb::Replay, r#"{"count":0,"messageIds":[]}"#).unwrap_err();
        assert!(none.starts_with("passed over 2 of 2 messages: "), "{none}");
    }

    #[test]
    fn nothing_that_arrives_later_is_hit() {
        let now = Timestamp::parse("2026-05-01T00:00:00Z").unwrap();
        assert_eq!(cutoff(None, now), "2026-05-01T00:00:00.000Z");
        assert_eq!(
            cutoff(Some("2027-01-01T00:00:00Z"), now),
            "2026-05-01T00:00:00.000Z"
        );
        assert_eq!(cutoff(Some("2026-01-01"), now), "2026-01-01");
        assert_eq!(cutoff(Some("soon"), now), "soon");
    }
}
