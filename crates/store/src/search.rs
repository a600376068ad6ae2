//! Lists that are searched: the shared statements in the words of the database behind them.

use kanat_model::search;
use sqlx::AssertSqlSafe;

use crate::dialect::Dialect;
use crate::{Db, Error};

/// Returns the pattern that a search binds in a statement of [`statement`]: it finds `text`
/// anywhere, in any case of its letters. It is empty for an empty text, which finds everything.
///
/// # Errors
///
/// [`Error::Search`] for a text that is longer than a search may be.
pub(crate) fn pattern(db: &Db, text: &str) -> Result<String, Error> {
    search::check(text).map_err(Error::Search)?;
    Ok(match (text.is_empty(), db.dialect()) {
        (true, _) => String::new(),
        (false, Dialect::Sqlite) => search::glob(text),
        (false, Dialect::Postgres) => search::regex(text),
    })
}

/// Returns the text that a search binds in a statement whose columns ignore case.
///
/// # Errors
///
/// [`Error::Search`] for a text that is longer than a search may be.
pub(crate) fn ignoring_case(text: &str) -> Result<String, Error> {
    search::check(text).map_err(Error::Search)?;
    Ok(search::ignoring_case(text))
}

/// A shared statement, in which `GLOB` compares a column with a [`pattern`].
pub(crate) fn statement(db: &Db, shared: &'static str) -> AssertSqlSafe<String> {
    AssertSqlSafe(db.dialect().search_text(shared))
}
