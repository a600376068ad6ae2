//! The drafts of JSON Schema, and their differences.

use std::borrow::Cow;
use std::sync::LazyLock;

use referencing::meta;
use serde_json::Value;

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
pub(crate) fn published(uri: &str) -> Option<Cow<'static, str>> {
    let known: [(&str, &LazyLock<std::sync::Arc<Value>>); 19] = [
        ("http://json-schema.org/draft-04/schema", &meta::DRAFT4),
        ("http://json-schema.org/draft-06/schema", &meta::DRAFT6),
        ("http://json-schema.org/draft-07/schema", &meta::DRAFT7),
        (
            "https://json-schema.org/draft/2019-09/schema",
            &meta::DRAFT201909,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/core",
            &meta::DRAFT201909_CORE,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/applicator",
            &meta::DRAFT201909_APPLICATOR,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/validation",
            &meta::DRAFT201909_VALIDATION,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/meta-data",
            &meta::DRAFT201909_META_DATA,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/format",
            &meta::DRAFT201909_FORMAT,
        ),
        (
            "https://json-schema.org/draft/2019-09/meta/content",
            &meta::DRAFT201909_CONTENT,
        ),
        (
            "https://json-schema.org/draft/2020-12/schema",
            &meta::DRAFT202012,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/core",
            &meta::DRAFT202012_CORE,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/applicator",
            &meta::DRAFT202012_APPLICATOR,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/unevaluated",
            &meta::DRAFT202012_UNEVALUATED,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/validation",
            &meta::DRAFT202012_VALIDATION,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/meta-data",
            &meta::DRAFT202012_META_DATA,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/format-annotation",
            &meta::DRAFT202012_FORMAT_ANNOTATION,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/format-assertion",
            &meta::DRAFT202012_FORMAT_ASSERTION,
        ),
        (
            "https://json-schema.org/draft/2020-12/meta/content",
            &meta::DRAFT202012_CONTENT,
        ),
    ];
    known
        .iter()
        .find(|(known, _)| *known == uri)
        .map(|(_, schema)| Cow::Owned(schema.to_string()))
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
