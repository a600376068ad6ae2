//! Kinds of adapters.

texts! {
    /// Position of an adapter's code in a flow.
    pub enum Kind {
        /// Makes another payload of a payload.
        Transform = "transform",
        /// Makes the payload of the body as it came in, a text.
        Source = "source",
        /// Makes the body that goes out of what the mapping gave.
        Target = "target",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_read_back() {
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(*kind));
        }
        assert_eq!(Kind::parse("Transform"), None);
    }
}
