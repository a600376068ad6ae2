//! Bodies of requests and answers, and reading them within bounds.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, LengthLimitError, Limited};

use crate::budget::NoRoom;

/// Any cause of a broken body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body of a request, as it comes in.
pub trait IncomingBody: http_body::Body<Data = Bytes, Error: Into<BoxError>> {}

impl<B: http_body::Body<Data = Bytes, Error: Into<BoxError>>> IncomingBody for B {}

/// The body of every answer that a listener gives.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// Error of a body whose sender is too slow: after the first 5 s at least 1 KiB/s has to arrive.
/// The response is 408.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body does not come at 1 KiB/s")]
pub struct TooSlow;

/// Returns a body of these bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Returns an empty body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Reason why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the body is larger than {limit} bytes")]
    TooLarge { limit: usize },
    #[error(transparent)]
    TooSlow(#[from] TooSlow),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("the body broke off: {0}")]
    Broken(String),
}

/// Reads a whole body of at most `limit` bytes; a declared length over the limit is refused unread,
/// a chunked body as soon as it grows past it.
pub async fn read_limited<B>(body: B, limit: usize) -> Result<Bytes, ReadError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    if body.size_hint().lower() > limit as u64 {
        return Err(ReadError::TooLarge { limit });
    }
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(ReadError::TooLarge { limit }),
        Err(error) if error.is::<TooSlow>() => Err(ReadError::TooSlow(TooSlow)),
        Err(error) if error.is::<NoRoom>() => Err(ReadError::NoRoom(NoRoom)),
        Err(error) => Err(ReadError::Broken(error.to_string())),
    }
}
