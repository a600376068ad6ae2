//! Puts the columns of a file into its statements when these are compiled, so that there is one
//! list of them.

/// A statement in which `{COLUMNS}` stands for the constant of that name.
macro_rules! sql {
    ($text:literal) => {{
        const BYTES: [u8; $crate::sql::length($text, COLUMNS)] =
            $crate::sql::expand($text, COLUMNS);
        match std::str::from_utf8(&BYTES) {
            Ok(text) => text,
            Err(_) => panic!("columns are put between characters"),
        }
    }};
}

pub(crate) use sql;

const MARK: &[u8] = b"{COLUMNS}";

/// Returns the number of bytes of the expanded text.
pub(crate) const fn length(text: &str, columns: &str) -> usize {
    let mut length = text.len();
    let mut from = 0;
    while from < text.len() {
        if is_mark(text.as_bytes(), from) {
            length = length - MARK.len() + columns.len();
        }
        from += 1;
    }
    length
}

/// Returns the text with its columns; `N` is its [`length`].
pub(crate) const fn expand<const N: usize>(text: &str, columns: &str) -> [u8; N] {
    let mut expanded = [0; N];
    let mut end = 0;
    let mut from = 0;
    while from < text.len() {
        if is_mark(text.as_bytes(), from) {
            let mut column = 0;
            while column < columns.len() {
                expanded[end] = columns.as_bytes()[column];
                end += 1;
                column += 1;
            }
            from += MARK.len();
        } else {
            expanded[end] = text.as_bytes()[from];
            end += 1;
            from += 1;
        }
    }
    expanded
}

const fn is_mark(text: &[u8], from: usize) -> bool {
    let mut at = 0;
    while at < MARK.len() {
        if from + at >= text.len() || text[from + at] != MARK[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_statement_has_the_columns_wherever_it_names_them() {
        const COLUMNS: &str = "id, name";
        const COPY: &str = sql!("INSERT INTO a ({COLUMNS}) SELECT {COLUMNS} FROM b WHERE c = '{}'");
        assert_eq!(
            COPY,
            "INSERT INTO a (id, name) SELECT id, name FROM b WHERE c = '{}'"
        );
    }
}
