//! The connection test: the test call of the instance's entry, with its credentials. What comes back is judged by its
//! status, and its body is read to nobody.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method};
use kanat_catalog::Entry;
use kanat_model::health::Observation;
use kanat_model::id::InstanceId;
use kanat_model::{Error, Timestamp};
use kanat_net::outbound;

use crate::app::{App, Caller};

const TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection test found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    pub ok: bool,
    /// HTTP status, when there was an answer.
    pub status: Option<u16>,
    pub message: String,
    pub latency: Duration,
}

/// Calls the instance with its credentials; its health follows from what was found.
pub async fn test(app: &App, caller: &Caller, id: &InstanceId) -> Result<Tested, Error> {
    let mut tx = app.store.read().await?;
    let row = super::existing(&mut tx, caller, id).await?;
    let entry = super::catalog_entry(&row.catalog_id)?;
    let instance = super::ready(app, &mut tx, &row).await?.map_err(Error::precondition)?;
    drop(tx);
    let mut url = instance.request_url(&entry.test.path, Timestamp::now()).map_err(Error::precondition)?;
    let mut headers = HeaderMap::new();
    instance.apply_auth(&mut url, &mut headers);
    let method = Method::from_bytes(entry.test.method.as_bytes()).unwrap_or(Method::GET);
    let request = outbound::Request { method, url, headers, body: Bytes::new(), timeout: TIMEOUT };
    let begun = Instant::now();
    let outcome = app.outbound.send(request).await;
    let tested = judge(entry, outcome.as_ref().map_err(ToString::to_string), begun.elapsed());
    note(app, id, &tested).await?;
    Ok(tested)
}

async fn note(app: &App, id: &InstanceId, tested: &Tested) -> Result<(), Error> {
    let observation = if tested.ok { Observation::Passed } else { Observation::Failed };
    let reason = format!("connection test: {}", tested.message);
    let mut tx = app.store.begin().await?;
    super::health::observe(&mut tx, id, observation, &reason).await?;
    Ok(tx.commit().await?)
}

/// A server that answers is reached; one that turns the credentials down, or fails, is not of use. Of an entry that knows
/// what to ask for, nothing but success will do.
fn judge(entry: &Entry, outcome: Result<&outbound::Response, String>, latency: Duration) -> Tested {
    let answer = match outcome {
        Ok(answer) => answer,
        Err(message) => return Tested { ok: false, status: None, message, latency },
    };
    let status = answer.status;
    let (ok, message) = match status {
        401 | 403 | 407 => (false, format!("the credentials were refused with {status}")),
        500.. => (false, format!("the server failed with {status}")),
        200..=299 => match entry.refusal(&answer.body) {
            Some(why) => (false, why),
            None => (true, format!("the server answered with {status}")),
        },
        status if entry.test.path.is_empty() || entry.test.statuses.contains(&status) => {
            (true, format!("the server answered with {status}"))
        }
        status => (false, format!("the server answered the test call with {status}")),
    };
    Tested { ok, status: Some(status), message, latency }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(entry: &str, status: u16, body: &'static str) -> bool {
        let entry = kanat_catalog::entry(entry).unwrap();
        let body = Bytes::from_static(body.as_bytes());
        let answer = outbound::Response { status, headers: HeaderMap::new(), body, truncated: false };
        judge(entry, Ok(&answer), TIMEOUT).ok
    }

    #[test]
    fn refused_credentials_and_failures_are_not_ok() {
        for (status, ok) in [(200, true), (302, true), (404, true), (401, false), (403, false), (503, false)] {
            assert_eq!(judged("http", status, ""), ok, "{status}");
        }
        let away = judge(kanat_catalog::entry("http").unwrap(), Err("no answer".to_owned()), TIMEOUT);
        assert_eq!((away.ok, away.status, away.message.as_str()), (false, None, "no answer"));
    }

    #[test]
    fn a_provider_has_to_take_the_test_call() {
        for (status, ok) in [(200, true), (404, false), (429, false), (401, false)] {
            assert_eq!(judged("support-ticketing", status, ""), ok, "{status}");
        }
        assert!(judged("google-sheets", 404, ""));
        assert!(!judged("slack", 200, r#"{"ok": false, "error": "invalid_auth"}"#));
        assert!(judged("slack", 200, r#"{"ok": true}"#));
    }
}
