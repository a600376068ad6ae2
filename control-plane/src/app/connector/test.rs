//! The connection test: one call with the instance's credentials. What comes back is judged by its status alone, and
//! its body is not read to anybody.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Method};
use kanat_catalog::Instance;
use kanat_model::Error;
use kanat_model::id::InstanceId;
use kanat_net::outbound;
use serde_json::Value;

use crate::app::{App, Caller};

const TIMEOUT: Duration = Duration::from_secs(10);

/// What a connection test found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tested {
    pub ok: bool,
    /// HTTP status, when there was an answer.
    pub status: Option<u16>,
    pub message: String,
    pub duration: Duration,
}

/// Calls the instance with its credentials.
pub async fn test(app: &App, caller: &Caller, id: &InstanceId) -> Result<Tested, Error> {
    let row = super::get(app, caller, id).await?;
    let config = Value::Object(super::config(app, &row)?).to_string();
    let entry = super::catalog_entry(&row.catalog_id)?;
    let instance = Instance::new(row.id.as_str(), row.name, &row.catalog_id, &config).map_err(Error::precondition)?;
    let mut url = instance.request_url(&entry.test.path).map_err(Error::precondition)?;
    let mut headers = HeaderMap::new();
    instance.apply_auth(&mut url, &mut headers);
    let request = outbound::Request { method: Method::GET, url, headers, body: Bytes::new(), timeout: TIMEOUT };
    let begun = Instant::now();
    let outcome = app.outbound.send(request).await;
    Ok(judge(outcome.map(|response| response.status), begun.elapsed()))
}

/// A server that answers is reached; one that turns the credentials down, or fails, is not of use.
fn judge(outcome: Result<u16, outbound::Error>, duration: Duration) -> Tested {
    let (ok, status, message) = match outcome {
        Ok(status @ (401 | 403 | 407)) => (false, Some(status), format!("the credentials were refused with {status}")),
        Ok(status @ 500..) => (false, Some(status), format!("the server failed with {status}")),
        Ok(status) => (true, Some(status), format!("the server answered with {status}")),
        Err(error) => (false, None, error.to_string()),
    };
    Tested { ok, status, message, duration }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_credentials_and_failures_are_not_ok() {
        for (status, ok) in [(200, true), (302, true), (404, true), (401, false), (403, false), (503, false)] {
            assert_eq!(judge(Ok(status), TIMEOUT).ok, ok, "{status}");
        }
        let away = judge(Err(outbound::Error::Timeout(TIMEOUT)), TIMEOUT);
        assert_eq!((away.ok, away.status), (false, None));
    }
}
