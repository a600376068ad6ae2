//! Excerpts of texts that a search has found: a piece of the text as HTML, with its found words
//! marked.

use kanat_model::search::words;

/// Characters of an excerpt, marks and escapes included.
const MAX_CHARS: usize = 200;

/// Characters of the text in front of the first word that was found. An escape may make six of one,
/// and the word still has its place.
const LEAD_CHARS: usize = 25;

const MARK: &str = "<mark>";
const END_OF_MARK: &str = "</mark>";

/// Returns the piece of a text around the first word that one of the normalized words begins. It is
/// one line of HTML in which such words are marked.
pub fn of(text: &str, wanted: &[String]) -> String {
    let is_wanted = |normalized: &str| wanted.iter().any(|word| normalized.starts_with(&**word));
    let mut found = words(text)
        .filter(|word| is_wanted(&word.normalized))
        .map(|word| (word.start, word.text))
        .peekable();
    let first = found.peek().map_or(0, |(start, _)| *start);
    let mut at = start(text, first);
    let mut excerpt = Excerpt::default();
    while !excerpt.is_full {
        let Some((start, word)) = found.next() else {
            excerpt.push(&text[at..]);
            break;
        };
        excerpt.push(&text[at..start]);
        excerpt.push_marked(word);
        at = start + word.len();
    }
    excerpt.html.trim_end().to_owned()
}

/// The byte at which an excerpt begins: behind white space, or in the middle of a long run.
fn start(text: &str, first: usize) -> usize {
    let lead = text[..first].char_indices().rev().take(LEAD_CHARS);
    let Some(earliest) = lead.last().map(|(at, _)| at) else {
        return 0;
    };
    if earliest == 0 {
        return 0;
    }
    let lead = &text[earliest..first];
    let blank = lead.find(char::is_whitespace).unwrap_or(0);
    first - lead[blank..].trim_start().len()
}

/// HTML that is written until it has as many characters as it may have.
#[derive(Default)]
struct Excerpt {
    html: String,
    chars: usize,
    is_full: bool,
}

impl Excerpt {
    /// Appends a text, with a space in place of each run of white space.
    fn push(&mut self, text: &str) {
        self.push_within(text, MAX_CHARS);
    }

    fn push_marked(&mut self, word: &str) {
        let marks = MARK.len() + END_OF_MARK.len();
        // A mark has at least one character. That of a long word has as many as there is place for.
        let last = MAX_CHARS - END_OF_MARK.len();
        if self.is_full || self.chars + marks + "&quot;".len() > MAX_CHARS {
            self.is_full = true;
            return;
        }
        self.html.push_str(MARK);
        self.chars += MARK.len();
        self.push_within(word, last);
        self.html.push_str(END_OF_MARK);
        self.chars += END_OF_MARK.len();
    }

    fn push_within(&mut self, text: &str, most: usize) {
        for c in text.chars() {
            if self.is_full {
                return;
            }
            let is_blank = c.is_whitespace() || c.is_control();
            if is_blank && (self.html.is_empty() || self.html.ends_with(' ')) {
                continue;
            }
            let mut buffer = [0; 4];
            let written = match c {
                '&' => "&amp;",
                '<' => "&lt;",
                '>' => "&gt;",
                '"' => "&quot;",
                '\'' => "&#39;",
                _ if is_blank => " ",
                c => c.encode_utf8(&mut buffer),
            };
            let length = written.chars().count();
            if self.chars + length > most {
                self.is_full = true;
                return;
            }
            self.html.push_str(written);
            self.chars += length;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, wanted: &[&str]) -> String {
        let wanted: Vec<String> = wanted.iter().map(|word| (*word).to_owned()).collect();
        of(text, &wanted)
    }

    #[test]
    fn marks_the_words_and_escapes_the_rest() {
        assert_eq!(
            excerpt("Größe <b>&\n  grosse Äpfel", &["gross", "ap"]),
            "<mark>Größe</mark> &lt;b&gt;&amp; <mark>grosse</mark> <mark>Äpfel</mark>"
        );
        assert_eq!(
            excerpt("\"a'b\"", &["b"]),
            "&quot;a&#39;<mark>b</mark>&quot;"
        );
        assert_eq!(excerpt("nothing", &["x"]), "nothing");
        assert_eq!(excerpt("", &["x"]), "");
    }

    #[test]
    fn begins_a_little_before_the_first_word_and_ends_in_time() {
        let text = format!(
            "{}target: albatross{}",
            "word ".repeat(100),
            " tail".repeat(100)
        );
        let found = excerpt(&text, &["albatross"]);
        assert!(found.starts_with("word word"), "{found}");
        assert!(
            found.contains("target: <mark>albatross</mark> tail tail"),
            "{found}"
        );
        assert!(found.chars().count() <= 200, "{found}");
        assert!(found.chars().count() > 190, "{found}");
    }

    #[test]
    fn is_never_longer_and_never_ends_within_a_mark_or_an_escape() {
        let texts = [
            "é".repeat(1_000),
            "<".repeat(1_000),
            "x ".repeat(1_000),
            "&x".repeat(1_000),
            format!("{}x", "-".repeat(300)),
            format!("{}x", "\"".repeat(300)),
            format!("{} x{}", "y".repeat(185), "x".repeat(30)),
        ];
        for text in texts {
            let found = excerpt(&text, &["x", "e"]);
            assert!(found.chars().count() <= 200, "{found}");
            assert_eq!(
                found.matches(MARK).count(),
                found.matches(END_OF_MARK).count()
            );
            assert!(found.contains(MARK) || !text.contains('x'), "{found}");
            let bare = found.replace(MARK, "").replace(END_OF_MARK, "");
            assert!(!bare.contains('<'), "{found}");
            let escapes = ["&lt;", "&amp;", "&quot;"].map(|escape| bare.matches(escape).count());
            assert_eq!(
                bare.matches('&').count(),
                escapes.iter().sum::<usize>(),
                "{found}"
            );
        }
        let found = excerpt(&"é".repeat(1_000), &["e"]);
        assert!(
            found.starts_with("<mark>éé") && found.ends_with("éé</mark>"),
            "{found}"
        );
    }
}
