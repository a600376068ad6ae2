//! Runs statements: a text, and the values of its placeholders in their order.

use kanat_model::page::{ListPage, Page};
use sqlx::SqlSafeStr;

use crate::column::{Statement, Value};
use crate::record::FromRow;
use crate::{Db, Error, search};

impl Db {
    /// Runs a statement, and returns the number of rows that it wrote.
    pub(crate) async fn execute(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<u64, Error> {
        Ok(bound(text, values).execute(self).await?.rows_affected())
    }

    /// Runs a statement, and returns whether it wrote a row.
    pub(crate) async fn changes(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<bool, Error> {
        Ok(self.execute(text, values).await? > 0)
    }

    /// Runs a statement, whatever number of rows it writes.
    pub(crate) async fn run(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<(), Error> {
        self.execute(text, values).await.map(drop)
    }

    /// Reads the one row of a statement.
    pub(crate) async fn one<T: FromRow>(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<T, Error> {
        T::read(&bound(text, values).fetch_one(self).await?)
    }

    /// Reads the first row of a statement, if there is one.
    pub(crate) async fn first<T: FromRow>(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<Option<T>, Error> {
        let row = bound(text, values).fetch_optional(self).await?;
        row.as_ref().map(T::read).transpose()
    }

    /// Reads all rows of a statement.
    pub(crate) async fn all<T: FromRow>(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<Vec<T>, Error> {
        let rows = bound(text, values).fetch_all(self).await?;
        rows.iter().map(T::read).collect()
    }

    /// Reads a page of a list. `count` is a statement that counts all of it; `list` has the limit
    /// and the offset as its last placeholders. Both may compare with a [`search::pattern`].
    pub(crate) async fn page<T: FromRow>(
        &mut self,
        count: &'static str,
        list: &'static str,
        values: &[&dyn Value],
        page: Page,
    ) -> Result<ListPage<T>, Error> {
        let total = self.one(search::statement(self, count), values).await?;
        let bounds: [&dyn Value; 2] = [&page.limit, &page.offset];
        let values = [values, &bounds].concat();
        let items = self.all(search::statement(self, list), &values).await?;
        Ok(ListPage { items, total, page })
    }
}

fn bound<'q>(text: impl SqlSafeStr, values: &[&dyn Value]) -> Statement<'q> {
    let bind = |statement, value: &&dyn Value| value.bind(statement);
    values.iter().fold(sqlx::query(text), bind)
}
