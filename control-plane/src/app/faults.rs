//! Faults of several fields of one request, told at once.

use kanat_model::{Code, Error, Result};

/// Returns both values, or the faults of one or of both.
///
/// # Errors
///
/// Names the fields of both where both are faults of fields; else the first error stands alone.
pub(crate) fn both<A, B>(first: Result<A>, second: Result<B>) -> Result<(A, B)> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok((first, second)),
        (Err(first), Err(second))
            if [first.code, second.code] == [Code::InvalidArgument, Code::InvalidArgument] =>
        {
            let message = format!("{}; {}", first.message, second.message);
            let details = first.details.into_iter().chain(second.details).collect();
            Err(Error::invalid(message, details))
        }
        (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}
