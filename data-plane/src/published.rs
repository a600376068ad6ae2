//! Published APIs: a call is routed by host, version, path and method to a version of an API; then
//! it is authenticated, read, validated, run and answered. Headers of all responses, including
//! errors, are added in one place at the end.

mod access;
mod coding;
mod cors;
mod input;
mod limit_headers;
mod repeat;
mod route;
mod wait;

use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use kanat_message_log::key;
use kanat_model::Timestamp;
use kanat_net::body::IncomingBody;
use kanat_net::{Body, body as bodies};
use kanat_rate_limit::LimitStatus;
use tokio::time::Instant;

use crate::context::NodeContext;
use crate::error::Refusal;
use crate::ingress::{receive, webhook};
use crate::pipeline::Acceptance;
use crate::plans::{Runnable, Snapshot};
use repeat::CallIdentity;
use route::{Route, Target};

/// Answers a request that no other route of the data plane takes.
pub(crate) async fn call<B: IncomingBody>(
    shared: &NodeContext,
    request: Request<B>,
    request_id: &str,
) -> Response<Body> {
    let (parts, incoming) = request.into_parts();
    let snapshot = shared.plans.load();
    let refused = |refusal: Refusal| {
        let response = refusal.into_response(request_id);
        kanat_telemetry::metrics().refused(response.status().as_u16());
        response
    };
    let target = match Route::find(&snapshot, &parts) {
        Route::Call(target) => target,
        Route::Hosts => {
            return refused(Refusal::new(
                StatusCode::BAD_REQUEST,
                "the request names more than one host",
            ));
        }
        Route::Options(others) => {
            let mut response = cors::options(&others.apis, &parts.headers);
            others.mark(response.headers_mut());
            return response;
        }
        Route::Method(others) => {
            let allow = route::allow(&others.apis);
            let message = format!("this address takes {}", allow.to_str().unwrap_or_default());
            let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message);
            let mut response = refused(refusal.with(header::ALLOW, allow));
            others.mark(response.headers_mut());
            return response;
        }
        Route::Version { asked, current } if shared.plans.is_complete() => {
            let message = format!("this API has no version {asked}: call {current}");
            return refused(Refusal::new(StatusCode::NOT_FOUND, message));
        }
        Route::Nothing if shared.plans.is_complete() => return refused(Refusal::not_found()),
        // The API may be one that this node has not received yet.
        Route::Version { .. } | Route::Nothing => return refused(Refusal::no_plans()),
    };
    let origin = parts.headers.get(header::ORIGIN).cloned();
    let is_head = parts.method == Method::HEAD;
    let accepted = coding::AcceptedCoding::of(&parts.headers);
    let mut status = None;
    let answered = answer(shared, &snapshot, &target, &mut status, parts, incoming).await;
    let mut response = accepted.encode(answered.unwrap_or_else(refused)).await;
    if let Some(status) = status {
        limit_headers::write(&status, response.headers_mut());
    }
    target.mark(response.headers_mut());
    cors::mark(
        target.api.cors.as_ref(),
        origin.as_ref(),
        response.headers_mut(),
    );
    if is_head {
        without_body(response)
    } else {
        response
    }
}

async fn answer<B: IncomingBody>(
    shared: &NodeContext,
    snapshot: &Snapshot,
    target: &Target,
    status: &mut Option<LimitStatus>,
    mut parts: Parts,
    incoming: B,
) -> Result<Response<Body>, Refusal> {
    let deadline = Instant::now() + target.api.deadline;
    target.check_state()?;
    let now = Timestamp::now();
    let caller = access::authenticate(&shared.tokens, target, &mut parts.headers, now).await?;
    if shared.pipeline.is_draining() {
        return Err(Refusal::draining());
    }
    receive::bound_headers(&parts.headers)?;
    *status = access::enforce_limits(&shared.limiter, &caller).await?;
    let runnable = runnable(snapshot, target)?;
    shared
        .pipeline
        .admits(&runnable.flow)
        .map_err(receive::overloaded)?;
    let (body, reservation) = receive::read(shared, &runnable.flow.id, &parts, incoming).await?;
    let mut arrival = input::arrive(target, &caller, &runnable, &parts, body, now)?;
    let sent = input::idempotency_key(&parts.headers)?.map(|idempotency_key| {
        arrival
            .dedupe
            .push(key::call(&target.api.id, caller.id(), &idempotency_key));
        CallIdentity {
            idempotency_key,
            raw_body: arrival.raw_body.clone(),
            trigger: arrival.trigger_document.clone(),
        }
    });
    if let Some(response_mapping) = &target.version().response_mapping {
        let call = wait::Call {
            sent,
            reservation,
            deadline,
        };
        return wait::answer(shared, target, response_mapping, runnable, arrival, call).await;
    }
    let flow = runnable.flow.clone();
    match shared.pipeline.accept(runnable, arrival).await {
        Ok(Acceptance::Duplicate(first)) => repeat::answer(shared, &flow, sent, first).await,
        Ok(accepted @ Acceptance::New(_)) => Ok(webhook::answer(&accepted)),
        Err(reason) => Err(receive::not_stored(&reason)),
    }
}

/// Returns the deployed flow of the version.
fn runnable(snapshot: &Snapshot, target: &Target) -> Result<Runnable, Refusal> {
    match snapshot.flow(&target.version().flow_id) {
        Some(flow) => Ok(Runnable {
            flow: flow
                .compiled()
                .map_err(|error| receive::not_ready(&error))?,
            environment: target.environment.clone(),
            removed: flow.removed.clone(),
        }),
        None => Err(Refusal::unavailable(
            "the flow of this API is not deployed",
            std::time::Duration::from_secs(5),
        )),
    }
}

/// Removes the body, for `HEAD`.
fn without_body(response: Response<Body>) -> Response<Body> {
    use http_body::Body as _;
    let (mut parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        parts
            .headers
            .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    Response::from_parts(parts, bodies::empty())
}
