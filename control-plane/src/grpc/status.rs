//! The one table from our errors to gRPC statuses, with `google.rpc` details.

use std::collections::HashMap;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use kanat_model::error::excerpt;
use kanat_model::{Code, Error};
use tonic::Status;
use tonic::metadata::{Binary, MetadataMap, MetadataValue};
use tonic_types::{ErrorDetails, FieldViolation, StatusExt};

/// The domain of the reasons in `ErrorInfo`.
const DOMAIN: &str = "kanat";

/// How long a caller waits before it tries again what was unavailable.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// How the services begin to say that a message cannot be decoded.
const UNDECODABLE: &str = "failed to decode Protobuf message";

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Bytes of the encoded details of an answer that leaves the process.
const MAX_DETAILS_BYTES: usize = 5 << 10;

/// The status of an error, details included.
pub fn of(error: Error) -> Status {
    let message = excerpt(&error.message);
    let mut details = ErrorDetails::new();
    let members = error.details.iter().enumerate();
    let members = members.filter(|(_, detail)| !detail.members.is_empty());
    let members = members.map(|(at, detail)| {
        let members = format!("{{{}}}", detail.members);
        (format!("details[{at}]"), members)
    });
    details.set_error_info(
        error.code.as_str(),
        DOMAIN,
        members.collect::<HashMap<_, _>>(),
    );
    if !error.details.is_empty() {
        let violations = error
            .details
            .iter()
            .map(|detail| FieldViolation::new(excerpt(&detail.field), excerpt(&detail.message)));
        details.set_bad_request(violations.collect::<Vec<_>>());
    }
    if let Some(resource) = &error.resource {
        let name = excerpt(&resource.name);
        details.set_resource_info(resource.kind, name, "", message.as_ref());
    }
    let mut metadata = MetadataMap::new();
    if matches!(error.code, Code::Unavailable | Code::ResourceExhausted) {
        details.set_retry_info(Some(RETRY_AFTER));
        metadata.insert("retry-after", MetadataValue::from(RETRY_AFTER.as_secs()));
    }
    Status::with_error_details_and_metadata(code(error.code), message, details, metadata)
}

/// Shortens the list of fields at fault to what gRPC clients take as headers: many refuse more than
/// 8 KiB. Calls in process have no such bound and keep the whole list.
pub fn bound_details(headers: &mut HeaderMap) {
    if headers
        .get(DETAILS)
        .is_none_or(|value| value.len() <= MAX_DETAILS_BYTES)
    {
        return;
    }
    let Some(status) = Status::from_header_map(headers) else {
        return;
    };
    let mut details = status.get_error_details();
    let Some(found) = details.bad_request().cloned() else {
        return;
    };
    if let Some(info) = details.error_info().cloned() {
        details.set_error_info(info.reason, info.domain, []);
    }
    let all = found.field_violations;
    let shortened = (0..all.len()).rev().find_map(|kept| {
        let rest = FieldViolation::new("", format!("and {} more", all.len() - kept));
        details.set_bad_request(
            all[..kept]
                .iter()
                .cloned()
                .chain([rest])
                .collect::<Vec<_>>(),
        );
        let status = Status::with_error_details(status.code(), status.message(), details.clone());
        let encoded = MetadataValue::<Binary>::from_bytes(status.details());
        let bytes = encoded.as_encoded_bytes();
        (bytes.len() <= MAX_DETAILS_BYTES)
            .then(|| HeaderValue::from_bytes(bytes).ok())
            .flatten()
    });
    match shortened {
        Some(value) => headers.insert(DETAILS, value),
        None => headers.remove(DETAILS),
    };
}

/// Makes an error of the caller's of a message that cannot be decoded, which the services take for
/// one of theirs.
pub fn blame_caller_for_broken_message(headers: &mut HeaderMap) {
    if headers.get(STATUS).is_none_or(|code| code != "13") {
        return;
    }
    let Some(status) =
        Status::from_header_map(headers).filter(|status| status.message().starts_with(UNDECODABLE))
    else {
        return;
    };
    let refused = of(Error::new(Code::InvalidArgument, excerpt(status.message())));
    for name in [STATUS, HeaderName::from_static("grpc-message"), DETAILS] {
        headers.remove(name);
    }
    // What cannot be written is left out.
    let _ = refused.add_header(headers);
}

/// The number of the status that an answer begins with; one that begins well may still end
/// otherwise.
pub fn number(headers: &HeaderMap) -> u16 {
    let status = headers
        .get("grpc-status")
        .and_then(|value| value.to_str().ok());
    status.and_then(|status| status.parse().ok()).unwrap_or(0)
}

fn code(code: Code) -> tonic::Code {
    match code {
        Code::InvalidArgument => tonic::Code::InvalidArgument,
        Code::Unauthenticated => tonic::Code::Unauthenticated,
        Code::PermissionDenied => tonic::Code::PermissionDenied,
        Code::NotFound => tonic::Code::NotFound,
        Code::AlreadyExists => tonic::Code::AlreadyExists,
        Code::Aborted => tonic::Code::Aborted,
        Code::FailedPrecondition => tonic::Code::FailedPrecondition,
        Code::ResourceExhausted => tonic::Code::ResourceExhausted,
        Code::Unimplemented => tonic::Code::Unimplemented,
        Code::Unavailable => tonic::Code::Unavailable,
        Code::DeadlineExceeded => tonic::Code::DeadlineExceeded,
        Code::Internal => tonic::Code::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_carries_fields_resource_and_when_to_try_again() {
        let status = of(Error::field("entries[2].key", "must not be empty"));
        assert_eq!(status.code(), tonic::Code::InvalidArgument);
        let details = status.get_error_details();
        let violation = &details.bad_request().unwrap().field_violations[0];
        assert_eq!(violation.field.as_str(), "entries[2].key");
        assert_eq!(violation.description.as_str(), "must not be empty");
        assert_eq!(details.error_info().unwrap().reason, "INVALID_ARGUMENT");

        for error in [
            Error::not_found("lookup table", "lt_1"),
            Error::already_exists("lookup table", "lt_1"),
        ] {
            let details = of(error).get_error_details();
            let info = details.resource_info().unwrap();
            assert_eq!(info.resource_type.as_str(), "lookup table");
            assert_eq!(info.resource_name.as_str(), "lt_1");
        }

        let status = of(Error::unavailable("the message log is full"));
        assert_eq!(
            status.get_error_details().retry_info().unwrap().retry_delay,
            Some(RETRY_AFTER)
        );
        assert_eq!(status.metadata().get("retry-after").unwrap(), "1");
    }

    #[test]
    fn a_long_list_of_fields_is_shortened_for_the_wire() {
        let details = (0..100)
            .map(|n| kanat_model::FieldError::new(format!("mapping.f{n}"), "x".repeat(100)))
            .collect();
        let mut headers = of(Error::invalid("wrong in 100 places", details))
            .into_http::<()>()
            .into_parts()
            .0
            .headers;
        assert!(headers[DETAILS].len() > MAX_DETAILS_BYTES);
        bound_details(&mut headers);
        assert!(headers[DETAILS].len() <= MAX_DETAILS_BYTES);
        let status = Status::from_header_map(&headers).unwrap();
        let violations = status
            .get_error_details()
            .bad_request()
            .unwrap()
            .field_violations
            .clone();
        assert_eq!(violations[0].field, "mapping.f0");
        let last = violations.last().unwrap();
        assert_eq!(
            last.description,
            format!("and {} more", 100 - (violations.len() - 1))
        );
        assert_eq!(status.message(), "wrong in 100 places");
    }
}
