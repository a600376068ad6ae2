//! Columns of many rows, which one statement binds as arrays.

/// Returns one column of rows.
pub(super) fn each<'r, R, V>(rows: &'r [R], value: impl Fn(&'r R) -> V) -> Vec<V> {
    rows.iter().map(value).collect()
}

/// Binds columns of rows to a query: `bind_each!(query, rows, |row| [row.id, row.count])`. The
/// placeholders are in the order of the columns.
macro_rules! bind_each {
    ($query:expr, $rows:expr, |$row:ident| [$($column:expr),* $(,)?]) => {
        $query$(.bind($crate::postgres::columns::each($rows, |$row| $column)))*
    };
}

pub(super) use bind_each;
