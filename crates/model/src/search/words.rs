//! Words of a text, in the form in which they are compared. Texts are split here, so that every
//! database finds the same.

use std::iter;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Characters of a word that are compared; the rest of a longer one counts for nothing.
const MAX_WORD_CHARS: usize = 64;

/// A run of letters and digits in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word<'t> {
    /// The run as the text has it.
    pub text: &'t str,
    /// Byte of the text at which the run begins.
    pub start: usize,
    /// Form that is equal for words that differ only in case and accents: letters and digits alone,
    /// at most 64 characters.
    pub normalized: String,
}

/// Splits a text into its words.
pub fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut end = 0;
    iter::from_fn(move || {
        loop {
            let start = end + text[end..].find(is_of_word)?;
            let rest = &text[start..];
            let length = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
            end = start + length;
            let text = &rest[..length];
            let normalized = normalize(text);
            if !normalized.is_empty() {
                return Some(Word {
                    text,
                    start,
                    normalized,
                });
            }
        }
    })
}

/// A letter may be followed by its accents.
fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || is_accent(c)
}

fn is_accent(c: char) -> bool {
    canonical_combining_class(c) != 0
}

/// Letters become upper case before they become lower case, because more of them have the same
/// upper case than the same lower case: `ß` and `ss`, `σ` and `ς`. The upper case of `ẞ` is itself,
/// and that of its lower case is `SS`.
fn normalize(word: &str) -> String {
    word.nfkd()
        .filter(|c| !is_accent(*c))
        .flat_map(char::to_lowercase)
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .filter(|c| c.is_alphanumeric())
        .take(MAX_WORD_CHARS)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(text: &str) -> Vec<String> {
        words(text).map(|word| word.normalized).collect()
    }

    #[test]
    fn words_are_runs_of_letters_and_digits() {
        assert_eq!(normalized("source.buffalo"), ["source", "buffalo"]);
        assert_eq!(normalized("/albatross/in"), ["albatross", "in"]);
        assert_eq!(normalized("walrus-intake_2"), ["walrus", "intake", "2"]);
        assert_eq!(normalized("AND \"OR\" NOT*"), ["and", "or", "not"]);
        assert_eq!(normalized(" -- \u{301} "), Vec::<String>::new());
    }

    #[test]
    fn case_and_accents_do_not_count() {
        assert_eq!(normalized("ÄPFEL Apfel"), ["apfel", "apfel"]);
        assert_eq!(normalized("cafe\u{301}s CAFÉS"), ["cafes", "cafes"]);
        assert_eq!(normalized("Straße STRASSE"), ["strasse", "strasse"]);
        assert_eq!(normalized("GRÖẞE Größe"), ["grosse", "grosse"]);
        assert_eq!(normalized("ΣΊΣΥΦΟΣ σίσυφος"), ["σισυφοσ", "σισυφοσ"]);
        assert_eq!(normalized("İstanbul ｆｕｌｌ"), ["istanbul", "full"]);
    }

    #[test]
    fn a_word_knows_its_place_and_has_at_most_64_characters() {
        let long = "é".repeat(70);
        let text = format!("a: {long}!");
        let found: Vec<_> = words(&text).collect();
        assert_eq!(found[1].start, 3);
        assert_eq!(found[1].text, long);
        assert_eq!(found[1].normalized, "e".repeat(64));
    }
}
