//! The body of a request: JSON, or a file where the method takes an upload. Nothing is read past
//! its limit.

use std::convert::Infallible;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use kanat_model::media_type;
use kanat_net::body::{BoxError, ReadError, read_limited};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, Value};

use crate::decode;
use crate::error::Problem;
use crate::gateway::Options;
use crate::json;
use crate::route::Route;

/// Content types of a file that is the whole body.
const BARE_FILE: [&str; 4] = [
    "text/csv",
    "text/plain",
    "application/octet-stream",
    "application/zip",
];

/// Greatest size of an empty object with blanks, in bytes.
const EMPTY_LIMIT: usize = 64;

/// Message of a request, from its body.
pub(super) struct RequestMessage {
    pub message: DynamicMessage,
    pub query: Query,
}

/// Role of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Query {
    /// It carries the fields that the path does not.
    WithFields,
    /// The body carries the fields, and the query may have none.
    WithoutFields,
}

/// Form in which the body is read.
enum Form {
    Json,
    Bare,
    Multipart { boundary: String },
}

/// Fails unless the body may be read as JSON.
pub(super) fn expect_json(headers: &HeaderMap) -> Result<(), Problem> {
    form(headers, None).map(drop)
}

pub(super) async fn read<B>(
    route: &Route,
    headers: &HeaderMap,
    body: B,
    options: &Options,
) -> Result<RequestMessage, Problem>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let rpc = &route.rpc;
    let limit = if rpc.rest.upload.is_some() {
        options.upload_limit
    } else {
        options.body_limit
    };
    let form = form(headers, rpc.rest.upload.as_ref());
    // An unsuitable type is refused unread, unless there is nothing to read.
    if let (Err(problem), false) = (&form, body.is_end_stream()) {
        return Err(problem.clone());
    }
    let bytes = read_limited(body, limit).await.map_err(broken)?;
    if bytes.is_empty() && !matches!(form, Ok(Form::Bare | Form::Multipart { .. })) {
        return Ok(RequestMessage {
            message: DynamicMessage::new(rpc.input.clone()),
            query: Query::WithoutFields,
        });
    }
    let (field, content) = match (form?, &rpc.rest.upload) {
        (Form::Bare, Some(field)) => (
            field,
            content(field, bytes)
                .ok_or_else(|| Problem::field(field.json_name(), "the file is not UTF-8"))?,
        ),
        (Form::Multipart { boundary }, Some(field)) => {
            let file = part(bytes, boundary).await?;
            (
                field,
                content(field, file)
                    .ok_or_else(|| Problem::field("file", "the part \"file\" is not UTF-8"))?,
            )
        }
        (Form::Json, _) | (_, None) => return parse(route, &bytes),
    };
    let mut message = DynamicMessage::new(rpc.input.clone());
    message.set_field(field, content);
    Ok(RequestMessage {
        message,
        query: Query::WithFields,
    })
}

/// Reads the body of a route without one. A client may send an empty object; more is an error.
pub(super) async fn refuse<B>(body: B) -> Result<(), Problem>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let none = || Problem::invalid("this method takes no body: send its fields in the query");
    match read_limited(body, EMPTY_LIMIT).await {
        Ok(bytes) if matches!(bytes.trim_ascii(), b"" | b"{}") => Ok(()),
        Ok(_) | Err(ReadError::TooLarge { .. }) => Err(none()),
        Err(error) => Err(broken(error)),
    }
}

fn parse(route: &Route, bytes: &[u8]) -> Result<RequestMessage, Problem> {
    let json = json::Value::parse(bytes).map_err(|e| Problem::malformed(&e))?;
    let message = decode::message(&route.rpc.input, route.read(), json).map_err(Problem::fields)?;
    Ok(RequestMessage {
        message,
        query: Query::WithoutFields,
    })
}

/// Returns the form of a body, which may be a file where the route has a field for it.
fn form(headers: &HeaderMap, upload: Option<&FieldDescriptor>) -> Result<Form, Problem> {
    let text = |name| {
        headers
            .get(name)
            .map(|v: &http::HeaderValue| v.to_str().unwrap_or("?").trim().to_lowercase())
    };
    if let Some(encoding) = text(CONTENT_ENCODING).filter(|e| e != "identity") {
        return Err(Problem::unsupported_media_type(format!(
            "content encoding {encoding:?} is not supported"
        )));
    }
    let Some(content_type) = text(CONTENT_TYPE) else {
        return Ok(Form::Json);
    };
    let (_, parameters) = content_type.split_once(';').unwrap_or_default();
    if parameters.contains("charset=") && !parameters.replace('"', "").contains("charset=utf-8") {
        return Err(Problem::unsupported_media_type("only UTF-8 is supported"));
    }
    let essence = media_type::essence(&content_type);
    if media_type::is_json(essence) {
        return Ok(Form::Json);
    }
    if upload.is_some() && BARE_FILE.contains(&essence) {
        return Ok(Form::Bare);
    }
    if upload.is_some() && essence == "multipart/form-data" {
        // The boundary is case-sensitive: it is taken from the header as it came.
        let header = headers
            .get(CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .unwrap_or_default();
        return match multer::parse_boundary(header) {
            Ok(boundary) => Ok(Form::Multipart { boundary }),
            Err(_) => Err(Problem::invalid("the multipart body names no boundary")),
        };
    }
    let known = if upload.is_some() {
        "multipart/form-data, text/csv or application/json"
    } else {
        "application/json"
    };
    Err(Problem::unsupported_media_type(format!(
        "content type {essence:?} is not supported: send {known}"
    )))
}

/// Returns the part named `file`. There is exactly one, and no other.
async fn part(bytes: Bytes, boundary: String) -> Result<Bytes, Problem> {
    let broken = |e: multer::Error| Problem::invalid(format!("the multipart body is broken: {e}"));
    let stream = futures::stream::iter([Ok::<_, Infallible>(bytes)]);
    let mut multipart = multer::Multipart::new(stream, boundary);
    let mut file = None;
    while let Some(field) = multipart.next_field().await.map_err(broken)? {
        match field.name() {
            Some("file") if file.is_none() => file = Some(field.bytes().await.map_err(broken)?),
            Some("file") => return Err(Problem::field("file", "the part \"file\" is there twice")),
            name => {
                let name = name.unwrap_or_default();
                return Err(Problem::field(
                    name,
                    format!("found the part {name:?}, expected only the part \"file\""),
                ));
            }
        }
    }
    file.ok_or_else(|| Problem::field("file", "the part \"file\" is missing"))
}

/// Returns the value of the field; `None` when it is a text and the file is not UTF-8.
fn content(field: &FieldDescriptor, bytes: Bytes) -> Option<Value> {
    match field.kind() {
        Kind::Bytes => Some(Value::Bytes(bytes)),
        _ => String::from_utf8(bytes.into()).ok().map(Value::String),
    }
}

fn broken(error: ReadError) -> Problem {
    match error {
        ReadError::TooLarge { limit } => Problem::too_large(limit),
        ReadError::TooSlow(error) => Problem::too_slow(error),
        ReadError::NoRoom(error) => Problem::busy(error),
        ReadError::Broken(reason) => {
            Problem::invalid(format!("the body could not be read: {reason}"))
        }
    }
}
