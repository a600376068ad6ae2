//! What a version is asked to have. Its texts are checked before a change begins: a schema may take
//! a tenth of a second to compile, and whoever changes something else would wait for that.

use kanat_model::Error;
use kanat_schema::Schema;

use crate::app::json::check as check_json;

/// Bytes of a schema, a mapping, a list of headers.
const MAX_TEXT_BYTES: usize = 512 << 10;

/// JSON texts; what is left out stays, `Some(None)` takes away what is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    /// Name or id.
    pub flow: Option<String>,
    pub request_schema: Option<Option<String>>,
    pub response_schema: Option<Option<String>>,
    pub response_mapping: Option<Option<String>>,
    pub response_status: Option<Option<String>>,
    pub response_headers: Option<Option<String>>,
}

/// Texts that are JSON, and schemas that nodes can compile.
#[derive(Debug)]
pub struct Checked(Content);

impl Content {
    /// `request_schema` is what the caller calls the schema of requests.
    pub async fn check(self, request_schema: &'static str) -> Result<Checked, Error> {
        let checked = tokio::task::spawn_blocking(move || {
            self.check_texts(request_schema)?;
            Ok(Checked(self))
        });
        checked.await.map_err(|_| Error::internal())?
    }

    fn check_texts(&self, request_schema: &str) -> Result<(), Error> {
        for (field, text) in [
            (request_schema, &self.request_schema),
            ("responseSchema", &self.response_schema),
            ("responseMapping", &self.response_mapping),
            ("responseStatus", &self.response_status),
            ("responseHeaders", &self.response_headers),
        ] {
            if let Some(Some(json)) = text {
                check_text(field, json)?;
            }
        }
        for (field, schema) in [
            (request_schema, &self.request_schema),
            ("responseSchema", &self.response_schema),
        ] {
            if let Some(Some(json)) = schema {
                check_schema(field, json)?;
            }
        }
        Ok(())
    }
}

impl Checked {
    pub fn is_empty(&self) -> bool {
        self.0 == Content::default()
    }

    pub fn into_inner(self) -> Content {
        self.0
    }
}

fn check_text(field: &str, json: &str) -> Result<(), Error> {
    if json.len() > MAX_TEXT_BYTES {
        return Err(Error::field(
            field,
            format!("has {} bytes; it may have {MAX_TEXT_BYTES}", json.len()),
        ));
    }
    check_json(field, json)
}

/// By the compiler that nodes have.
fn check_schema(field: &str, json: &str) -> Result<(), Error> {
    match Schema::compile(json) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::field(field, error.to_string())),
    }
}
