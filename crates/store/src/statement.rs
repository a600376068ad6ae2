//! Runs statements: a text, and the values of its placeholders in their order.

/// Declares functions of one statement each. `fn name(a: &A, b: B) -> Answer = "text";` is a public
/// asynchronous function of a database and these arguments, which are the values of the
/// placeholders `$1`, `$2` and so on. `{COLUMNS}` stands for the columns of the record in the
/// [`Answer`]. A function without an answer returns `()`. `, index id` behind the text brings the
/// [`search_entry`](crate::search_entry) of the resource with that id up to date.
///
/// `..row: &Record` among the arguments stands for all values of a record. Their placeholders come
/// before those of the other arguments, and the text may have all marks of
/// [`sql`](crate::sql::sql). Such a function without a text inserts the row.
macro_rules! statements {
    ($(
        $(#[$about:meta])*
        fn $name:ident($(
            $(..$row:ident: &$record:ident)?
            $($argument:ident: $(&$borrowed:tt)? $($owned:ident)?)?
        ),+) $(-> $answer:ty)? $(= $text:expr $(, index $indexed:ident)?)?;
    )*) => {$(
        $(#[$about])*
        pub async fn $name(
            db: &mut $crate::Db,
            $($($row: &$record,)? $($argument: $(&$borrowed)? $($owned)?,)?)+
        ) -> $crate::Result<$crate::statement::statements!(@answer $($answer)?)> {
            type Answer = $crate::statement::statements!(@answer $($answer)?);
            const TEXT: &str = $crate::statement::statements!(@text [$($($record)?)+] $($text)?);
            let values: &[&dyn $crate::column::Value] =
                &[$($($crate::statement::statements!(@value $argument $($borrowed)?),)?)+];
            $($(let values = &$crate::record::Record::values_and($row, values);)?)+
            let answer = <Answer as $crate::statement::Answer>::of(db, TEXT, values).await?;
            $($($crate::search_entry::update(db, $indexed.as_str()).await?;)?)?
            Ok(answer)
        }
    )*};
    (@answer) => { () };
    (@answer $answer:ty) => { $answer };
    (@text [] $text:expr) => {
        $crate::sql::sql!(@ <Answer as $crate::statement::Answer>::COLUMNS, $text)
    };
    (@text [$record:ident] $text:expr) => { $crate::sql::sql!($record, $text) };
    (@text [$record:ident]) => { <$record as $crate::record::Table>::INSERT };
    (@value $argument:ident) => { &$argument };
    (@value $argument:ident str) => { &$argument };
    (@value $argument:ident [u8]) => { &$argument };
    (@value $argument:ident $borrowed:tt) => { $argument };
}
pub(crate) use statements;

/// Declares functions that read a page of a list each. `fn name(a: &A) -> Record = "from",
/// "order";` is a public asynchronous function of a database, these arguments and a page. The first
/// text begins with `FROM`, and has the arguments as `$1`, `$2` and so on. The second one ends with
/// the placeholders of the limit and of the offset. A list that is searched has `; search` behind
/// its arguments: the next placeholder is the [`search::pattern`] of that text.
macro_rules! lists {
    ($(
        $(#[$about:meta])*
        fn $name:ident($($argument:ident: &$borrowed:tt),* $(; $search:ident)?) -> $record:ty =
            $from:literal, $order:literal;
    )*) => {$(
        $(#[$about])*
        pub async fn $name(
            db: &mut $crate::Db,
            $($argument: &$borrowed,)*
            $($search: &str,)?
            page: kanat_model::page::Page,
        ) -> $crate::Result<kanat_model::page::ListPage<$record>> {
            const COUNT: &str = concat!("SELECT COUNT(*) AS total ", $from);
            const LIST: &str = $crate::sql::sql!(
                $record,
                concat!("SELECT {COLUMNS} ", $from, " ", $order)
            );
            let values: &[&dyn $crate::column::Value] =
                &[$($crate::statement::statements!(@value $argument $borrowed)),*];
            $crate::statement::lists!(@read db, values, page $(, $search)?).await
        }
    )*};
    (@read $db:ident, $values:ident, $page:ident) => {
        $db.page(COUNT, LIST, $values, $page)
    };
    (@read $db:ident, $values:ident, $page:ident, $search:ident) => {
        $db.search(COUNT, LIST, $values, $search, $page)
    };
}
pub(crate) use lists;

use kanat_model::page::{ListPage, Page};
use sqlx::{AssertSqlSafe, SqlSafeStr};

use crate::column::{Statement, Value};
use crate::record::{FromRow, Table};
use crate::{Db, Result, search};

/// Rows of one statement. Statements come in this length and in length 1 only, so that both stay
/// prepared.
const CHUNK: usize = 100;

/// Answer of a statement of [`statements`].
pub(crate) trait Answer: Sized {
    /// Columns that `{COLUMNS}` stands for.
    const COLUMNS: &'static [&'static [&'static str]] = &[];

    /// Runs a statement, and returns its answer.
    async fn of(db: &mut Db, text: &'static str, values: &[&dyn Value]) -> Result<Self>;
}

/// Nothing, whatever number of rows the statement writes.
impl Answer for () {
    async fn of(db: &mut Db, text: &'static str, values: &[&dyn Value]) -> Result<Self> {
        db.run(text, values).await
    }
}

/// Outcome of a statement: true when it wrote a row.
impl Answer for bool {
    async fn of(db: &mut Db, text: &'static str, values: &[&dyn Value]) -> Result<Self> {
        db.changes(text, values).await
    }
}

/// Number in the one row of the statement.
impl Answer for u32 {
    async fn of(db: &mut Db, text: &'static str, values: &[&dyn Value]) -> Result<Self> {
        db.one(text, values).await
    }
}

/// Number in the one row of the statement.
impl Answer for u64 {
    async fn of(db: &mut Db, text: &'static str, values: &[&dyn Value]) -> Result<Self> {
        db.one(text, values).await
    }
}

/// First row of the statement, if there is one.
impl<T: FromRow> Answer for Option<T> {
    const COLUMNS: &'static [&'static [&'static str]] = T::COLUMNS;

    async fn of(db: &mut Db, text: &'static str, values: &[&dyn Value]) -> Result<Self> {
        db.first(text, values).await
    }
}

/// All rows of the statement.
impl<T: FromRow> Answer for Vec<T> {
    const COLUMNS: &'static [&'static [&'static str]] = T::COLUMNS;

    async fn of(db: &mut Db, text: &'static str, values: &[&dyn Value]) -> Result<Self> {
        db.all(text, values).await
    }
}

impl Db {
    /// Runs a statement, and returns the number of rows that it wrote.
    pub(crate) async fn execute(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<u64> {
        Ok(bound(text, values).execute(self).await?.rows_affected())
    }

    /// Runs a statement, and returns whether it wrote a row.
    pub(crate) async fn changes(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<bool> {
        Ok(self.execute(text, values).await? > 0)
    }

    /// Runs a statement, whatever number of rows it writes.
    pub(crate) async fn run(&mut self, text: impl SqlSafeStr, values: &[&dyn Value]) -> Result<()> {
        self.execute(text, values).await.map(drop)
    }

    /// Inserts a row.
    pub(crate) async fn insert<T: Table>(&mut self, row: &T) -> Result<()> {
        self.run(T::INSERT, &row.values()).await
    }

    /// Inserts rows. `begin` is the statement up to the rows, and `end` what follows them.
    pub(crate) async fn insert_rows<const N: usize>(
        &mut self,
        begin: &'static str,
        rows: &[[&dyn Value; N]],
        end: &'static str,
    ) -> Result<()> {
        let chunks = rows.chunks_exact(CHUNK);
        let rest = chunks.remainder();
        for chunk in chunks.chain(rest.chunks(1)) {
            // Holds placeholders only; every value is bound.
            let row = |row: usize| {
                let row: Vec<String> = (1..=N).map(|nth| format!("${}", N * row + nth)).collect();
                format!("({})", row.join(", "))
            };
            let rows: Vec<String> = (0..chunk.len()).map(row).collect();
            let text = format!("{begin} {} {end}", rows.join(", "));
            self.run(AssertSqlSafe(text), &chunk.concat()).await?;
        }
        Ok(())
    }

    /// Reads the one row of a statement.
    pub(crate) async fn one<T: FromRow>(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<T> {
        T::read(&bound(text, values).fetch_one(self).await?, 0)
    }

    /// Reads the first row of a statement, if there is one.
    pub(crate) async fn first<T: FromRow>(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<Option<T>> {
        let row = bound(text, values).fetch_optional(self).await?;
        row.map(|row| T::read(&row, 0)).transpose()
    }

    /// Reads all rows of a statement.
    pub(crate) async fn all<T: FromRow>(
        &mut self,
        text: impl SqlSafeStr,
        values: &[&dyn Value],
    ) -> Result<Vec<T>> {
        let rows = bound(text, values).fetch_all(self).await?;
        rows.iter().map(|row| T::read(row, 0)).collect()
    }

    /// Reads a page of a list in which a text is looked for. Its [`search::pattern`] is the last of
    /// the values.
    pub(crate) async fn search<T: FromRow>(
        &mut self,
        count: &'static str,
        list: &'static str,
        values: &[&dyn Value],
        text: &str,
        page: Page,
    ) -> Result<ListPage<T>> {
        let pattern = search::pattern(self, text)?;
        let mut values = values.to_vec();
        values.push(&pattern);
        self.page(count, list, &values, page).await
    }

    /// Reads a page of a list. `count` is a statement that counts all of it; `list` has the limit
    /// and the offset as its last placeholders. Both may compare with a [`search::pattern`].
    pub(crate) async fn page<T: FromRow>(
        &mut self,
        count: &'static str,
        list: &'static str,
        values: &[&dyn Value],
        page: Page,
    ) -> Result<ListPage<T>> {
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
