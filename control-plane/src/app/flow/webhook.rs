//! Webhook tokens of flows: one in use, sealed because it is shown again in the URL; former ones by
//! their hash until they expire.

use kanat_auth::{Permission, key, random_token};
use kanat_flow::WebhookToken;
use kanat_model::id::FlowId;
use kanat_model::{Error, Result, Timestamp};
use kanat_proto::plan::v1 as plan;
use kanat_store::Db;
use kanat_store::flow::{self, Flow};
use kanat_store::webhook_token::{self, Former};

use super::deploy;
use crate::app::{App, Call, ChangeResult, audit, grace};

/// The `trigger_kind` of flows that a webhook starts.
pub const TRIGGER: &str = "webhook";

/// Returns the address of the flow's webhook, when a webhook starts it; a draft is answered there
/// once it is deployed. Whoever has the address can send messages, so viewers do not get it.
pub fn url(call: &Call, flow: &Flow) -> Result<Option<String>> {
    let may_send = call.caller.role.allows(Permission::Write);
    match &flow.webhook_token {
        Some(sealed) if flow.trigger_kind == TRIGGER && may_send => Ok(Some(
            call.app
                .public_url
                .webhook(&open(&call.app, &flow.id, sealed)?),
        )),
        Some(_) | None => Ok(None),
    }
}

/// Makes a new token. The old one is accepted until the grace period, such as `24h`, ends; without
/// one, only the new one is.
pub async fn rotate(call: &Call, id: &FlowId, grace: Option<&str>) -> Result<ChangeResult<Flow>> {
    let grace = grace::parse(grace)?;
    let mut change = call.change().await?;
    let (mut flow, is_repeat) = call.load_for_change(&mut change, id).await?;
    if is_repeat {
        return change.answer_repeat(flow).await;
    }
    let before = flow.clone();
    let Some(sealed) = flow
        .webhook_token
        .as_ref()
        .filter(|_| flow.trigger_kind == TRIGGER)
    else {
        return Err(Error::precondition(
            "only a flow with the trigger webhook has a token",
        ));
    };
    let now = Timestamp::now();
    let old = key::sha256(&open(&call.app, id, sealed)?);
    if grace.is_zero() {
        // Who grants no grace wants no other token to work, those of earlier rotations neither.
        webhook_token::delete_all(&mut change, id).await?;
    } else {
        webhook_token::delete_expired(&mut change, id, now).await?;
        let former = Former {
            sha256: old,
            expires_at: now.after(grace),
        };
        webhook_token::insert(&mut change, id, &former).await?;
    }
    flow.webhook_token = Some(new_token(&call.app, id));
    flow.updated_at = now;
    flow::update(&mut change, &mut flow).await?;
    deploy::publish_again(&mut change, &flow).await?;
    audit::updated(call, &mut change, &before, &flow).await?;
    change.mark_urgent();
    change.commit(flow).await
}

/// The hashes that open the webhook of `flow` from `now` on; a flow that has no token yet gets one.
pub async fn tokens(
    app: &App,
    db: &mut Db,
    flow: &mut Flow,
    now: Timestamp,
) -> Result<Vec<WebhookToken>> {
    let sealed = flow
        .webhook_token
        .get_or_insert_with(|| new_token(app, &flow.id));
    let current = WebhookToken {
        sha256: key::sha256(&open(app, &flow.id, sealed)?),
        expires_at: None,
    };
    let former = webhook_token::list(db, &flow.id, now).await?;
    let former = former.into_iter().map(|f| WebhookToken {
        sha256: f.sha256,
        expires_at: Some(f.expires_at),
    });
    Ok(std::iter::once(current).chain(former).collect())
}

/// The tokens as plans carry them.
pub fn to_plan(token: &WebhookToken) -> plan::WebhookToken {
    plan::WebhookToken {
        sha256: token.sha256.to_vec(),
        expires_at: token.expires_at.map_or(0, Timestamp::as_millis),
    }
}

/// Gives a flow that a webhook starts its token, unless it has one: its address is known before it
/// is deployed.
pub fn give_token(app: &App, flow: &mut Flow) {
    if flow.trigger_kind == TRIGGER && flow.webhook_token.is_none() {
        flow.webhook_token = Some(new_token(app, &flow.id));
    }
}

fn new_token(app: &App, flow: &FlowId) -> Vec<u8> {
    app.sealer
        .seal(random_token().as_bytes(), &seal_context(flow))
}

fn open(app: &App, flow: &FlowId, sealed: &[u8]) -> Result<String> {
    let failed = |error: &dyn std::fmt::Display| {
        tracing::error!(
            flow.id = %flow,
            error = %error,
            "the webhook token of a flow cannot be read",
        );
        Error::internal()
    };
    let plain = app
        .sealer
        .open(sealed, &seal_context(flow))
        .map_err(|error| failed(&error))?;
    String::from_utf8(plain).map_err(|_| failed(&"it is no text"))
}

/// Returns the context that a webhook token is sealed under.
pub fn seal_context(flow: &FlowId) -> String {
    format!("webhook_token/{flow}")
}
