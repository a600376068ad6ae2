//! Comparison of what a page shows with what was printed: all but what differs from run to run.

/// Checks that the lines of `shown` stand in `printed`, in their order. A `...` stands for the rest
/// of a line, and a line `[...]` for lines.
///
/// # Errors
/// Returns the first line that is missing.
pub fn compare(shown: &str, printed: &str) -> Result<(), String> {
    let mut printed = printed.lines().map(plain);
    let shown = shown
        .lines()
        .filter(|line| !line.trim().is_empty() && line.trim() != "[...]");
    for line in shown {
        let wanted = plain(line);
        let found = match wanted.split_once("...") {
            Some((start, _)) => printed.any(|line| line.starts_with(start.trim_end())),
            None => printed.any(|line| line == wanted),
        };
        if !found {
            return Err(line.to_owned());
        }
    }
    Ok(())
}

/// The line with single blanks, and with a name in place of each id, instant, duration, port and
/// token.
fn plain(line: &str) -> String {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = line.as_str();
    let mut plain = String::new();
    while let Some(character) = rest.chars().next() {
        let is_in_word = plain.ends_with(|c: char| c.is_ascii_alphanumeric());
        let at_start_of_word = || variable_word(rest).filter(|_| !is_in_word);
        if let Some((length, name)) = at_start_of_word().or_else(|| variable(rest)) {
            plain.push_str(name);
            rest = &rest[length..];
        } else {
            plain.push(character);
            rest = &rest[character.len_utf8()..];
        }
    }
    plain
}

/// Returns the length of an instant or a duration at the start of `text`, and the name that stands
/// for it. Inside of a word it would be something else.
fn variable_word(text: &str) -> Option<(usize, &'static str)> {
    for shape in ["0000-00-00T00:00:00.000Z", "00:00:00.000Z"] {
        if has_shape(text, shape) {
            return Some((shape.len(), "INSTANT"));
        }
    }
    let length = run(text, "", |c| c.is_ascii_digit())?;
    text[length..].starts_with(" ms").then_some((length, "N"))
}

/// Returns the length of an id, token, address or time at the start of `text` that differs from run
/// to run, and the name that stands for it.
fn variable(text: &str) -> Option<(usize, &'static str)> {
    let digit: fn(&char) -> bool = |c| c.is_ascii_digit();
    let id = run(text, "_", |c| matches!(c, '0'..='9' | 'a'..='f'));
    if let Some(length) = id.filter(|length| *length == 33) {
        return Some((length, "_ID"));
    }
    let token = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if let Some(length) = run(text, "/receive/", token) {
        return Some((length, "/receive/TOKEN"));
    }
    if let Some(length) = run(text, "127.0.0.1:", digit) {
        return Some((length, "ADDRESS"));
    }
    // The time of something is left out where it took no time at all.
    let time = run(text, " (", digit).filter(|length| text[*length..].starts_with(" ms)"));
    time.map(|length| (length + " ms)".len(), ""))
}

/// Returns the length of `prefix` and the fitting characters after it, of which there is one at
/// least.
fn run(text: &str, prefix: &str, fits: fn(&char) -> bool) -> Option<usize> {
    let rest = text.strip_prefix(prefix)?;
    let length: usize = rest.chars().take_while(fits).map(char::len_utf8).sum();
    (length > 0).then_some(prefix.len() + length)
}

fn has_shape(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(byte, wanted)| match wanted {
                b'0' => byte.is_ascii_digit(),
                _ => byte == wanted,
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_over_what_differs_from_run_to_run() {
        let shown = "2026-11-21T07:29:46.674Z  delivered   msg_01a1fd02e0a574f8b5c6a55e18ddd588  \
                     1 attempt  13 ms\n[...]\npost to \
                     http://127.0.0.1:8080/webhooks/receive/...\n07:43:10.440Z  received #1  ok  \
                     webhook (1 ms)\n";
        let printed = "other\n2027-01-02T17:29:46.001Z  delivered  \
                       msg_01a1fd02e0a574f8b5c6a55e18ddd5ff  1 attempt  9 ms\npost to \
                       http://127.0.0.1:23456/webhooks/receive/-YGykiG3k9gKOkGjzSCwU\n\
                       17:43:11.440Z  received #1  ok  webhook\n";
        assert_eq!(compare(shown, printed), Ok(()));
    }

    #[test]
    fn names_the_line_that_is_not_there() {
        assert_eq!(
            compare("2 attempts\n", "1 attempt\n"),
            Err("2 attempts".to_owned())
        );
        assert_eq!(compare("b\na\n", "a\nb\n"), Err("a".to_owned()));
    }
}
