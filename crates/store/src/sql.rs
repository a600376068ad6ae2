//! Puts the columns of a record into its statements when these are compiled, so that there is one
//! list of them.

/// A statement about a [`Record`](crate::record::Record). `{COLUMNS}` stands for its columns,
/// `{VALUES}` for the placeholders of its values, and `{name}` for the placeholder of the column
/// `name`.
macro_rules! sql {
    ($record:ty, $text:expr) => {
        $crate::sql::sql!(@ <$record as $crate::record::FromRow>::COLUMNS, $text)
    };
    (@ $columns:expr, $text:expr) => {{
        const COLUMNS: &[&[&str]] = $columns;
        const LENGTH: usize = $crate::sql::Expansion::<0>::of($text, COLUMNS).length;
        const BYTES: [u8; LENGTH] = $crate::sql::Expansion::of($text, COLUMNS).bytes;
        match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("columns are put between characters"),
        }
    }};
}

pub(crate) use sql;

/// Text of a statement as far as `N` bytes hold it, and its whole length.
pub(crate) struct Expansion<const N: usize> {
    pub bytes: [u8; N],
    pub length: usize,
}

impl<const N: usize> Expansion<N> {
    /// Expands the marks of a text. A mark that names no column fails the build.
    pub const fn of(text: &str, columns: &[&[&str]]) -> Self {
        let mut expansion = Self {
            bytes: [0; N],
            length: 0,
        };
        let text = text.as_bytes();
        let mut at = 0;
        while at < text.len() {
            if text[at] == b'{' {
                let mut end = at;
                while text[end] != b'}' {
                    end += 1;
                }
                let (_, rest) = text.split_at(at + 1);
                let (mark, _) = rest.split_at(end - at - 1);
                expansion.expand(mark, columns);
                at = end;
            } else {
                expansion.push(text[at]);
            }
            at += 1;
        }
        expansion
    }

    const fn expand(&mut self, mark: &[u8], columns: &[&[&str]]) {
        let mut number = 0;
        let mut is_known = false;
        let mut group = 0;
        while group < columns.len() {
            let mut nth = 0;
            while nth < columns[group].len() {
                let column = columns[group][nth].as_bytes();
                number += 1;
                let lists_names = equal(mark, b"COLUMNS");
                let lists_values = equal(mark, b"VALUES");
                if number > 1 && (lists_names || lists_values) {
                    self.push_all(b", ");
                }
                if lists_names {
                    self.push_all(column);
                } else if lists_values || equal(mark, column) {
                    self.push_placeholder(number);
                }
                is_known = is_known || lists_names || lists_values || equal(mark, column);
                nth += 1;
            }
            group += 1;
        }
        assert!(is_known, "a statement names a column that its record lacks");
    }

    const fn push_placeholder(&mut self, number: u8) {
        self.push(b'$');
        if number >= 10 {
            self.push(b'0' + number / 10);
        }
        self.push(b'0' + number % 10);
    }

    const fn push_all(&mut self, bytes: &[u8]) {
        let mut at = 0;
        while at < bytes.len() {
            self.push(bytes[at]);
            at += 1;
        }
    }

    const fn push(&mut self, byte: u8) {
        if self.length < N {
            self.bytes[self.length] = byte;
        }
        self.length += 1;
    }
}

const fn equal(left: &[u8], right: &[u8]) -> bool {
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

#[cfg(test)]
mod tests {
    use crate::record::record;

    record! {
        struct Price {
            id: String,
            range: Range { low, high as "max" },
        }
    }

    #[derive(Debug, Clone, PartialEq, Eq)]
    struct Range {
        low: i64,
        high: i64,
    }

    #[test]
    fn a_statement_has_the_columns_and_their_placeholders() {
        assert_eq!(
            sql!(Price, "INSERT INTO price ({COLUMNS}) VALUES ({VALUES})"),
            "INSERT INTO price (id, low, max) VALUES ($1, $2, $3)"
        );
        assert_eq!(
            sql!(Price, "UPDATE price SET max = {max} WHERE id = {id}"),
            "UPDATE price SET max = $3 WHERE id = $1"
        );
    }
}
