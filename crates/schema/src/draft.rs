//! The drafts of JSON Schema, and their differences.

use referencing::SPECIFICATIONS;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Draft {
    Four,
    Six,
    Seven,
    TwentyNineteen,
    TwentyTwenty,
}

impl Draft {
    pub(crate) const ALL: [Self; 5] = [
        Self::Four,
        Self::Six,
        Self::Seven,
        Self::TwentyNineteen,
        Self::TwentyTwenty,
    ];
    pub(crate) const DEFAULT: Self = Self::TwentyTwenty;

    /// Returns the draft that a `$schema` names; `None` for an unknown one.
    pub(crate) fn named(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let place = uri
            .strip_prefix("https://")
            .or_else(|| uri.strip_prefix("http://"))?;
        Self::ALL.into_iter().find(|draft| {
            draft
                .uri()
                .split_once("://")
                .is_some_and(|(_, known)| known == place)
        })
    }

    /// Returns the URI of its schema of schemas, without a fragment.
    pub(crate) fn uri(self) -> &'static str {
        match self {
            Self::Four => "http://json-schema.org/draft-04/schema",
            Self::Six => "http://json-schema.org/draft-06/schema",
            Self::Seven => "http://json-schema.org/draft-07/schema",
            Self::TwentyNineteen => "https://json-schema.org/draft/2019-09/schema",
            Self::TwentyTwenty => "https://json-schema.org/draft/2020-12/schema",
        }
    }

    pub(crate) fn id_keyword(self) -> &'static str {
        if self == Self::Four { "id" } else { "$id" }
    }

    /// Returns whether keywords beside a `$ref` count.
    pub(crate) fn has_siblings_of_ref(self) -> bool {
        self >= Self::TwentyNineteen
    }

    pub(crate) fn of_the_crate(self) -> jsonschema::Draft {
        match self {
            Self::Four => jsonschema::Draft::Draft4,
            Self::Six => jsonschema::Draft::Draft6,
            Self::Seven => jsonschema::Draft::Draft7,
            Self::TwentyNineteen => jsonschema::Draft::Draft201909,
            Self::TwentyTwenty => jsonschema::Draft::Draft202012,
        }
    }
}

/// Returns the text of a published schema of schemas, or of one of its vocabularies.
pub(crate) fn published(uri: &str) -> Option<String> {
    let uri = referencing::uri::from_str(uri).ok()?;
    // A reference with an address would stay in a cache of the process.
    let found = SPECIFICATIONS.resolver(uri).lookup("#").ok()?;
    Some(found.contents().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_drafts_by_their_uris() {
        assert_eq!(
            Draft::named("http://json-schema.org/draft-07/schema#"),
            Some(Draft::Seven)
        );
        assert_eq!(
            Draft::named("https://json-schema.org/draft/2020-12/schema"),
            Some(Draft::TwentyTwenty)
        );
        assert_eq!(
            Draft::named("http://json-schema.org/draft-03/schema#"),
            None
        );
        for draft in Draft::ALL {
            assert!(published(draft.uri()).is_some(), "{draft:?}");
        }
    }
}
