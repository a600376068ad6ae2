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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_of_two_fields_are_named_at_once() {
        let fault = |field| Err::<(), _>(Error::field(field, "is wrong"));
        let told = both(fault("a"), fault("b")).unwrap_err();
        assert_eq!(told.message.as_str(), "a: is wrong; b: is wrong");
        assert_eq!(told.details.len(), 2);
        assert_eq!(both(Ok(1), fault("b")).unwrap_err().details.len(), 1);
        let denied = Err::<(), _>(Error::new(Code::PermissionDenied, "no"));
        let told = both(denied, fault("b")).unwrap_err();
        assert_eq!(told.code, Code::PermissionDenied);
    }
}
