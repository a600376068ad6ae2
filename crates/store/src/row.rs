//! Reads columns as the types of `kanat_model`.

use kanat_model::Timestamp;
use sqlx::Row;
use sqlx::any::AnyRow;

use crate::Error;

pub(crate) trait RowExt {
    fn text(&self, column: &'static str) -> Result<String, Error>;
    fn bytes(&self, column: &'static str) -> Result<Vec<u8>, Error>;
    fn optional_bytes(&self, column: &'static str) -> Result<Option<Vec<u8>>, Error>;
    fn number(&self, column: &'static str) -> Result<i64, Error>;
    fn optional_number(&self, column: &'static str) -> Result<Option<i64>, Error>;
    fn optional_text(&self, column: &'static str) -> Result<Option<String>, Error>;

    fn id<T: From<String>>(&self, column: &'static str) -> Result<T, Error> {
        self.text(column).map(T::from)
    }

    fn time(&self, column: &'static str) -> Result<Timestamp, Error> {
        self.number(column).map(Timestamp::from_millis)
    }

    fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>, Error> {
        Ok(self.optional_number(column)?.map(Timestamp::from_millis))
    }

    fn flag(&self, column: &'static str) -> Result<bool, Error> {
        Ok(self.number(column)? != 0)
    }

    /// A whole number of a smaller or unsigned type.
    fn whole<T: TryFrom<i64>>(&self, column: &'static str) -> Result<T, Error> {
        let number = self.number(column)?;
        T::try_from(number).map_err(|_| Error::Corrupt {
            column,
            value: number.to_string(),
        })
    }

    fn hash(&self, column: &'static str) -> Result<[u8; 32], Error> {
        hash_of(column, self.bytes(column)?)
    }

    fn optional_hash(&self, column: &'static str) -> Result<Option<[u8; 32]>, Error> {
        self.optional_bytes(column)?
            .map(|bytes| hash_of(column, bytes))
            .transpose()
    }
}

impl RowExt for AnyRow {
    fn text(&self, column: &'static str) -> Result<String, Error> {
        Ok(self.try_get(column)?)
    }

    fn bytes(&self, column: &'static str) -> Result<Vec<u8>, Error> {
        Ok(self.try_get(column)?)
    }

    fn optional_bytes(&self, column: &'static str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.try_get(column)?)
    }

    fn number(&self, column: &'static str) -> Result<i64, Error> {
        Ok(self.try_get(column)?)
    }

    fn optional_number(&self, column: &'static str) -> Result<Option<i64>, Error> {
        Ok(self.try_get(column)?)
    }

    fn optional_text(&self, column: &'static str) -> Result<Option<String>, Error> {
        Ok(self.try_get(column)?)
    }
}

fn hash_of(column: &'static str, bytes: Vec<u8>) -> Result<[u8; 32], Error> {
    let length = bytes.len();
    bytes.try_into().map_err(|_| Error::Corrupt {
        column,
        value: format!("{length} bytes"),
    })
}
