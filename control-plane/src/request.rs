//! Requests that go on once they have come.

use http::Request;
use http_body_util::{BodyExt, Full, Limited};
use kanat_model::{Code, Error};
use kanat_net::body::TooSlow;
use tonic::Status;
use tonic::body::Body;

use crate::grpc::status;

/// Returns a request whose body has come, of at most so many bytes.
///
/// # Errors
/// The body is larger, breaks off or does not come.
pub async fn whole(request: Request<Body>, most: usize) -> Result<Request<Body>, Status> {
    let (parts, body) = request.into_parts();
    let collected = Limited::new(body, most).collect().await;
    let bytes = collected.map_err(|error| refusal(error, most))?.to_bytes();
    Ok(Request::from_parts(parts, Body::new(Full::new(bytes))))
}

fn refusal(error: kanat_net::body::BoxError, most: usize) -> Status {
    let Ok(status) = error.downcast::<Status>() else {
        let message = format!("the request is larger than {most} bytes");
        return status::of(Error::field("", message));
    };
    // On its way here, the error has become a text.
    let too_slow = TooSlow.to_string();
    if status.message().ends_with(&too_slow) && status.code() != tonic::Code::DeadlineExceeded {
        return status::of(Error::new(Code::DeadlineExceeded, too_slow));
    }
    *status
}
