//! Kinds of adapters.

/// Position of an adapter's code in a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Makes another payload of a payload.
    Transform,
    /// Makes the payload of the body as it came in, a text.
    Source,
    /// Makes the body that goes out of what the mapping gave.
    Target,
}

impl Kind {
    pub const ALL: &'static [Self] = &[Self::Transform, Self::Source, Self::Target];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Transform => "transform",
            Self::Source => "source",
            Self::Target => "target",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
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
