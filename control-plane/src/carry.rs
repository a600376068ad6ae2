//! Values that take most of their fields over from another one.

/// Builds a struct of fields of a variable: those in the first braces go over as they are, those
/// behind `text` as they are displayed, those behind `optional` so, where they are there, and those
/// behind `word` as their `as_str` says. The fields behind `with` are given, each with a comma
/// behind it, and the others are those of the struct behind `over`.
macro_rules! carry {
    (
        $($to:ident)::+, $from:ident { $($same:ident),* $(,)? }
        $(text { $($text:ident),* $(,)? })?
        $(optional { $($optional:ident),* $(,)? })?
        $(word { $($word:ident),* $(,)? })?
        $(with { $($given:tt)* })?
        $(over $base:expr)?
    ) => {
        $($to)::+ {
            $($($text: $from.$text.to_string(),)*)?
            $($($optional: $from.$optional.as_ref().map(ToString::to_string),)*)?
            $($($word: $from.$word.as_str().to_owned(),)*)?
            $($($given)*)?
            $($same: $from.$same,)*
            $(..$base)?
        }
    };
}
pub(crate) use carry;
