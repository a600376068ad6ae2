//! Names of statuses in labels.

/// Returns the reason of a refused request to the data plane, by its HTTP status.
pub fn refusal(status: u16) -> &'static str {
    match status {
        401 | 403 => "unauthenticated",
        404 => "unknown_address",
        405 => "method",
        408 => "slow_body",
        413 | 431 => "too_large",
        415 => "media_type",
        503 => "unavailable",
        400..500 => "malformed",
        _ => "internal",
    }
}

/// Returns the canonical name of a gRPC status.
pub fn code(status: u16) -> &'static str {
    match status {
        0 => "OK",
        1 => "CANCELLED",
        3 => "INVALID_ARGUMENT",
        4 => "DEADLINE_EXCEEDED",
        5 => "NOT_FOUND",
        6 => "ALREADY_EXISTS",
        7 => "PERMISSION_DENIED",
        8 => "RESOURCE_EXHAUSTED",
        9 => "FAILED_PRECONDITION",
        10 => "ABORTED",
        11 => "OUT_OF_RANGE",
        12 => "UNIMPLEMENTED",
        13 => "INTERNAL",
        14 => "UNAVAILABLE",
        15 => "DATA_LOSS",
        16 => "UNAUTHENTICATED",
        _ => "UNKNOWN",
    }
}
