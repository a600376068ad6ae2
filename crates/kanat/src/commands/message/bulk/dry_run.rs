//! Dry runs of actions on messages: each message is looked at, by the rules of the service.

use anyhow::Result;
use kanat_model::message::Status;
use serde_json::json;

use super::{Selection, Verb, at};
use crate::client::Refusal;
use crate::commands::Session;
use crate::output::Json;

impl Selection {
    /// Errors when the service would refuse one of the messages.
    pub(super) async fn check_each(&self, session: &Session, verb: Verb) -> Result<()> {
        let mut refused = 0;
        let count = self.messages.len();
        for id in &self.messages {
            match check(session, id, |status| verb.follow(status)).await {
                Ok(()) => {}
                Err(error) if count == 1 => return Err(error),
                Err(error) => {
                    refused += 1;
                    session.complain(&format!("{id}: {error:#}"));
                }
            }
        }
        verb.refused(refused, count)
    }

    /// Errors when the service would refuse the ids, because a message is of another flow or there
    /// is none, and when it would pass messages over.
    pub(super) async fn check_ids(
        &self,
        session: &Session,
        verb: Verb,
        flow_id: &str,
    ) -> Result<()> {
        let mut unknown = Vec::new();
        let mut taken = Vec::new();
        for id in &self.messages {
            let found = session.client.get(&at(id), &[]).await;
            let found = match found {
                Err(error) if Refusal::has_status(&error, 404) => None,
                found => Some(found?).filter(|found| found.text("flowId") == flow_id),
            };
            match found {
                None => unknown.push(format!("{id:?}")),
                Some(found) if judge(&found, |status| verb.follow(status)).is_ok() => {
                    taken.push(id.clone());
                }
                Some(_) => {}
            }
        }
        if !unknown.is_empty() {
            let text = format!("no message of this flow has the id {}", unknown.join(", "));
            let error = kanat_model::Error::field("ids", text);
            return Err(Refusal::of(&error).into());
        }
        let answer = json!({ "count": taken.len(), "messageIds": taken });
        verb.complain(&self.messages, &answer.into())
    }
}

/// Errors when there is no message of this id, and when its status does not allow what `follow`
/// stands for.
pub async fn check(
    session: &Session,
    id: &str,
    follow: impl Fn(Status) -> kanat_model::Result<Status>,
) -> Result<()> {
    judge(&session.client.get(&at(id), &[]).await?, follow)
}

/// Errors when the status of a message does not allow what `follow` stands for.
fn judge(message: &Json, follow: impl Fn(Status) -> kanat_model::Result<Status>) -> Result<()> {
    // The service says what it makes of a status that is not known here.
    let status = Status::parse(&message.text("status"));
    let followed = status.map(follow).transpose();
    followed.map_err(|error| Refusal::of(&error))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dry_run_of_a_retry_ends_as_the_retry_would() {
        let judged = |verb: Verb, status: &str| {
            let message = Json::parse(&format!(r#"{{"status":"{status}"}}"#)).unwrap();
            let judged = judge(&message, |status| verb.follow(status));
            judged.map_err(|error| error.to_string()).err()
        };
        assert_eq!(judged(Verb::Retry, "dead_letter"), None);
        assert_eq!(judged(Verb::Replay, "delivered"), None);
        let refused = judged(Verb::Retry, "delivered").unwrap();
        assert!(refused.contains("only a dead_letter can"), "{refused}");
    }
}
