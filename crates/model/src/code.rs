//! The canonical error codes. How they look in gRPC and in HTTP is said in two tables elsewhere.

texts! {
    /// Why a call failed, in the words that gRPC made canonical. Its text is the canonical
    /// spelling, in capitals, as error bodies carry it.
    pub enum Code {
        InvalidArgument = "INVALID_ARGUMENT",
        Unauthenticated = "UNAUTHENTICATED",
        PermissionDenied = "PERMISSION_DENIED",
        NotFound = "NOT_FOUND",
        AlreadyExists = "ALREADY_EXISTS",
        Aborted = "ABORTED",
        FailedPrecondition = "FAILED_PRECONDITION",
        ResourceExhausted = "RESOURCE_EXHAUSTED",
        Unimplemented = "UNIMPLEMENTED",
        Unavailable = "UNAVAILABLE",
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        Internal = "INTERNAL",
    }
}
