//! The keys of a message: texts that order it, and that tell it from its repeats. How they are kept
//! is the log's.

use kanat_mapping::Value;

/// The key that a value is. Null, undefined and the empty string are none: they would make one of
/// all that lack a key.
pub(crate) fn of(value: &Value) -> Option<String> {
    let text = value.rendered();
    (!text.is_empty()).then(|| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_no_key() {
        for json in ["null", "", r#""""#] {
            assert_eq!(of(&Value::from_json(json)), None);
        }
        assert_eq!(of(&Value::from_json("0")).as_deref(), Some("0"));
        assert_eq!(of(&Value::from_json("[1]")).as_deref(), Some("[1]"));
    }
}
