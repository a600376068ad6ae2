//! gRPC calls on a service in this process: a request in frames, an answer in frames and trailers.

use std::convert::Infallible;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderValue, TE};
use http::{Extensions, HeaderMap, Method, Request, Response, Uri};
use http_body_util::BodyExt;
use tonic::Status;
use tonic::body::Body;
use tower::ServiceExt;

/// Length of the prefix of a message: a compressed flag of one byte, and a length of four.
const PREFIX: usize = 5;

pub(crate) struct Call {
    pub uri: Uri,
    pub metadata: HeaderMap,
    pub extensions: Extensions,
    /// Frames that arrive while the call runs.
    pub request: Body,
}

/// Answer that has begun.
pub(crate) struct Answer {
    pub metadata: HeaderMap,
    pub messages: Messages,
}

/// Messages of an answer as they arrive.
pub(crate) struct Messages {
    body: Body,
    buffer: BytesMut,
    ended: bool,
}

impl Call {
    /// Starts the call. The error is the status that the service answered instead of messages.
    pub(crate) async fn start<S>(self, service: S) -> Result<Answer, Status>
    where
        S: tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    {
        let mut request = Request::new(self.request);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri;
        *request.version_mut() = http::Version::HTTP_2;
        *request.headers_mut() = self.metadata;
        request
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        request
            .headers_mut()
            .insert(TE, HeaderValue::from_static("trailers"));
        *request.extensions_mut() = self.extensions;

        let (parts, body) = match service.oneshot(request).await {
            Ok(response) => response.into_parts(),
            Err(never) => match never {},
        };
        match Status::from_header_map(&parts.headers) {
            Some(status) if status.code() != tonic::Code::Ok => Err(status),
            _ => Ok(Answer {
                metadata: parts.headers,
                messages: Messages {
                    body,
                    buffer: BytesMut::new(),
                    ended: false,
                },
            }),
        }
    }
}

/// Returns the frame of a message. Fails when the message is longer than 4 GiB.
pub(crate) fn frame(message: &[u8]) -> Result<Bytes, Status> {
    let length = u32::try_from(message.len())
        .map_err(|_| Status::out_of_range("the request is too large"))?;
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    frame.put_u32(length);
    frame.put_slice(message);
    Ok(frame.freeze())
}

impl Messages {
    /// Returns the next message; `None` when the answer ended well. It is cancellation safe.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Status> {
        loop {
            if let Some(message) = self.take()? {
                return Ok(Some(message));
            }
            if self.ended {
                return Ok(None);
            }
            match self.body.frame().await {
                None => self.ended = true,
                Some(Err(status)) => {
                    self.ended = true;
                    return Err(status);
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.buffer.extend_from_slice(&data),
                    Err(frame) => {
                        self.ended = true;
                        let status = frame.trailers_ref().and_then(Status::from_header_map);
                        if let Some(status) = status.filter(|s| s.code() != tonic::Code::Ok) {
                            return Err(status);
                        }
                    }
                },
            }
        }
    }

    fn take(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(mut prefix) = self.buffer.get(..PREFIX) else {
            return Ok(None);
        };
        if prefix.get_u8() != 0 {
            return Err(Status::internal(
                "the service answered compressed, which nobody asked for",
            ));
        }
        let length = prefix.get_u32() as usize;
        if self.buffer.len() < PREFIX + length {
            return Ok(None);
        }
        self.buffer.advance(PREFIX);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}
