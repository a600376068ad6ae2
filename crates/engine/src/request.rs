//! Request that delivers a message.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use kanat_catalog::Instance;
use kanat_catalog::instance::SHORTEST_MASKED;
use kanat_mapping::{Root, Scope};
use kanat_model::Timestamp;
use kanat_model::message::{ErrorKind, Failure};
use url::Url;

use crate::fault::{header_value, within, wrong};
use crate::target::Target;

/// Request ready to be sent. It contains credentials and has no `Debug`.
pub struct Request {
    pub url: Url,
    pub method: Method,
    pub headers: HeaderMap,
    /// Empty for GET and HEAD.
    pub body: Bytes,
    pub timeout: Duration,
    /// Id of the connector instance.
    pub instance: String,
    /// Texts rendered from the secrets of the instance, which must not be shown either.
    pub secrets: Vec<String>,
}

/// Builds the request. Headers and credentials of the instance replace headers of the flow.
pub(crate) fn build(
    target: &Target,
    instance: &Instance,
    scope: &Scope,
    body: Bytes,
) -> Result<Request, Failure> {
    const ENDPOINT: &str = "target.endpoint";
    connected(instance, scope.now)?;
    let endpoint = target
        .endpoint
        .render_endpoint(scope)
        .map_err(|error| within(ENDPOINT, error))?;
    let mut url = instance
        .request_url(&endpoint, scope.now)
        .map_err(|message| {
            // The message would quote rendered text, which may contain a secret.
            let secret = target.endpoint.references().roots.contains(&Root::Instance);
            let message = match secret {
                true => "it leads nowhere under the connector's base URL",
                false => &message,
            };
            wrong(ENDPOINT, target.endpoint.text(), message)
        })?;
    let has_body = target.method != Method::GET && target.method != Method::HEAD;
    let is_secret = |names: &[String]| instance.entry().is_secret(names);
    let mut secrets = target.endpoint.secret_texts(scope, &is_secret);
    let mut headers = HeaderMap::new();
    if has_body {
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
    }
    for (name, template) in &target.headers {
        if let Some(mut value) = header_value("target", name, template, scope)? {
            let own = template.secret_texts(scope, &is_secret);
            value.set_sensitive(!own.is_empty());
            secrets.extend(own);
            headers.insert(name, value);
        }
    }
    instance.apply_auth(&mut url, &mut headers);
    Ok(Request {
        url,
        method: target.method.clone(),
        headers,
        body: if has_body { body } else { Bytes::new() },
        timeout: target.timeout,
        instance: target.instance.clone(),
        secrets: masked(secrets),
    })
}

/// Returns the secrets that are long enough to be masked.
pub(crate) fn masked(mut secrets: Vec<String>) -> Vec<String> {
    secrets.retain(|secret| secret.len() >= SHORTEST_MASKED);
    secrets
}

/// Returns the failure of a flow whose instance does not exist any more.
pub(crate) fn gone(instance: &str) -> Failure {
    let message = format!("connector instance {instance:?} does not exist in this environment");
    Failure::new(ErrorKind::Configuration, message)
}

/// Checks that the instance has valid credentials.
pub(crate) fn connected(instance: &Instance, now: Timestamp) -> Result<(), Failure> {
    let connected = instance.check_connected(now);
    connected.map_err(|message| Failure::new(ErrorKind::Credentials, message))
}
