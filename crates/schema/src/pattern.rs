//! Regular expressions of a schema: written as in ECMA-262, run in linear time, and bounded in
//! size.

use std::borrow::Cow;
use std::fmt;
use std::panic::AssertUnwindSafe;

use jsonschema_regex::to_rust_regex;
use regex_automata::dfa::onepass;
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::{self, NFA};
use regex_syntax::ast::ErrorKind;
use regex_syntax::hir::{Hir, HirKind, Look};

/// Greatest length of a pattern, in bytes.
const MAX_LENGTH: usize = 4096;
/// Greatest amount of memory for one pattern, in bytes.
const MAX_MEMORY: usize = 1024 * 1024;
/// Capacity of the cache of the lazy automaton of one pattern in one thread, in bytes.
const CACHE_CAPACITY: usize = 256 * 1024;
/// Number of positions above which the pattern is tested for being in one of them at a time.
const MAX_UNTESTED_POSITIONS: u64 = 64;

pub(crate) struct Pattern {
    text: Box<str>,
    regex: Regex,
    /// Greatest number of places of the pattern in which a match may be at once, which is the work
    /// of one character.
    width: u64,
}

impl Pattern {
    /// Compiles a pattern. The error is a message.
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if text.len() > MAX_LENGTH {
            return Err(format!("is longer than {MAX_LENGTH} bytes"));
        }
        let translated = to_rust_regex(&expand(text))
            .map(Cow::into_owned)
            .map_err(|()| "is not a regular expression".to_owned())?;
        let hir = regex_syntax::parse(&translated).map_err(|error| reason(&error).to_owned())?;
        let too_large = || format!("is too large: it needs more than {} KiB", MAX_MEMORY / 1024);
        let config = Regex::config()
            .nfa_size_limit(Some(MAX_MEMORY))
            .hybrid_cache_capacity(CACHE_CAPACITY);
        let regex: Regex = meta::Builder::new()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|_| too_large())?;
        let positions = positions(&hir);
        let width = if positions > MAX_UNTESTED_POSITIONS && is_one_pass(&hir) {
            1
        } else {
            positions
        };
        Ok(Self {
            text: text.into(),
            regex,
            width,
        })
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether a part of the text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        // The engine is known to panic on some patterns (regex#1344): such a pattern matches
        // nothing.
        std::panic::catch_unwind(AssertUnwindSafe(|| self.regex.is_match(text))).unwrap_or_default()
    }

    /// Returns the greatest amount of work for a match on a text.
    pub(crate) fn work(&self, text: &str) -> u64 {
        1 + self.width.saturating_mul(text.len() as u64) / 32
    }

    /// Returns the memory that it takes, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.regex.memory_usage()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn reason(error: &regex_syntax::Error) -> &'static str {
    match error {
        regex_syntax::Error::Parse(error) => match error.kind() {
            ErrorKind::UnsupportedLookAround => {
                "uses look-around, which cannot be matched in linear time"
            }
            ErrorKind::UnsupportedBackreference => {
                "uses a back-reference, which cannot be matched in linear time"
            }
            ErrorKind::NestLimitExceeded(_) => "is nested too deeply",
            _ => "is not a regular expression",
        },
        _ => "is not a regular expression",
    }
}

/// Writes out the classes and control characters of ECMA-262. The translation would search the
/// whole pattern for each of them; classes in brackets it handles quickly.
fn expand(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let mut in_brackets = false;
    let mut after_class = false;
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        let follows_class = std::mem::take(&mut after_class);
        if letter != '\\' {
            // A class begins no range: the hyphen in `[\w-.]` is itself.
            if in_brackets
                && follows_class
                && letter == '-'
                && !rest.as_str().starts_with([']', '-'])
            {
                out.push('\\');
            }
            in_brackets = if in_brackets {
                letter != ']'
            } else {
                letter == '['
            };
            out.push(letter);
            continue;
        }
        let Some(escaped) = rest.next() else {
            out.push(letter);
            break;
        };
        after_class = class(escaped).is_some();
        let class = if in_brackets { None } else { class(escaped) };
        let control = rest
            .clone()
            .next()
            .filter(|next| escaped == 'c' && next.is_ascii_alphabetic());
        match (class, control) {
            (Some(class), _) => out.push_str(class),
            (None, Some(control)) => {
                rest.next();
                out.push_str(&format!("\\x{:02x}", u32::from(control) % 32));
            }
            (None, None) => out.extend([letter, escaped]),
        }
    }
    out
}

fn class(escaped: char) -> Option<&'static str> {
    match escaped {
        'd' => Some("[0-9]"),
        'D' => Some("[^0-9]"),
        'w' => Some("[A-Za-z0-9_]"),
        'W' => Some("[^A-Za-z0-9_]"),
        's' => Some(concat!(
            r"[\x09-\x0d\x20\u{a0}\u{1680}\u{2000}-\u{200a}",
            r"\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}]"
        )),
        'S' => Some(concat!(
            r"[^\x09-\x0d\x20\u{a0}\u{1680}\u{2000}-\u{200a}",
            r"\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}]"
        )),
        _ => None,
    }
}

/// Returns the number of places of a pattern once its repetitions are written out.
fn positions(hir: &Hir) -> u64 {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(_) => 1,
        HirKind::Repetition(repetition) => {
            let times = repetition
                .max
                .unwrap_or(repetition.min)
                .max(repetition.min)
                .max(1);
            positions(&repetition.sub).saturating_mul(u64::from(times))
        }
        HirKind::Capture(capture) => positions(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(positions).fold(0, u64::saturating_add)
        }
    }
}

/// Returns whether a match is never in two places at once: it begins at the start of the text, and
/// each character leads to one place.
fn is_one_pass(hir: &Hir) -> bool {
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        return false;
    }
    let config = NFA::config().nfa_size_limit(Some(MAX_MEMORY));
    let nfa = thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir);
    nfa.is_ok_and(|nfa| {
        let config = onepass::DFA::config().size_limit(Some(8 * MAX_MEMORY));
        onepass::Builder::new()
            .configure(config)
            .build_from_nfa(nfa)
            .is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_as_ecma_does() {
        let matches = |pattern: &str, text: &str| Pattern::new(pattern).unwrap().is_match(text);
        assert!(
            matches(r"^\d{3}$", "123") && !matches(r"^\d{3}$", "١٢٣") && !matches("^a$", "a\n")
        );
        assert!(matches("b+", "abbc") && matches(r"^\w+$", "a_1") && !matches(r"^\w+$", "é"));
        assert!(matches(r"^\p{L}+$", "é") && matches(r"\u0041", "A"));
        assert!(
            matches(r"^\s\S$", "\u{feff}x")
                && matches(r"^[\s\d]+$", "1\u{a0}2")
                && matches(r"^\cJ[\cJ]$", "\n\n")
        );
        assert!(
            matches(r"^[\w-.]+\.\D$", "a-b._.x")
                && matches(r"^\\d$", r"\d")
                && matches(r"^[^\W]$", "a")
        );
    }

    #[track_caller]
    fn refuses(pattern: &str, words: &str) {
        let error = Pattern::new(pattern).unwrap_err();
        assert!(error.contains(words), "{pattern}: {error}");
    }

    #[test]
    fn refuses_what_could_take_long() {
        refuses("(?=a)b", "look-around");
        refuses("(?<!a)b", "look-around");
        refuses(r"(a)\1", "back-reference");
        refuses("(a", "not a regular expression");
        refuses("((a{1000}){1000}){1000}", "too large");
        refuses(&"a".repeat(MAX_LENGTH + 1), "longer than");
        // Small or not, it is soon known.
        let _ = Pattern::new(&r"\s".repeat(MAX_LENGTH / 2));
        refuses(&format!("{}a{}", "(".repeat(1500), ")".repeat(1500)), "");
    }

    #[test]
    fn knows_how_much_a_match_may_cost() {
        let width = |pattern: &str| Pattern::new(pattern).unwrap().width;
        assert_eq!(width("^[a-z]+$"), 3);
        assert_eq!(width("^.{1,1000}$"), 1);
        assert!(width("^(.*a.{500})$") > 500);
    }
}
