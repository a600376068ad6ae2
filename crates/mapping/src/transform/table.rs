//! The transforms that there are: the one table that the compiler, the documentation and editors
//! read.

/// Declares a table of transforms. A row has the name and the parameters of a transform, its
/// sentence, an example, and the transform that is made of its arguments.
macro_rules! shapes {
    ($visibility:vis static $table:ident: $(
        $name:literal($(
            $parameter:ident: $presence:ident $kind:ident $(up_to $most:ident)?, $meaning:literal
        );* $(;)?)
        text $text:literal
        example $expression:literal $(on $source:literal)? $(gives $value:literal)?
        make($($arguments:ident)?) $transform:expr;
    )*) => {
        $visibility static $table: &[$crate::transform::Shape] = &[$($crate::transform::Shape {
            name: $name,
            parameters: &[$(
                $crate::language::Parameter::$presence(stringify!($parameter), $kind, $meaning)
                    $(.up_to($most))?
            ),*],
            text: $text,
            example: $crate::language::Example::of($expression)
                $(.on($source))?
                $(.gives($value))?,
            make: |_of| {
                $(let $arguments = _of;)?
                Ok($transform)
            },
        }),*];
    };
}

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
