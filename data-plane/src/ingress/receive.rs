//! A request read within its bounds, and what is said when it is beyond them. The same for
//! everything that comes in.

use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use kanat_model::id::FlowId;
use kanat_net::Peer;
use kanat_net::body::BoxError;

use super::body::{self, Source};
use crate::admission::{Holders, NoRoom, Room};
use crate::backlog::Overload;
use crate::context::Shared;
use crate::error::Refusal;
use crate::pipeline::NotStored;
use crate::plans::versions;

const HEADERS_LIMIT: usize = 64 << 10;

/// Errors when the headers are too large.
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

/// The whole body of a request to a flow without its content encoding, and the room that it takes
/// until the message is stored.
pub(crate) async fn read<B>(
    shared: &Shared,
    flow: &FlowId,
    parts: &Parts,
    incoming: B,
) -> Result<(Bytes, Room), Refusal>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let peer = parts.extensions.get().map(Peer::network);
    let source = Source {
        admission: &shared.admission,
        holders: Holders { flow, peer },
    };
    let mut room = shared
        .admission
        .admit(incoming.size_hint().exact())
        .map_err(|full| no_room(&full))?;
    let body = body::read(&parts.headers, incoming, &mut room, source)
        .await
        .map_err(|refused| match &refused {
            body::Refused::NoRoom(full) => no_room(full),
            body::Refused::Encoding(_) => {
                Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, refused.to_string()).with(
                    header::ACCEPT_ENCODING,
                    HeaderValue::from_static("gzip, br"),
                )
            }
            body::Refused::Undecodable(_) | body::Refused::Broken => {
                Refusal::new(StatusCode::BAD_REQUEST, refused.to_string())
            }
            body::Refused::TooSlow(_) => {
                Refusal::new(StatusCode::REQUEST_TIMEOUT, refused.to_string())
            }
        })?;
    Ok((body, room))
}

fn no_room(full: &NoRoom) -> Refusal {
    match full {
        NoRoom::TooLarge { .. } => Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, full.to_string()),
        NoRoom::Busy => Refusal::unavailable(full.to_string(), Duration::from_secs(1)),
    }
}

/// A plan that could run when it came cannot now.
pub(crate) fn not_ready(error: &versions::Error) -> Refusal {
    tracing::error!(%error, "a message was not accepted: its flow cannot run");
    Refusal::unavailable("the flow cannot run on this node", Duration::from_secs(5))
}

/// The message log did not tell of an earlier message.
pub(crate) fn not_read(error: &kanat_message_log::Error) -> Refusal {
    tracing::warn!(%error, "a repeated call was not answered: the message log cannot be read");
    unavailable()
}

/// A message was not taken. Its pipeline has told the log of the service.
pub(crate) fn not_stored(reason: &NotStored) -> Refusal {
    match reason {
        NotStored::Overload(overload) => overloaded(*overload),
        NotStored::Log(_) => unavailable(),
    }
}

/// The backlog is at its bound.
pub(crate) fn overloaded(overload: Overload) -> Refusal {
    Refusal::unavailable(overload.to_string(), Duration::from_secs(5))
}

fn unavailable() -> Refusal {
    Refusal::unavailable(
        "the message cannot be stored for now",
        Duration::from_secs(5),
    )
}
