//! The list `clear` of updates: names of the values that are taken away.

use kanat_model::{Error, Result};

use crate::app::FieldUpdate;

/// Checks that each name is that of a field in `optional`.
///
/// # Errors
/// The first name of another field.
pub fn check(names: &[String], optional: &[&str]) -> Result<()> {
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

/// Sets the texts that are to be taken away, and were not given, to empty ones. A text that stays
/// none is left as it is.
///
/// # Errors
/// The first name of another field than `texts`.
pub fn texts<const N: usize>(
    names: &[String],
    texts: [(&str, &mut Option<String>); N],
) -> Result<()> {
    check(names, &texts.each_ref().map(|(name, _)| *name))?;
    for (name, value) in texts {
        *value = text(value.take(), names, name);
    }
    Ok(())
}

/// Returns the change that an update makes of a text: an empty one takes away what is there.
pub fn text(given: Option<String>, clear: &[String], name: &str) -> Option<String> {
    given.or_else(|| is_cleared(clear, name).then(String::new))
}

/// Returns the change that an update makes of a number.
pub fn number(given: Option<u32>, clear: &[String], name: &str) -> FieldUpdate<u32> {
    match given {
        Some(number) => FieldUpdate::Set(number),
        None if is_cleared(clear, name) => FieldUpdate::Clear,
        None => FieldUpdate::Keep,
    }
}

fn is_cleared(clear: &[String], name: &str) -> bool {
    clear.iter().any(|cleared| cleared == name)
}
