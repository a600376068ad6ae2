//! Rows as structs: which columns a struct has, and how it is read from them and bound to
//! statements.

use sqlx::Row;
use sqlx::any::AnyRow;

use crate::column::{Column, Value};
use crate::{Error, Result};

/// Value that is read from a row.
pub(crate) trait FromRow: Sized {
    /// Names of the columns that a statement reads as `{COLUMNS}`, those of each field together.
    const COLUMNS: &'static [&'static [&'static str]] = &[];

    /// Reads the value from columns by their names, or from the one at `position` where it names
    /// none.
    fn read(row: &AnyRow, position: usize) -> Result<Self>;
}

/// Value that has columns of its own.
pub(crate) trait Record: FromRow {
    /// Returns the values of [`FromRow::COLUMNS`], in their order.
    fn values(&self) -> Vec<&dyn Value>;

    /// Returns the values of the columns, and after them those of other ones.
    fn values_and<'a>(&'a self, others: &[&'a dyn Value]) -> Vec<&'a dyn Value> {
        [&self.values(), others].concat()
    }
}

/// Record of a table that has no other columns, or defaults for them.
pub(crate) trait Table: Record {
    /// Inserts [`Record::values`].
    const INSERT: &'static str;
}

/// Declares a struct that is a [`Record`], and a [`Table`] with `in`. It is `Debug`, `Clone`,
/// `PartialEq` and `Eq`. A column is named like its field, or by the text after `as`. A field that
/// is a struct has the names of its own fields in braces after its type, and each of them is a
/// column. The fields after `read` are columns of statements, and not of the table: they are read,
/// and not bound. The fields after `default` are filled in later.
macro_rules! record {
    (
        $(#[$about:meta])*
        $visibility:vis struct $record:ident $(in $table:literal)? {
            $(
                $(#[$about_field:meta])*
                $field_visibility:vis $field:ident: $type:ty
                    $(as $column:literal)?
                    $({ $($inner:ident $(as $of_inner:literal)?),* })?
            ),* $(,)?
        }
        $(read {$(
            $(#[$about_derived:meta])*
            $derived_visibility:vis $derived:ident: $derived_type:ty
        ),* $(,)?})?
        $(default {$(
            $(#[$about_absent:meta])*
            $absent_visibility:vis $absent:ident: $absent_type:ty
        ),* $(,)?})?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $visibility struct $record {
            $($(#[$about_field])* $field_visibility $field: $type,)*
            $($($(#[$about_derived])* $derived_visibility $derived: $derived_type,)*)?
            $($($(#[$about_absent])* $absent_visibility $absent: $absent_type,)*)?
        }

        impl $crate::record::FromRow for $record {
            const COLUMNS: &'static [&'static [&'static str]] = &[$(
                $crate::record::record!(
                    @names $field $(as $column)? $({ $($inner $(as $of_inner)?),* })?
                ),
            )*];

            fn read(row: &sqlx::any::AnyRow, _: usize) -> Result<Self, $crate::Error> {
                Ok(Self {
                    $($field: $crate::record::record!(
                        @read row $type, $field $(as $column)?
                        $({ $($inner $(as $of_inner)?),* })?
                    ),)*
                    $($($derived: $crate::record::record!(@read row $derived_type, $derived),)*)?
                    $($($absent: Default::default(),)*)?
                })
            }
        }

        $(impl $crate::record::Table for $record {
            const INSERT: &'static str = $crate::sql::sql!(
                $record,
                concat!("INSERT INTO ", $table, " ({COLUMNS}) VALUES ({VALUES})")
            );
        })?

        impl $crate::record::Record for $record {
            fn values(&self) -> Vec<&dyn $crate::column::Value> {
                let groups: &[&[&dyn $crate::column::Value]] = &[$(
                    $crate::record::record!(
                        @values self $field $({ $($inner),* })?
                    ),
                )*];
                groups.concat()
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident as $column:literal) => { $column };
    (@names $field:ident { $($inner:ident $(as $column:literal)?),* }) => {
        &[$($crate::record::record!(@name $inner $(as $column)?)),*]
    };
    (@names $($field:tt)*) => { &[$crate::record::record!(@name $($field)*)] };
    (
        @read $row:ident $type:ty, $field:ident { $($inner:ident $(as $column:literal)?),* }
    ) => {{
        type Part = $type;
        Part {
            $($inner: $crate::record::record!(@read $row _, $inner $(as $column)?)),*
        }
    }};
    (@read $row:ident $type:ty, $($field:tt)*) => {
        $crate::record::RowExt::column($row, $crate::record::record!(@name $($field)*))?
    };
    (@values $record:ident $field:ident { $($inner:ident),* }) => {
        &[$(&$record.$field.$inner),*]
    };
    (@values $record:ident $field:ident) => { &[&$record.$field] };
}

pub(crate) use record;

/// Field that is read from the column of a name.
pub(crate) trait Field: Sized {
    fn read(row: &AnyRow, name: &str) -> Result<Self>;
}

impl<T: Column> Field for T {
    fn read(row: &AnyRow, name: &str) -> Result<Self> {
        T::parse(row.try_get(name)?).map_err(|value| Error::corrupt(name, value))
    }
}

/// Reads fields.
pub(crate) trait RowExt {
    fn column<T: Field>(&self, name: &str) -> Result<T>;
}

impl RowExt for AnyRow {
    fn column<T: Field>(&self, name: &str) -> Result<T> {
        T::read(self, name)
    }
}

impl<T: Column> FromRow for T {
    fn read(row: &AnyRow, position: usize) -> Result<Self> {
        let value = T::parse(row.try_get(position)?);
        value.map_err(|value| Error::corrupt(&position.to_string(), value))
    }
}

/// A column, and what comes after it.
impl<A: Column, T: FromRow> FromRow for (A, T) {
    fn read(row: &AnyRow, position: usize) -> Result<Self> {
        let first = <A as FromRow>::read(row, position)?;
        Ok((first, T::read(row, position + 1)?))
    }
}
