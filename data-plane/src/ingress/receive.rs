//! Reading of requests within their bounds, and the refusals that all kinds of requests share.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kanat_model::id::FlowId;
use kanat_net::Peer;
use kanat_net::body::IncomingBody;

use super::body::{self, Source};
use crate::admission::{BodyReservation, Holders, NoRoom};
use crate::backlog::Overload;
use crate::context::NodeContext;
use crate::error::Refusal;
use crate::pipeline::StoreError;
use crate::plans::versions;

const HEADERS_LIMIT: usize = 64 << 10;

/// Checks the size of the headers.
pub(crate) fn bound_headers(headers: &HeaderMap) -> Result<(), Refusal> {
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    if bytes <= HEADERS_LIMIT {
        return Ok(());
    }
    Err(Refusal::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "the headers are too large",
    ))
}

/// Returns the decoded body of a request to a flow, and its memory reservation until the message is
/// stored.
pub(crate) async fn read<B: IncomingBody>(
    shared: &NodeContext,
    flow: &FlowId,
    parts: &Parts,
    incoming: B,
) -> Result<(Bytes, BodyReservation), Refusal> {
    let peer = parts.extensions.get().map(Peer::network);
    let source = Source {
        admission: &shared.admission,
        holders: Holders { flow, peer },
    };
    let mut reservation = shared
        .admission
        .admit(incoming.size_hint().exact())
        .map_err(|full| no_room(&full))?;
    let body = body::read(&parts.headers, incoming, &mut reservation, source)
        .await
        .map_err(|refused| match &refused {
            body::BodyError::NoRoom(full) => no_room(full),
            body::BodyError::Encoding(_) => {
                Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, refused.to_string()).with(
                    header::ACCEPT_ENCODING,
                    HeaderValue::from_static("gzip, br"),
                )
            }
            body::BodyError::Undecodable(_) | body::BodyError::Broken => {
                Refusal::new(StatusCode::BAD_REQUEST, refused.to_string())
            }
            body::BodyError::TooSlow(_) => {
                Refusal::new(StatusCode::REQUEST_TIMEOUT, refused.to_string())
            }
        })?;
    Ok((body, reservation))
}

fn no_room(full: &NoRoom) -> Refusal {
    match full {
        NoRoom::TooLarge { .. } => Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, full.to_string()),
        NoRoom::Busy => Refusal::unavailable(full.to_string(), Duration::from_secs(1)),
    }
}

/// Returns the refusal of a flow whose plan cannot run.
pub(crate) fn not_ready(error: &versions::Error) -> Refusal {
    tracing::error!(%error, "a message was not accepted: its flow cannot run");
    Refusal::unavailable("the flow cannot run on this node", Duration::from_secs(5))
}

/// Returns the refusal when an earlier message cannot be read.
pub(crate) fn not_read(error: &kanat_message_log::Error) -> Refusal {
    tracing::warn!(%error, "a repeated call was not answered: the message log cannot be read");
    unavailable()
}

/// Returns the refusal of a message that was not stored. The pipeline has logged the cause.
pub(crate) fn not_stored(reason: &StoreError) -> Refusal {
    match reason {
        StoreError::Overload(overload) => overloaded(*overload),
        StoreError::Log(_) => unavailable(),
    }
}

/// Returns the refusal when the backlog is at its bound.
pub(crate) fn overloaded(overload: Overload) -> Refusal {
    Refusal::unavailable(overload.to_string(), Duration::from_secs(5))
}

fn unavailable() -> Refusal {
    Refusal::unavailable(
        "the message cannot be stored for now",
        Duration::from_secs(5),
    )
}
