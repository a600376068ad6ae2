//! Conversion of a gRPC status, with its `google.rpc.Status` details, to a problem.

use http::header::RETRY_AFTER;
use kanat_model::FieldError;
use prost_reflect::MessageDescriptor;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::Problem;
use crate::field;

impl Problem {
    /// Creates the problem of a status. `input` is the message of the call, which has the REST
    /// spelling of the fields at fault. Internal failures are for the log, never for the caller.
    pub(crate) fn of_status(status: &Status, input: &MessageDescriptor) -> Self {
        match status.code() {
            Code::Internal | Code::Unknown | Code::DataLoss => {
                tracing::error!(
                    grpc.code = %status.code(),
                    cause = status.message(),
                    "a call failed inside",
                );
                return Self::new(Code::Internal, "internal error");
            }
            _ => {}
        }
        let message = match status.message() {
            "" => status.code().description().to_lowercase(),
            message => message.to_owned(),
        };
        let mut problem = Self::new(status.code(), message);
        let details = status.get_error_details();
        if let Some(request) = details.bad_request() {
            // Members of a detail that google.rpc has no field for, as a JSON object.
            let members = |at: usize| {
                let members = details
                    .error_info()?
                    .metadata
                    .get(&format!("details[{at}]"))?;
                let members = members.strip_prefix('{')?.strip_suffix('}')?;
                Some(members.to_owned())
            };
            let detail = |(at, v): (usize, &tonic_types::FieldViolation)| FieldError {
                members: members(at).unwrap_or_default(),
                ..FieldError::new(field::rest_path(input, &v.field), v.description.clone())
            };
            let violations = request.field_violations.iter().enumerate();
            problem.details = violations.map(detail).collect();
        }
        if let Some(delay) = details.retry_info().and_then(|info| info.retry_delay) {
            problem.retry_after(delay);
        } else if let Some(delay) = status
            .metadata()
            .get("retry-after")
            .and_then(|v| v.to_str().ok())
        {
            problem.header(RETRY_AFTER, delay);
        }
        problem
    }
}
