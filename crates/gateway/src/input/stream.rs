//! The messages of a client stream, cut from a body while it comes: what is in memory is one piece of the list, however
//! long that is. The pieces end at the same items whatever pieces the network made of the body.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::Stream;
use http::request::Parts;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use kanat_net::body::{BoxError, TooSlow};
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Value};
use tonic::Status;
use tonic::body::Body;

use super::cut::{Cutter, Part};
use super::{beside_the_body, body};
use crate::error::Problem;
use crate::gateway::Options;
use crate::route::{Route, Variable};
use crate::{call, decode, json};

/// A message is sent when its items have come to so many bytes or to so many.
const PIECE_BYTES: usize = 256 << 10;
const PIECE_ITEMS: usize = 1000;

/// What was wrong with a body that broke off.
#[derive(Clone, Default)]
pub(crate) struct Refusal(Arc<Mutex<Option<Problem>>>);

impl Refusal {
    pub(crate) fn take(&self) -> Option<Problem> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The frames of a call that carries the items of `list`. When the body is wrong they end with an error, and the refusal
/// has what to say of it.
pub(crate) fn stream<B>(
    route: &Route,
    list: &FieldDescriptor,
    variables: &[(Variable, String)],
    parts: &Parts,
    body: B,
    options: &Options,
) -> Result<(Body, Refusal), Problem>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let limit = options.stream_limit;
    if body.size_hint().lower() > limit {
        return Err(Problem::too_large(usize::try_from(limit).unwrap_or(usize::MAX)));
    }
    if !body.is_end_stream() {
        body::expect_json(&parts.headers)?;
    }
    let mut beside = DynamicMessage::new(route.rpc.input.clone());
    beside_the_body(&mut beside, route, variables, parts, false)?;
    let pieces = Pieces {
        fields: beside.clone(),
        beside,
        list: list.clone(),
        body,
        cutter: Cutter::new(list, options.body_limit),
        room: limit,
        limit,
        ended: false,
    };
    let refusal = Refusal::default();
    Ok((Body::new(StreamBody::new(frames(pieces, refusal.clone()))), refusal))
}

struct Pieces<B> {
    /// What path and headers say.
    beside: DynamicMessage,
    /// The same with the members of the body as far as they have come.
    fields: DynamicMessage,
    list: FieldDescriptor,
    body: B,
    cutter: Cutter,
    room: u64,
    limit: u64,
    ended: bool,
}

fn frames<B>(pieces: Pieces<B>, refusal: Refusal) -> impl Stream<Item = Result<Frame<Bytes>, Status>> + Send + 'static
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    futures::stream::unfold(Some(pieces), move |pieces| {
        let refusal = refusal.clone();
        async move {
            let mut pieces = pieces?;
            match pieces.next().await {
                Ok(None) => None,
                Ok(Some(message)) => match call::frame(&message.encode_to_vec()) {
                    Ok(frame) => Some((Ok(Frame::data(frame)), Some(pieces))),
                    Err(status) => Some((Err(status), None)),
                },
                Err(problem) => {
                    *refusal.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
                    // A stream that is cancelled would look like one that has ended.
                    Some((Err(Status::aborted("the body broke off")), None))
                }
            }
        }
    })
}

impl<B> Pieces<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    /// The next message; `None` behind the last one, of which there is at least one.
    async fn next(&mut self) -> Result<Option<DynamicMessage>, Problem> {
        let (mut items, mut bytes) = (Vec::new(), 0);
        while !self.ended {
            match self.cutter.next()? {
                Some(Part::List) => self.read_members()?,
                Some(Part::Item { index, text }) => {
                    let path = format!("{}[{index}]", self.list.json_name());
                    let value =
                        json::Value::parse(text.as_bytes()).map_err(|e| Problem::malformed(&e.within(&path)))?;
                    items.push(decode::item(&self.list, value, &path).map_err(Problem::fields)?);
                    bytes += text.len();
                    if bytes >= PIECE_BYTES || items.len() >= PIECE_ITEMS {
                        return Ok(Some(self.message(items)));
                    }
                }
                None => self.read().await?,
            }
            if self.ended {
                self.cutter.end()?;
                self.read_members()?;
                return Ok(Some(self.message(items)));
            }
        }
        Ok(None)
    }

    async fn read(&mut self) -> Result<(), Problem> {
        match self.body.frame().await {
            None => self.ended = true,
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else { return Ok(()) };
                let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
                self.room = self.room.checked_sub(data.len() as u64).ok_or_else(|| Problem::too_large(limit))?;
                self.cutter.push(data);
            }
            Some(Err(error)) => {
                let error: BoxError = error.into();
                if let Some(error) = error.downcast_ref::<TooSlow>() {
                    return Err(Problem::too_slow(*error));
                }
                return Err(Problem::invalid(format!("the body could not be read: {error}")));
            }
        }
        Ok(())
    }

    fn read_members(&mut self) -> Result<(), Problem> {
        let members = self.cutter.members();
        let json = json::Value::parse(members.as_bytes()).map_err(|error| Problem::malformed(&error))?;
        let mut fields = decode::message(self.list.parent_message(), None, json).map_err(Problem::fields)?;
        for (field, value) in self.beside.fields() {
            if fields.has_field(&field) && *fields.get_field(&field) != *value {
                return Err(Problem::field(field.json_name(), "the body and the path say different things"));
            }
            fields.set_field(&field, value.clone());
        }
        self.fields = fields;
        Ok(())
    }

    fn message(&self, items: Vec<Value>) -> DynamicMessage {
        let mut message = self.fields.clone();
        message.set_field(&self.list, Value::List(items));
        message
    }
}
