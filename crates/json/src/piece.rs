//! Finding the end of a value whose bytes come piece by piece, without looking at any of them
//! twice.

/// How far a value was looked at, from its first byte.
#[derive(Debug, Default)]
pub struct PieceScan {
    at: usize,
    depth: usize,
    in_string: bool,
}

impl PieceScan {
    /// The length of the value that `bytes` begin with, which are those of the call before and what
    /// came since; `None` while it has not ended. Whether it is a value is not looked at: what no
    /// value can begin with has the length 0, and a number at the end of `bytes` may go on.
    pub fn end(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'\\' if self.in_string => self.at += 1,
                b'"' => {
                    self.in_string = !self.in_string;
                    if !self.in_string && self.depth == 0 {
                        return Some(self.at + 1);
                    }
                }
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return Some(self.at + 1),
                b'}' | b']' | b',' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => {
                    return Some(self.at);
                }
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    /// Whether nothing of a value was looked at.
    pub fn is_new(&self) -> bool {
        self.at == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_end_wherever_the_value_is_divided() {
        for (text, length) in [
            (r#"{"a": "}\"", "b": [1]},"#, 22),
            ("12 ", 2),
            (r#""\\" "#, 4),
            ("[[],{}]]", 7),
            ("tru", 0),
            ("]", 0),
        ] {
            for size in 1..=text.len() {
                let mut scan = PieceScan::default();
                let ends = (0..=text.len()).step_by(size).chain([text.len()]);
                let found = ends
                    .into_iter()
                    .find_map(|end| scan.end(&text.as_bytes()[..end]));
                assert_eq!(found.unwrap_or_default(), length, "{text} by {size}");
            }
        }
    }
}
