//! A call that a consumer makes again under one `Idempotency-Key` gets the first answer again; another call under the same
//! key is refused.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode};
use kanat_message_log::{Content, Tenant};
use kanat_model::id::MessageId;
use kanat_net::Body;
use serde::Deserialize;

use crate::error::Refusal;
use crate::ingress::{receive, webhook};
use crate::pipeline::Accepted;
use crate::plans::Flow;
use crate::service::Shared;

/// What tells a repeat from another call.
pub(crate) struct Sent {
    pub idempotency_key: String,
    pub raw_body: Bytes,
}

/// Answers a call whose message was found to be there already, as `first`.
pub(crate) async fn answer(
    shared: &Shared,
    flow: &Flow,
    sent: Option<Sent>,
    first: MessageId,
) -> Result<Response<Body>, Refusal> {
    let duplicate = |first| Ok(webhook::answer(&Accepted::Duplicate(first)));
    let Some(sent) = sent else { return duplicate(first) };
    let tenant = Tenant { account_id: flow.account_id.clone(), environment_id: flow.environment_id.clone() };
    let content = shared.pipeline.content(&tenant, &first).await.map_err(|error| receive::not_stored(&error))?;
    // It may have been known by the flow's own key, or be no more than a key by now.
    let Some(content) = content.filter(|content| key_of(content).as_deref() == Some(&sent.idempotency_key)) else {
        return duplicate(first);
    };
    if content.raw_body != sent.raw_body {
        let message = "this Idempotency-Key came with another request before";
        return Err(Refusal::new(StatusCode::CONFLICT, message));
    }
    let mut response = webhook::answer(&Accepted::New(first));
    response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    Ok(response)
}

fn key_of(content: &Content) -> Option<String> {
    #[derive(Deserialize)]
    struct Document {
        headers: Headers,
    }
    #[derive(Deserialize)]
    struct Headers {
        #[serde(rename = "idempotency-key")]
        idempotency_key: Option<String>,
    }
    serde_json::from_slice::<Document>(&content.request).ok()?.headers.idempotency_key
}
