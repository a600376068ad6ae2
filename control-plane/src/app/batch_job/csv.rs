//! Records that failed, as CSV.

use kanat_model::id::MessageId;
use kanat_model::{Error, Result};
use kanat_store::batch_job::record::FailedRecord;

use crate::app::formula::mark;

const HEADER: [&str; 6] = ["index", "messageId", "kind", "error", "field", "record"];

/// Lines under way.
pub struct Rows(::csv::Writer<Vec<u8>>);

impl Rows {
    /// Begins with the names of the columns.
    pub fn begin() -> Result<Self> {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.write_record(HEADER).map_err(|_| Error::internal())?;
        Ok(Self(writer))
    }

    pub fn write(&mut self, failed: &FailedRecord) -> Result<()> {
        let index = failed.position.to_string();
        let message_id = failed.message_id.as_ref().map_or("", MessageId::as_str);
        let field = failed.field.as_deref().unwrap_or_default();
        let row = [
            index.as_str(),
            message_id,
            &failed.kind,
            &failed.message,
            field,
            &failed.payload,
        ];
        // A `Vec` takes all that is written.
        self.0
            .write_record(row.map(|cell| mark(cell).into_owned()))
            .map_err(|_| Error::internal())
    }

    pub fn end(self) -> Result<String> {
        let bytes = self.0.into_inner().map_err(|_| Error::internal())?;
        String::from_utf8(bytes).map_err(|_| Error::internal())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_strangers_wrote_reads_back_cell_by_cell(
            message in any::<String>(),
            field in any::<Option<String>>(),
            payload in any::<String>(),
        ) {
            let failed = FailedRecord {
                position: 7,
                message_id: None,
                kind: "status".to_owned(),
                message: message.clone(),
                field: field.clone(),
                payload: payload.clone(),
            };
            let mut rows = Rows::begin().unwrap();
            rows.write(&failed).unwrap();
            let text = rows.end().unwrap();
            let mut reader = ::csv::Reader::from_reader(text.as_bytes());
            let read: Vec<Vec<String>> = reader
                .records()
                .map(|row| row.unwrap().iter().map(str::to_owned).collect())
                .collect();
            let expected = [
                "7",
                "",
                "status",
                &message,
                field.as_deref().unwrap_or_default(),
                &payload,
            ];
            prop_assert_eq!(
                read,
                [expected.map(|cell| mark(cell).into_owned()).to_vec()]
            );
        }
    }
}
