//! The list `clear` of updates: which values are taken away.

use kanat_model::Error;

/// Checks that each name is that of a field in `optional`.
///
/// # Errors
/// The first name of another field.
pub fn check(names: &[String], optional: &[&str]) -> Result<(), Error> {
    match names.iter().find(|name| !optional.contains(&name.as_str())) {
        Some(other) => Err(Error::field(
            "clear",
            format!(
                "{other:?} cannot be taken away; {} can",
                optional.join(", ")
            ),
        )),
        None => Ok(()),
    }
}

/// Returns the text that an update sets: an empty one takes the former away, and none leaves it.
pub fn text(given: Option<String>, clear: &[String], name: &str) -> Option<String> {
    given.or_else(|| is_cleared(clear, name).then(String::new))
}

/// Returns the number that an update sets: `Some(None)` takes the former away, and none leaves it.
pub fn number(given: Option<u32>, clear: &[String], name: &str) -> Option<Option<u32>> {
    given
        .map(Some)
        .or_else(|| is_cleared(clear, name).then_some(None))
}

fn is_cleared(clear: &[String], name: &str) -> bool {
    clear.iter().any(|cleared| cleared == name)
}
