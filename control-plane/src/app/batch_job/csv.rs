//! Records that failed, as CSV.

use kanat_model::Error;
use kanat_model::id::MessageId;
use kanat_store::batch_job::record::Failed;

const HEADER: [&str; 6] = ["index", "messageId", "kind", "error", "field", "record"];

/// Lines under way.
pub struct Rows(::csv::Writer<Vec<u8>>);

impl Rows {
    /// Begins with the names of the columns.
    pub fn begin() -> Result<Self, Error> {
        let mut writer = ::csv::Writer::from_writer(Vec::new());
        writer.write_record(HEADER).map_err(|_| Error::internal())?;
        Ok(Self(writer))
    }

    pub fn write(&mut self, failed: &Failed) -> Result<(), Error> {
        let index = failed.position.to_string();
        let message_id = failed.message_id.as_ref().map_or("", MessageId::as_str);
        let field = failed.field.as_deref().unwrap_or_default();
        let row = [index.as_str(), message_id, &failed.kind, &failed.message, field, &failed.payload];
        // A `Vec` takes all that is written.
        self.0.write_record(row).map_err(|_| Error::internal())
    }

    pub fn end(self) -> Result<String, Error> {
        let bytes = self.0.into_inner().map_err(|_| Error::internal())?;
        String::from_utf8(bytes).map_err(|_| Error::internal())
    }
}
