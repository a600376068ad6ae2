//! The messages of a call, built from path, query and body while the service reads them. The
//! service authorises the caller by the headers before it reads the first byte of the body.

mod body;
mod cut;
mod query;
mod reading;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::{FutureExt, StreamExt};
use http::request::Parts;
use http_body::Frame;
use http_body_util::StreamBody;
use kanat_net::body::BoxError;
use prost::Message;
use prost_reflect::{DynamicMessage, MessageDescriptor, Value};
use tonic::body::Body;

use crate::call;
use crate::decode::scalar;
use crate::error::Problem;
use crate::gateway::Options;
use crate::header::LAST_EVENT_ID;
use crate::route::{Route, Variable};
use body::{Query, RequestMessage};
pub(crate) use reading::Reading;

/// A request whose body has not been read.
pub(crate) struct Incoming<B> {
    pub route: Arc<Route>,
    pub variables: Vec<(Variable, String)>,
    pub parts: Arc<Parts>,
    pub body: B,
    pub options: Options,
}

impl<B> Incoming<B>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BoxError>,
{
    /// Returns the frames of the call. Nothing of the body is read before the first of them is
    /// polled. When the request is wrong they end with an error, and the reading has the problem.
    pub fn frames(self) -> (Body, Reading) {
        let reading = Reading::new(&self.options.memory);
        let frames = match self.route.rpc.rest.stream.clone() {
            Some(list) => stream::frames(self, list, reading.clone()).boxed(),
            None => {
                let reading = reading.clone();
                let frame = async move {
                    let message = self
                        .message(&reading)
                        .await
                        .map_err(|problem| reading.refuse(problem))?;
                    Ok(Frame::data(call::frame(&message.encode_to_vec())?))
                };
                frame.into_stream().boxed()
            }
        };
        (Body::new(StreamBody::new(frames)), reading)
    }

    /// Reads the body where the route takes one; the rest of the request is in its head.
    async fn message(self, reading: &Reading) -> Result<DynamicMessage, Problem> {
        let Self {
            route,
            variables,
            parts,
            body,
            options,
        } = self;
        let RequestMessage { mut message, query } = if route.takes_body {
            body::read(&route, &parts.headers, reading.counted(body), &options).await?
        } else {
            body::refuse(body).await?;
            RequestMessage {
                message: DynamicMessage::new(route.rpc.input.clone()),
                query: Query::WithFields,
            }
        };
        beside_the_body(&mut message, &route, &variables, &parts, query)?;
        Ok(message)
    }
}

/// Sets the fields that path, query and headers carry.
fn beside_the_body(
    message: &mut DynamicMessage,
    route: &Route,
    variables: &[(Variable, String)],
    parts: &Parts,
    query: Query,
) -> Result<(), Problem> {
    let rpc = &route.rpc;
    path(message, route, variables)?;
    let in_path: Vec<_> = variables.iter().map(|(field, _)| field.number()).collect();
    let taken = |field: &Variable| {
        in_path.contains(&field.number()) || rpc.rest.upload.as_ref() == Some(field)
    };
    let may_be_given = |field: &_| query == Query::WithFields && !taken(field);
    query::read(
        message,
        parts.uri.query().unwrap_or_default(),
        rpc.rest.unknown_query,
        may_be_given,
    )?;
    resume(message, &rpc.input, parts);
    Ok(())
}

/// Sets the fields that the path carries. A body may repeat them, but not contradict them.
fn path(
    message: &mut DynamicMessage,
    route: &Route,
    variables: &[(Variable, String)],
) -> Result<(), Problem> {
    for (field, text) in variables {
        let value = scalar::from_text(&field.kind(), text)
            .map_err(|e| Problem::field(field.json_name(), e))?;
        let given = message
            .has_field(field)
            .then(|| message.get_field(field).into_owned());
        let contradicts = |given: &Value| {
            let own_id = given.as_str().filter(|_| route.read().is_some());
            *given != value && !own_id.is_some_and(|id| may_be_read_id(id, variables))
        };
        if given.as_ref().is_some_and(contradicts) {
            return Err(Problem::field(
                field.json_name(),
                "the body and the path say different things",
            ));
        }
        message.set_field(field, value);
    }
    Ok(())
}

/// Returns whether the `id` of a record that was read may be sent to this path. The path names the
/// record by its own field, such as `key_id`, or by a name instead of an id; an id of the same kind
/// as one in the path has to be that one.
fn may_be_read_id(id: &str, variables: &[(Variable, String)]) -> bool {
    let kind = |id: &str| id.split_once('_').map(|(kind, _)| kind.to_owned());
    let mut texts = variables.iter().map(|(_, text)| text.as_str());
    let is_id = kind(id).is_some();
    is_id && (texts.clone().any(|text| text == id) || texts.all(|text| kind(text) != kind(id)))
}

/// Resumes a stream that was cut off after the last event that the client received. `Last-Event-ID`
/// is newer than the URL.
fn resume(message: &mut DynamicMessage, input: &MessageDescriptor, parts: &Parts) {
    let field = input.get_field_by_name("last_event_id");
    let id = parts
        .headers
        .get(LAST_EVENT_ID)
        .and_then(|v| v.to_str().ok())
        .filter(|id| !id.is_empty());
    if let (Some(field), Some(id)) = (field, id) {
        let _ = message.try_set_field(&field, Value::String(id.to_owned()));
    }
}

/// Values of fields by their numbers, in order of appearance.
type FieldValues = HashMap<u32, Vec<Value>>;
