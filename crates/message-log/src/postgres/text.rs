//! Text as PostgreSQL can keep it: everything but the character U+0000.

use std::borrow::Cow;

/// What stands for U+0000, which keys and errors may hold because JSON can say it.
const SIGN: &str = "\u{2400}";

pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') {
        Cow::Owned(text.replace('\0', SIGN))
    } else {
        Cow::Borrowed(text)
    }
}

pub(super) fn optional(text: Option<&str>) -> Option<Cow<'_, str>> {
    text.map(self::text)
}
