//! The connection test: the test call of the instance's entry, with its credentials. What comes
//! back is judged by its status, and its body is read to nobody.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use kanat_catalog::{Entry, MASK};
use kanat_engine::Mask;
use kanat_model::health::Observation;
use kanat_model::id::InstanceId;
use kanat_model::{Error, Result, Timestamp};
use kanat_net::outbound;

use crate::app::{App, Call};

const TIMEOUT: Duration = Duration::from_secs(10);

/// Result of a connection test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestResult {
    pub ok: bool,
    /// HTTP status, when there was an answer.
    pub status: Option<u16>,
    pub message: String,
    pub latency: Duration,
    pub request: MaskedRequest,
}

/// The request of a test, with the mask in place of every secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MaskedRequest {
    pub method: String,
    pub url: String,
    pub headers: BTreeMap<String, String>,
}

impl MaskedRequest {
    fn of(mask: &Mask, request: &outbound::Request) -> Self {
        let headers = request.headers.iter().map(|(name, value)| {
            let text = String::from_utf8_lossy(value.as_bytes());
            let shown = match (name == header::AUTHORIZATION, value.is_sensitive()) {
                (true, _) => text
                    .split_once(' ')
                    .map_or_else(|| MASK.to_owned(), |(kind, _)| format!("{kind} {MASK}")),
                (false, true) => MASK.to_owned(),
                (false, false) => mask.apply(&text).into_owned(),
            };
            (name.as_str().to_owned(), shown)
        });
        Self {
            method: request.method.to_string(),
            url: mask.apply(request.url.as_str()).into_owned(),
            headers: headers.collect(),
        }
    }

    /// Method and address, which sentences about the call begin with.
    fn call(&self) -> String {
        format!("{} {}", self.method, self.url)
    }
}

/// Calls the instance with its credentials; its health follows from what was found.
pub async fn test(call: &Call, id: &InstanceId) -> Result<TestResult> {
    let mut tx = call.read().await?;
    let row = call.existing(&mut tx, id).await?;
    let entry = super::catalog_entry(&row.catalog_id)?;
    let instance = super::ready(&call.app, &mut tx, &row)
        .await?
        .map_err(Error::precondition)?;
    drop(tx);
    let mut url = instance
        .request_url(&entry.test.path, Timestamp::now())
        .map_err(Error::precondition)?;
    let mut headers = HeaderMap::new();
    instance.apply_auth(&mut url, &mut headers);
    let method = Method::from_bytes(entry.test.method.as_bytes()).unwrap_or(Method::GET);
    let request = outbound::Request {
        method,
        url,
        headers,
        body: Bytes::new(),
        timeout: TIMEOUT,
    };
    let mask = Mask::new(instance.secrets());
    let shown = MaskedRequest::of(&mask, &request);
    let begun = Instant::now();
    let outcome = call.app.outbound.send(request).await;
    let latency = begun.elapsed();
    let (ok, message) = judge(entry, &shown, outcome.as_ref(), &mask);
    let status = outcome.ok().map(|answer| answer.status);
    let tested = TestResult {
        ok,
        status,
        message,
        latency,
        request: shown,
    };
    note(&call.app, id, &tested).await?;
    Ok(tested)
}

async fn note(app: &App, id: &InstanceId, tested: &TestResult) -> Result<()> {
    let observation = if tested.ok {
        Observation::Passed
    } else {
        Observation::Failed
    };
    let reason = format!("connection test: {}", tested.message);
    let mut tx = app.store.begin().await?;
    super::health::observe(&mut tx, id, observation, &reason, Timestamp::now()).await?;
    Ok(tx.commit().await?)
}

/// Returns whether an instance is of use, and why. A server that answers is reached; one that turns
/// the credentials down, or fails, is not of use. Of an entry that knows what to ask for, nothing
/// but success will do.
fn judge(
    entry: &Entry,
    call: &MaskedRequest,
    outcome: Result<&outbound::Response, &outbound::Error>,
    mask: &Mask,
) -> (bool, String) {
    let call = call.call();
    let answer = match outcome {
        Ok(answer) => answer,
        Err(why) => return (false, format!("{call}: {}", mask.apply(&why.to_string()))),
    };
    let status = answer.status;
    let knows = !entry.test.path.is_empty();
    let answered = format!("{call} answered {status}");
    let only_reached = "the server is reached, and this says nothing of the credentials";
    match status {
        401 | 403 | 407 => (false, format!("{answered}: the credentials were refused")),
        200..=299 => match entry.refusal(&answer.body) {
            Some(why) => {
                let why = mask.apply(&why);
                (false, format!("{answered}, and refused the call: {why}"))
            }
            None if knows => (true, answered),
            None => (true, format!("{answered}: {only_reached}")),
        },
        status if entry.test.statuses.contains(&status) => (true, answered),
        404 | 501 if knows => (
            false,
            format!("{answered}: the API is not at this address: look at base_url"),
        ),
        404 => (
            true,
            format!("{answered}: there is nothing at the base URL itself; {only_reached}"),
        ),
        405 | 501 if !knows => (
            true,
            format!("{answered}: the base URL itself takes no GET; {only_reached}"),
        ),
        500.. => (false, format!("{answered}: the server failed")),
        _ if knows => (
            false,
            format!("{answered}, which the test call should not be answered with"),
        ),
        _ => (true, answered),
    }
}

#[cfg(test)]
mod tests {
    use kanat_catalog::Instance;

    use super::*;

    fn call() -> MaskedRequest {
        MaskedRequest {
            method: "GET".to_owned(),
            url: "https://erp.example/".to_owned(),
            headers: BTreeMap::new(),
        }
    }

    fn judgement(entry: &str, status: u16, body: &'static str) -> (bool, String) {
        let entry = kanat_catalog::entry(entry).unwrap();
        let body = Bytes::from_static(body.as_bytes());
        let answer = outbound::Response {
            status,
            headers: HeaderMap::new(),
            body,
            truncated: false,
        };
        let mask = Mask::new(&["xoxb-s3cret".to_owned()]);
        judge(entry, &call(), Ok(&answer), &mask)
    }

    fn judged(entry: &str, status: u16, body: &'static str) -> bool {
        judgement(entry, status, body).0
    }

    #[test]
    fn refused_credentials_and_failures_are_not_ok() {
        for (status, ok) in [
            (200, true),
            (302, true),
            (404, true),
            (401, false),
            (403, false),
            (503, false),
        ] {
            assert_eq!(judged("http", status, ""), ok, "{status}");
        }
        let away = judge(
            kanat_catalog::entry("http").unwrap(),
            &call(),
            Err(&outbound::Error::Network("no answer at /s3cret".to_owned())),
            &Mask::new(&["s3cret".to_owned()]),
        );
        assert!(!away.0);
        assert_eq!(away.1, "GET https://erp.example/: no answer at /********");
    }

    #[test]
    fn the_reason_of_a_provider_is_shown_without_secrets() {
        let body = r#"{"ok": false, "error": "no such token: Bearer xoxb-s3cret"}"#;
        let (ok, why) = judgement("slack", 200, body);
        assert!(
            !ok && why.ends_with("no such token: Bearer ********"),
            "{why}"
        );
    }

    #[test]
    fn says_what_no_such_page_and_no_such_method_mean() {
        for (entry, status, ok, means) in [
            (
                "http",
                404,
                true,
                "GET https://erp.example/ answered 404: there is nothing at the base URL itself",
            ),
            (
                "http",
                501,
                true,
                "GET https://erp.example/ answered 501: the base URL itself takes no GET",
            ),
            (
                "http",
                405,
                true,
                "GET https://erp.example/ answered 405: the base URL itself takes no GET",
            ),
            (
                "support-ticketing",
                404,
                false,
                "GET https://erp.example/ answered 404: the API is not at this address",
            ),
            (
                "support-ticketing",
                501,
                false,
                "GET https://erp.example/ answered 501: the API is not at this address",
            ),
        ] {
            let (found, message) = judgement(entry, status, "");
            assert_eq!(found, ok, "{message}");
            assert!(message.starts_with(means), "{message}");
        }
    }

    #[test]
    fn what_was_sent_is_shown_without_secrets() {
        let shown = |config: &str| {
            let instance = Instance::new("ci_1", "erp", "http", config).unwrap();
            let mut url = instance.request_url("", Timestamp::from_millis(0)).unwrap();
            let mut headers = HeaderMap::new();
            instance.apply_auth(&mut url, &mut headers);
            let request = outbound::Request {
                method: Method::GET,
                url,
                headers,
                body: Bytes::new(),
                timeout: TIMEOUT,
            };
            let MaskedRequest { url, headers, .. } =
                MaskedRequest::of(&Mask::new(instance.secrets()), &request);
            (url, headers)
        };
        let bearer = concat!(
            r#"{"base_url":"https://erp.example","auth":"bearer","token":"t s-4711","#,
            r#""headers":{"X-A":"t s-4711!"}}"#
        );
        let (url, headers) = shown(bearer);
        assert_eq!(url.as_str(), "https://erp.example/");
        assert_eq!(headers["x-a"].as_str(), "********!");
        assert_eq!(headers["authorization"], "Bearer ********");
        let query = concat!(
            r#"{"base_url":"https://erp.example","auth":"api_key","api_key":"t s-4711","#,
            r#""api_key_in":"query","api_key_name":"k"}"#
        );
        assert_eq!(shown(query).0, "https://erp.example/?k=********");
    }

    #[test]
    fn a_provider_has_to_take_the_test_call() {
        for (status, ok) in [(200, true), (404, false), (429, false), (401, false)] {
            assert_eq!(judged("support-ticketing", status, ""), ok, "{status}");
        }
        assert!(judged("google-sheets", 404, ""));
        assert!(!judged(
            "slack",
            200,
            r#"{"ok": false, "error": "invalid_auth"}"#
        ));
        assert!(judged("slack", 200, r#"{"ok": true}"#));
    }
}
