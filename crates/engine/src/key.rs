//! Keys of a message: texts that order it and identify its repeats. Their storage belongs to the
//! log.

use kanat_mapping::Value;

/// Returns the key of a value. Null, undefined and the empty string give none: otherwise all
/// messages without a key would share one.
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
