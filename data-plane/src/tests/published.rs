//! Calls of published APIs: addresses, versions, who is let in, what is taken, and what is
//! answered.

mod input;
mod limits;
mod versions;
mod wait;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use kanat_proto::plan::v1::trigger::Kind;
use kanat_proto::plan::v1::{self, ApiVersion, ConsumerKey, FlowPlan, PublishedApi, Trigger};
use sha2::{Digest, Sha256};

use super::control::{ACCOUNT, ENVIRONMENT};
use super::node::{Answer, Node, flow};

/// An active version of the flow of [`api_flow`].
pub fn version(number: u32, flow: &str) -> ApiVersion {
    ApiVersion {
        label: format!("v{number}"),
        number,
        status: "active".to_owned(),
        flow_id: format!("flw_{flow}"),
        ..ApiVersion::default()
    }
}

/// A strict API `api_<flow>` that anyone may call, with one version.
pub fn api(flow: &str, method: &str, path: &str) -> PublishedApi {
    PublishedApi {
        id: format!("api_{flow}"),
        name: flow.to_owned(),
        account_id: ACCOUNT.to_owned(),
        environment_id: ENVIRONMENT.to_owned(),
        method: method.to_owned(),
        path: path.to_owned(),
        auth: "none".to_owned(),
        strict: true,
        versions: vec![version(1, flow)],
        ..PublishedApi::default()
    }
}

/// The key `text` of an API, of the consumer `shop`.
pub fn key(api: &PublishedApi, text: &str) -> ConsumerKey {
    ConsumerKey {
        id: format!("ck_{text}"),
        api_id: api.id.clone(),
        environment_id: ENVIRONMENT.to_owned(),
        consumer: "shop".to_owned(),
        prefix: "kanat_ck_shop_".to_owned(),
        sha256: Sha256::digest(text).to_vec(),
        ..ConsumerKey::default()
    }
}

/// A flow for an API, without steps and target.
pub fn api_flow(name: &str) -> FlowPlan {
    let trigger = Some(Trigger {
        kind: Some(Kind::Api(v1::Api {})),
    });
    FlowPlan {
        trigger,
        target: None,
        ..flow(name)
    }
}

pub fn request(
    method: &str,
    uri: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(Method::from_bytes(method.as_bytes()).unwrap())
        .uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request
        .body(Full::new(Bytes::from(body.to_owned())))
        .unwrap()
}

pub const JSON: (&str, &str) = ("content-type", "application/json");

impl Node {
    pub async fn ask(
        &self,
        method: &str,
        uri: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.send(request(method, uri, headers, body)).await
    }
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }
}
