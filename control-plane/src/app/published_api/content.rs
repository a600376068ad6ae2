//! The content that a call gives to a version. Its texts are checked before a change begins: a
//! schema may take a tenth of a second to compile, and other changes would wait for it.

use kanat_model::{Error, Result};
use kanat_schema::Schema;

use crate::app::FieldUpdate;
use crate::app::json::check as check_json;

/// Bytes of a schema, a mapping, a list of headers.
const MAX_TEXT_BYTES: usize = 512 << 10;

/// JSON texts that a call gives to a version.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Name or id.
    pub flow: Option<String>,
    pub request_schema: FieldUpdate<String>,
    pub response_schema: FieldUpdate<String>,
    pub response_mapping: FieldUpdate<String>,
    pub response_status: FieldUpdate<String>,
    pub response_headers: FieldUpdate<String>,
}

/// Texts that are JSON, and schemas that nodes can compile.
#[derive(Debug)]
pub struct CheckedContent(Content);

impl Content {
    /// `request_schema` is what the caller calls the schema of requests.
    pub async fn check(self, request_schema: &'static str) -> Result<CheckedContent> {
        let checked = tokio::task::spawn_blocking(move || {
            self.check_texts(request_schema)?;
            Ok(CheckedContent(self))
        });
        checked.await.map_err(|_| Error::internal())?
    }

    fn check_texts(&self, request_schema: &str) -> Result<()> {
        for (field, text) in [
            (request_schema, &self.request_schema),
            ("responseSchema", &self.response_schema),
            ("responseMapping", &self.response_mapping),
            ("responseStatus", &self.response_status),
            ("responseHeaders", &self.response_headers),
        ] {
            if let Some(json) = text.value() {
                check_text(field, json)?;
            }
        }
        for (field, schema) in [
            (request_schema, &self.request_schema),
            ("responseSchema", &self.response_schema),
        ] {
            if let Some(json) = schema.value() {
                check_schema(field, json)?;
            }
        }
        Ok(())
    }
}

impl CheckedContent {
    pub fn is_empty(&self) -> bool {
        self.0 == Content::default()
    }

    pub fn into_inner(self) -> Content {
        self.0
    }
}

fn check_text(field: &str, json: &str) -> Result<()> {
    if json.len() > MAX_TEXT_BYTES {
        return Err(Error::field(
            field,
            format!("has {} bytes; it may have {MAX_TEXT_BYTES}", json.len()),
        ));
    }
    check_json(field, json)
}

/// By the compiler that nodes have.
fn check_schema(field: &str, json: &str) -> Result<()> {
    match Schema::compile(json) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::field(field, error.to_string())),
    }
}
