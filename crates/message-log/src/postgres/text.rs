//! Text as PostgreSQL can keep it: everything but the character U+0000.

use std::borrow::Cow;

/// Replacement of U+0000, which keys and errors may have because JSON may.
const NUL_REPLACEMENT: &str = "\u{2400}";

pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', NUL_REPLACEMENT))
    } else {
        Cow::Borrowed(text)
    }
}

pub(super) fn optional(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(self::text)
}
