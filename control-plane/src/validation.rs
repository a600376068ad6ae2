//! The rules that every request of the public API keeps, over REST and gRPC: no text holds U+0000,
//! which PostgreSQL cannot store, and no filter is empty. Both follow from the descriptors; the
//! meaning of a field is up to the services.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use http_body::Frame;
use kanat_model::{Error, FieldError};
use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor, MethodDescriptor, Value,
};
use tonic::Status;
use tonic::body::Body;

use crate::grpc::{MAX_MESSAGE_BYTES, status};
use crate::middleware::{HttpService, Middleware, Next};

/// Bytes in front of a message: one of flags, four of length.
const PREFIX: usize = 5;

/// More faults than these are not told.
const MAX_FAULTS: usize = 50;

/// The message that holds a JSON document as text. Its texts are payload, in which U+0000 is
/// written as an escape.
const JSON: &str = "kanat.v1.Json";

/// Checks requests by the rules.
#[derive(Clone)]
pub struct Validation {
    methods: Arc<HashMap<String, Method>>,
}

/// A method's request, and which of its fields are filters.
#[derive(Debug, Clone)]
struct Method {
    input: MessageDescriptor,
    filters: Vec<FieldDescriptor>,
}

impl Validation {
    /// Reads the methods from `descriptors`.
    pub fn new(descriptors: &DescriptorPool) -> Self {
        let services: Vec<_> = descriptors.services().collect();
        let methods = services.iter().flat_map(|service| service.methods());
        let methods = methods.map(|method| {
            let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
            (
                path,
                Method {
                    input: method.input(),
                    filters: filters(descriptors, &method),
                },
            )
        });
        Self {
            methods: Arc::new(methods.collect()),
        }
    }
}

impl Middleware for Validation {
    async fn handle<S: HttpService>(self, request: Request<Body>, next: Next<S>) -> Response<Body> {
        let Some(method) = self.methods.get(request.uri().path()).cloned() else {
            return next.run(request).await;
        };
        let checked = |body| {
            Body::new(CheckedBody {
                body,
                method,
                pending: BytesMut::new(),
            })
        };
        next.run(request.map(checked)).await
    }
}

/// The query of a method without a body selects by all of its texts; of a body's fields, those that
/// are marked.
fn filters(pool: &DescriptorPool, method: &MethodDescriptor) -> Vec<FieldDescriptor> {
    let option = |name: &str| {
        let extension = pool.get_extension_by_name(name)?;
        method
            .options()
            .get_extension(&extension)
            .as_message()
            .cloned()
    };
    let is_set = |option: Option<DynamicMessage>, name: &str| {
        option.is_some_and(|o| o.has_field_by_name(name))
    };
    let in_query =
        is_set(option("google.api.http"), "get") && !is_set(option("kanat.v1.rest"), "any_query");
    let mark = pool.get_extension_by_name("kanat.v1.filter");
    let is_marked = |field: &FieldDescriptor| {
        mark.as_ref()
            .is_some_and(|mark| field.options().has_extension(mark))
    };
    method
        .input()
        .fields()
        .filter(|field| in_query || is_marked(field))
        .collect()
}

impl Method {
    /// Everything about the message that breaks a rule. One that cannot be decoded is left to the
    /// service.
    fn faults(&self, message: &[u8]) -> Vec<FieldError> {
        // A text with U+0000 has this byte in UTF-8, and so have the length of an empty text and
        // little else.
        if !message.contains(&0) {
            return Vec::new();
        }
        let Ok(message) = DynamicMessage::decode(self.input.clone(), message) else {
            return Vec::new();
        };
        let mut faults = Vec::new();
        for (field, value) in message.fields() {
            if self.filters.contains(&field) && holds_empty_text(value) {
                faults.push(FieldError::new(
                    field.json_name(),
                    "is empty: leave it out, or give it a value",
                ));
            }
        }
        find_nul_in_message(&message, "", &mut faults);
        faults.truncate(MAX_FAULTS);
        faults
    }
}

fn holds_empty_text(value: &Value) -> bool {
    match value.as_list() {
        Some(items) => items.iter().any(holds_empty_text),
        None => value.as_str().is_some_and(str::is_empty),
    }
}

fn find_nul_in_message(message: &DynamicMessage, path: &str, faults: &mut Vec<FieldError>) {
    for (field, value) in message.fields() {
        let name = field.json_name();
        let path = if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        };
        find_nul(value, &path, faults);
    }
}

fn find_nul(value: &Value, path: &str, faults: &mut Vec<FieldError>) {
    if let Some(text) = value.as_str() {
        if text.contains('\0') {
            faults.push(FieldError::new(path, "must not contain a NUL character"));
        }
    } else if let Some(message) = value.as_message() {
        if prost_reflect::ReflectMessage::descriptor(message).full_name() != JSON {
            find_nul_in_message(message, path, faults);
        }
    } else if let Some(items) = value.as_list() {
        for (at, item) in items.iter().enumerate() {
            find_nul(item, &format!("{path}[{at}]"), faults);
        }
    } else if let Some(entries) = value.as_map() {
        for (key, item) in entries {
            if key.as_str().is_some_and(|key| key.contains('\0')) {
                faults.push(FieldError::new(path, "must not contain a NUL character"));
            }
            find_nul(item, path, faults);
        }
    }
}

/// A request's body whose messages go on once each of them has been checked.
struct CheckedBody {
    body: Body,
    method: Method,
    /// Bytes of a message that is not whole yet.
    pending: BytesMut,
}

impl CheckedBody {
    /// Takes the next whole message off what is pending. One that is compressed or too large goes
    /// on unchecked: the services refuse it by its prefix.
    fn next(&mut self) -> Result<Option<Bytes>, Status> {
        let Some((prefix, rest)) = self.pending.split_first_chunk::<PREFIX>() else {
            return Ok(None);
        };
        let [flags, length @ ..] = *prefix;
        let length = u32::from_be_bytes(length) as usize;
        if flags != 0 || length > MAX_MESSAGE_BYTES {
            return Ok(Some(self.pending.split().freeze()));
        }
        let Some(message) = rest.get(..length) else {
            return Ok(None);
        };
        let faults = self.method.faults(message);
        if let Some(first) = faults.first() {
            let message = format!("{}: {}", first.field, first.message);
            return Err(status::of(Error::invalid(message, faults)));
        }
        Ok(Some(self.pending.split_to(PREFIX + length).freeze()))
    }
}

impl http_body::Body for CheckedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        loop {
            if let Some(message) = this.next().transpose() {
                return Poll::Ready(Some(message.map(Frame::data)));
            }
            match ready!(Pin::new(&mut this.body).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if this.pending.is_empty() => this.pending = BytesMut::from(data),
                    Ok(data) => this.pending.extend_from_slice(&data),
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None if this.pending.is_empty() => return Poll::Ready(None),
                None => return Poll::Ready(Some(Ok(Frame::data(this.pending.split().freeze())))),
            }
        }
    }
}
