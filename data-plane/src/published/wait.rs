//! Calls that wait for what the flow makes of them, until the deadline of the API.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use kanat_model::id::MessageId;
use kanat_model::message::ErrorKind;
use kanat_net::{Body, body as bodies};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::repeat::{self, Sent};
use super::route::Target;
use crate::admission::Room;
use crate::context::Shared;
use crate::delivery::{self, Answered};
use crate::error::Refusal;
use crate::ingress::receive;
use crate::pipeline::{Arrival, Begun, Lost, NotBegun, Pipeline, Reply};
use crate::plans::Runnable;
use crate::plans::published::Answering;

/// When one who came at a bad time may come again.
const PAUSE: Duration = Duration::from_secs(1);

/// What a call has beside its message.
pub(crate) struct Call {
    /// What a repeat is known by.
    pub sent: Option<Sent>,
    /// The place of the body that was read, until the message is stored.
    pub room: Room,
    /// When the caller waits no longer.
    pub deadline: Instant,
}

/// Runs a call, and answers with what it came to.
pub(crate) async fn answer(
    shared: &Shared,
    target: &Target,
    answering: &Arc<Answering>,
    runnable: Runnable,
    arrival: Arrival,
    call: Call,
) -> Result<Response<Body>, Refusal> {
    let Call {
        sent,
        room,
        deadline,
    } = call;
    let id = arrival.id.clone();
    if Pipeline::runs_in_memory(&runnable, &arrival, answering) {
        let answered = timeout_at(
            deadline,
            shared.pipeline.run_in_memory(&runnable, arrival, answering),
        )
        .await;
        return answer_of(answered.map_err(|_| overloaded())?.map_err(not_begun)?, &id);
    }
    let (tell, told) = oneshot::channel();
    let late = CancellationToken::new();
    let reply = Reply {
        answering: Arc::clone(answering),
        tell,
        late: late.clone(),
    };
    let flow = runnable.flow.clone();
    let begun = timeout_at(deadline, shared.pipeline.call(runnable, arrival, reply)).await;
    // What was read is stored: who waits for an answer takes no room from those who come.
    drop(room);
    let turn = match begun.map_err(|_| out_of_time(&id))?.map_err(not_begun)? {
        Begun::Runs => None,
        Begun::Waits(turn) => turn,
        Begun::Duplicate(first) => return repeat::answer_of_run(shared, &flow, sent, first).await,
    };
    let lost = async {
        match &turn {
            Some(turn) => turn.lost().await,
            None => std::future::pending().await,
        }
    };
    let ended = async {
        tokio::select! {
            answered = told => Ok(answered.ok()),
            lost = lost => Err(lost),
        }
    };
    match timeout_at(deadline, ended).await {
        Ok(Ok(answered)) => answer_of(answered, &id),
        Ok(Err(Lost::HandedBack)) => answer_of(None, &id),
        Ok(Err(Lost::Removed)) => Err(taken_out_of_service(&id)),
        Err(_) => {
            if target.api.discard_late {
                late.cancel();
                turn.into_iter()
                    .for_each(|turn| turn.discard(delivery::LATE));
            }
            Err(out_of_time(&id))
        }
    }
}

/// `None` when this node lost the message.
fn answer_of(answered: Option<Answered>, id: &MessageId) -> Result<Response<Body>, Refusal> {
    match answered {
        Some(Answered::Ready(ready)) => Ok(response(ready.status, ready.headers, ready.body)),
        Some(Answered::Filtered) => Ok(filtered()),
        Some(Answered::Failed(kind)) => Err(failed(kind, id)),
        Some(Answered::Unfit) => {
            let refusal = Refusal::new(
                StatusCode::BAD_GATEWAY,
                "what the flow made is no answer of this API",
            );
            Err(refusal.with_members(member(id)))
        }
        Some(Answered::NotNow) => Err(Refusal::unavailable(
            "a connector takes no calls for now",
            PAUSE,
        )),
        None => {
            let refusal = Refusal::unavailable(
                "this node handed the message back, and another runs it",
                PAUSE,
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

/// The flow's condition did not hold: all is well, and there is nothing to say.
pub(super) fn filtered() -> Response<Body> {
    response(StatusCode::NO_CONTENT, HeaderMap::new(), Bytes::new())
}

/// What failed is the flow's own affair: callers learn no more than the message to ask after.
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
        ErrorKind::Rejected => "a step of the flow failed",
        ErrorKind::Configuration
        | ErrorKind::Credentials
        | ErrorKind::Adapter
        | ErrorKind::FlowDeleted => "the flow could not be run",
    };
    Refusal::new(StatusCode::BAD_GATEWAY, message).with_members(member(id))
}

fn not_begun(reason: NotBegun) -> Refusal {
    match reason {
        NotBegun::Busy => overloaded(),
        NotBegun::Paused => Refusal::unavailable(reason.to_string(), Duration::from_secs(5)),
        NotBegun::NotStored(reason) => receive::not_stored(&reason),
    }
}

fn overloaded() -> Refusal {
    Refusal::unavailable(NotBegun::Busy.to_string(), PAUSE)
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

fn member(id: &MessageId) -> Vec<u8> {
    format!("\"messageId\":\"{id}\"").into_bytes()
}
