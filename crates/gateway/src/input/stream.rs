//! The messages of a client stream, made of a body while it arrives: one piece of the list is in
//! memory, however long the list is. The pieces end at the same items however the network divided
//! the body.

use bytes::Bytes;
use futures::Stream;
use http_body::Frame;
use http_body_util::BodyExt;
use kanat_net::body::{BoxError, TooSlow};
use prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Value};
use tonic::Status;

use super::body::Query;
use super::cut::{Cutter, Piece, parsed};
use super::{Incoming, Reading, beside_the_body, body};
use crate::error::Problem;
use crate::{call, decode, json};

/// Size of items at which a message is sent, in bytes.
const MESSAGE_BYTES: usize = 256 << 10;
/// Number of items at which a message is sent.
const MESSAGE_ITEMS: usize = 1000;

/// Returns the frames of a call that carries the items of `list`.
pub(super) fn frames<B>(
    incoming: Incoming<B>,
    list: FieldDescriptor,
    reading: Reading,
) -> impl Stream<Item = Result<Frame<Bytes>, Status>> + Send + 'static
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    let pieces = Pieces::of(incoming, list, reading.clone());
    futures::stream::try_unfold(Some(pieces), move |pieces| {
        let reading = reading.clone();
        async move {
            let Some(pieces) = pieces else {
                return Ok(None);
            };
            let next = async {
                let mut pieces = pieces?;
                Ok(pieces.next().await?.map(|message| (message, pieces)))
            };
            match next.await.map_err(|problem| reading.refuse(problem))? {
                Some((message, pieces)) => Ok(Some((
                    Frame::data(call::frame(&message.encode_to_vec())?),
                    Some(Ok(pieces)),
                ))),
                None => Ok(None),
            }
        }
    })
}

struct Pieces<B> {
    /// Fields that path and headers carry.
    beside: DynamicMessage,
    /// All fields, with the members of the body that have arrived.
    fields: DynamicMessage,
    list: FieldDescriptor,
    body: B,
    cutter: Cutter,
    room: u64,
    limit: u64,
    ended: bool,
    reading: Reading,
}

impl<B> Pieces<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    fn of(incoming: Incoming<B>, list: FieldDescriptor, reading: Reading) -> Result<Self, Problem> {
        let Incoming {
            route,
            variables,
            parts,
            body,
            options,
        } = incoming;
        let limit = options.stream_limit;
        if body.size_hint().lower() > limit {
            return Err(Problem::too_large(
                usize::try_from(limit).unwrap_or(usize::MAX),
            ));
        }
        if !body.is_end_stream() {
            body::expect_json(&parts.headers)?;
        }
        let mut beside = DynamicMessage::new(route.rpc.input.clone());
        beside_the_body(
            &mut beside,
            &route,
            &variables,
            &parts,
            Query::WithoutFields,
        )?;
        Ok(Self {
            fields: beside.clone(),
            beside,
            body,
            cutter: Cutter::new(&list, options.body_limit),
            list,
            room: limit,
            limit,
            ended: false,
            reading,
        })
    }

    /// Returns the next message; `None` after the last one. There is at least one.
    async fn next(&mut self) -> Result<Option<DynamicMessage>, Problem> {
        let mut items = Vec::new();
        let mut bytes = 0;
        while !self.ended {
            match self.cutter.next()? {
                Some(Piece::List) => self.read_members()?,
                Some(Piece::Item { path, text }) => {
                    let value = parsed(&text, &path)?;
                    items.push(decode::item(&self.list, value, &path).map_err(Problem::fields)?);
                    bytes += text.len();
                    if bytes >= MESSAGE_BYTES || items.len() >= MESSAGE_ITEMS {
                        return Ok(Some(self.message(items)));
                    }
                }
                None => self.read(bytes).await?,
            }
            if self.ended {
                self.cutter.end()?;
                self.read_members()?;
                return Ok(Some(self.message(items)));
            }
        }
        Ok(None)
    }

    /// Reads on. `pending` is the size of the items that are not sent yet, in bytes.
    async fn read(&mut self, pending: usize) -> Result<(), Problem> {
        match self.body.frame().await {
            None => self.ended = true,
            Some(Ok(frame)) => {
                let Some(data) = frame.data_ref() else {
                    return Ok(());
                };
                let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
                self.room = self
                    .room
                    .checked_sub(data.len() as u64)
                    .ok_or_else(|| Problem::too_large(limit))?;
                self.cutter.push(data);
                self.reading
                    .hold(self.cutter.held() + pending)
                    .map_err(Problem::busy)?;
            }
            Some(Err(error)) => {
                let error: BoxError = error.into();
                if let Some(error) = error.downcast_ref::<TooSlow>() {
                    return Err(Problem::too_slow(*error));
                }
                return Err(Problem::invalid(format!(
                    "the body could not be read: {error}"
                )));
            }
        }
        Ok(())
    }

    fn read_members(&mut self) -> Result<(), Problem> {
        let members = self.cutter.members();
        let json =
            json::Value::parse(members.as_bytes()).map_err(|error| Problem::malformed(&error))?;
        let mut fields =
            decode::message(self.list.parent_message(), None, json).map_err(Problem::fields)?;
        for (field, value) in self.beside.fields() {
            if fields.has_field(&field) && *fields.get_field(&field) != *value {
                return Err(Problem::field(
                    field.json_name(),
                    "the body and the path say different things",
                ));
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
