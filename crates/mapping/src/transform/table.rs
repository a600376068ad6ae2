//! The transforms that there are: the one table that the compiler, the documentation and editors
//! read.

mod formats;
mod lists;
mod values;

use super::shape::Shape;

/// Returns the transforms.
pub(super) fn shapes() -> impl Iterator<Item = &'static Shape> {
    [values::VALUES, formats::FORMATS, lists::LISTS]
        .into_iter()
        .flatten()
}
