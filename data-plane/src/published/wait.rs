//! Synchronous calls, which wait for the outcome of the flow until the deadline of the API.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use kanat_model::id::MessageId;
use kanat_model::message::{ErrorKind, Status};
use kanat_net::{Body, body as bodies};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::repeat::{self, CallIdentity};
use super::route::Target;
use crate::admission::BodyReservation;
use crate::context::NodeContext;
use crate::delivery::CallOutcome;
use crate::error::Refusal;
use crate::ingress::receive;
use crate::pipeline::{Arrival, CallError, Pipeline, Reply, StoreOutcome, TurnLoss};
use crate::plans::Runnable;
use crate::plans::published::ResponseMapping;

/// Delay after which a refused caller may try again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Error of a message that was discarded because the deadline of its caller passed before its turn.
const LATE_TURN: &str = "the deadline of the API was over while the message waited for its turn, \
                         behind others of its ordering key: it was not run";

/// Properties of a call beside its message.
pub(crate) struct Call {
    /// Identity of the call, if it has an idempotency key.
    pub sent: Option<CallIdentity>,
    /// Memory of the body, until the message is stored.
    pub reservation: BodyReservation,
    /// Time at which the caller stops waiting.
    pub deadline: Instant,
}

/// Runs a call and returns the response.
pub(crate) async fn answer(
    shared: &NodeContext,
    target: &Target,
    response_mapping: &Arc<ResponseMapping>,
    runnable: Runnable,
    arrival: Arrival,
    call: Call,
) -> Result<Response<Body>, Refusal> {
    let Call {
        sent,
        reservation,
        deadline,
    } = call;
    let id = arrival.id.clone();
    if Pipeline::runs_in_memory(&runnable, &arrival, response_mapping) {
        let answered = timeout_at(
            deadline,
            shared
                .pipeline
                .run_in_memory(&runnable, arrival, response_mapping),
        )
        .await;
        return answer_of(answered.map_err(|_| overloaded())?.map_err(not_begun)?, &id);
    }
    let (reply_tx, reply_rx) = oneshot::channel();
    let late = CancellationToken::new();
    let reply = Reply {
        response_mapping: Arc::clone(response_mapping),
        reply_tx,
        deadline: late.clone(),
    };
    let flow = runnable.flow.clone();
    let begun = timeout_at(deadline, shared.pipeline.call(runnable, arrival, reply)).await;
    // The body is stored: a waiting caller holds no memory for requests.
    drop(reservation);
    let turn = match begun.map_err(|_| out_of_time(&id))?.map_err(not_begun)? {
        StoreOutcome::Runs => None,
        StoreOutcome::Waits(turn) => turn,
        StoreOutcome::Duplicate(first) => {
            return repeat::answer_of_run(shared, &flow, sent, first).await;
        }
    };
    let lost = async {
        match &turn {
            Some(turn) => turn.lost().await,
            None => std::future::pending().await,
        }
    };
    let ended = async {
        tokio::select! {
            outcome = reply_rx => Ok(outcome.ok()),
            lost = lost => Err(lost),
        }
    };
    match timeout_at(deadline, ended).await {
        Ok(Ok(answered)) => answer_of(answered, &id),
        Ok(Err(TurnLoss::HandedBack)) => answer_of(None, &id),
        Ok(Err(TurnLoss::Removed)) => Err(taken_out_of_service(&id)),
        Err(_) => {
            if target.api.discard_late {
                late.cancel();
                turn.into_iter().for_each(|turn| turn.discard(LATE_TURN));
            }
            Err(out_of_time(&id))
        }
    }
}

/// Returns the response to an outcome; `None` when this node lost the message.
fn answer_of(answered: Option<CallOutcome>, id: &MessageId) -> Result<Response<Body>, Refusal> {
    match answered {
        Some(CallOutcome::Response(ready)) => Ok(response(ready.status, ready.headers, ready.body)),
        Some(CallOutcome::Filtered) => Ok(filtered()),
        Some(CallOutcome::Failed(kind)) => Err(failed(kind, id)),
        Some(CallOutcome::InvalidResponse) => {
            let refusal = Refusal::new(
                StatusCode::BAD_GATEWAY,
                "what the flow made is no answer of this API",
            );
            Err(refusal.with_members(member(id)))
        }
        Some(CallOutcome::Unavailable) => Err(Refusal::unavailable(
            "a connector takes no calls for now",
            RETRY_DELAY,
        )),
        None => {
            let refusal = Refusal::unavailable(
                "this node handed the message back, and another runs it",
                RETRY_DELAY,
            );
            Err(refusal.with_members(member(id)))
        }
    }
}

pub(super) fn response(status: StatusCode, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let mut response = Response::new(bodies::full(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// Returns the response of a flow whose condition was false.
pub(super) fn filtered() -> Response<Body> {
    response(StatusCode::NO_CONTENT, HeaderMap::new(), Bytes::new())
}

/// Returns the refusal of a failed call. The cause stays internal; the caller gets the id of the
/// message.
pub(super) fn failed(kind: ErrorKind, id: &MessageId) -> Refusal {
    let message = match kind {
        ErrorKind::Mapping => "the flow could not map the request",
        ErrorKind::Network | ErrorKind::Tls | ErrorKind::Egress => {
            "a system behind this API could not be reached"
        }
        ErrorKind::Timeout => "a system behind this API did not answer in time",
        ErrorKind::Status | ErrorKind::TargetRefused => {
            "a system behind this API answered with an error"
        }
        ErrorKind::Condition => "the answer of a system behind this API could not be judged",
        ErrorKind::Rejected => "a step of the flow failed",
        ErrorKind::Configuration
        | ErrorKind::Credentials
        | ErrorKind::Adapter
        | ErrorKind::Validation
        | ErrorKind::FlowDeleted => "the flow could not be run",
    };
    Refusal::new(StatusCode::BAD_GATEWAY, message).with_members(member(id))
}

/// Returns the refusal of a call that was not run, because the flow's `idempotency_key` came before
/// with a message that ended without delivery.
pub(super) fn given_up(status: Status, first: &MessageId) -> Refusal {
    let status = status.as_str();
    let message = format!(
        "the call was not run: the idempotency_key of the flow came before, and that message ended \
         as {status}"
    );
    Refusal::new(StatusCode::BAD_GATEWAY, message).with_members(member(first))
}

fn not_begun(reason: CallError) -> Refusal {
    match reason {
        CallError::Busy => overloaded(),
        CallError::Paused => Refusal::unavailable(reason.to_string(), Duration::from_secs(5)),
        CallError::StoreError(reason) => receive::not_stored(&reason),
    }
}

fn overloaded() -> Refusal {
    Refusal::unavailable(CallError::Busy.to_string(), RETRY_DELAY)
}

fn taken_out_of_service(id: &MessageId) -> Refusal {
    let message = "the flow of this API was taken out of service before the turn of this call";
    Refusal::unavailable(message, Duration::from_secs(5)).with_members(member(id))
}

fn out_of_time(id: &MessageId) -> Refusal {
    let refusal = Refusal::new(
        StatusCode::GATEWAY_TIMEOUT,
        "there was no answer before the deadline of this API",
    );
    refusal.with_members(member(id))
}

/// Returns the member of an answer that names its message.
pub(super) fn member(id: &MessageId) -> Vec<u8> {
    format!("\"messageId\":\"{id}\"").into_bytes()
}
