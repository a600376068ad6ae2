//! Texts of requests that have to be JSON.

use kanat_model::Error;

/// Checks that a text is JSON.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for `field`, with line and column.
pub fn check(field: &str, text: &str) -> Result<(), Error> {
    kanat_mapping::json::check(text.as_bytes(), kanat_mapping::json::MAX_DEPTH).map_err(|error| {
        Error::field(
            field,
            format!(
                "line {}, column {}: {}",
                error.line, error.column, error.message
            ),
        )
    })
}
